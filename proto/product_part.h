// Requests for products and the checksums of their parts, for client and server.
#ifndef SPEXD_PROTO_PRODUCT_PART_H_
#define SPEXD_PROTO_PRODUCT_PART_H_

#include <cstdint>
#include <optional>

#include "core/products/analyse.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// Whether the request asks for the product.
bool Asks(const v1::ProductRequest& request, const ProductInfo& product);

// The CRC-32C of the content's fields of type `bytes`, in the order of their numbers; nullopt if the part has
// no content.
std::optional<uint32_t> ChecksumOf(const v1::ProductPart& part);

}  // namespace spexd

#endif  // SPEXD_PROTO_PRODUCT_PART_H_
