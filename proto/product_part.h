// What client and server both need to know of requests for products and of the parts that answer them.
#ifndef SPEXD_PROTO_PRODUCT_PART_H_
#define SPEXD_PROTO_PRODUCT_PART_H_

#include <cstdint>
#include <optional>

#include "core/products/analyse.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

bool Asks(const v1::ProductRequest& request, const ProductInfo& product);

// The checksum of the fields of type `bytes` of the part's content, in the order of their numbers; none
// without a content.
std::optional<uint32_t> ChecksumOf(const v1::ProductPart& part);

}  // namespace spexd

#endif  // SPEXD_PROTO_PRODUCT_PART_H_
