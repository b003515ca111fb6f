// Conversion of products to messages, each under gRPC's default limit of 4 MiB.
#ifndef SPEXD_SERVER_MESSAGES_PRODUCT_MESSAGES_H_
#define SPEXD_SERVER_MESSAGES_PRODUCT_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/fibre_range.h"
#include "core/products/analyse.h"
#include "core/products/joint/joint_task.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// What the messages contain in addition to the products.
struct ProductLabels {
  FibreRange fibres;                    // the frame's
  std::vector<std::string> parameters;  // names of the templates' parameters
};

// Returns the parts of a product with checksums. A product that failed has a single part with its error.
std::vector<v1::ExtractEvent> CutProduct(Product product, const FrameProducts& products,
                                         const ProductLabels& labels);

// Returns the single part of a product that failed. REQUIRES: `error` is not OK.
v1::ExtractEvent FailedProduct(Product product, const absl::Status& error);

// Returns the parts of a file of a joint analysis. A file that could not be made has a single part with its
// error.
std::vector<v1::ExtractEvent> CutFile(JointProduct product, const absl::StatusOr<JointFile>& file);

// Returns an upper estimate of the bytes of a product's parts; 0 for products with very small parts.
int64_t ProductMessageBytes(Product product, int64_t fibres, int64_t bins);

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_PRODUCT_MESSAGES_H_
