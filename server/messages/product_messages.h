// Products as messages, each under gRPC's default limit of 4 MiB.
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

// What the messages say beside the products.
struct ProductLabels {
  FibreRange fibres;                    // the frame's
  std::vector<std::string> parameters;  // names of the templates' parameters
};

// The parts of a product with their checksums; one that was not made has a single part with its error.
std::vector<v1::ExtractEvent> CutProduct(Product product, const FrameProducts& products,
                                         const ProductLabels& labels);

// The single part of a product that was not made. REQUIRES: an error.
v1::ExtractEvent FailedProduct(Product product, const absl::Status& error);

// The parts of a file of a joint analysis; one that was not made has a single part with its error.
std::vector<v1::ExtractEvent> CutFile(JointProduct product, const absl::StatusOr<JointFile>& file);

// An upper estimate of the bytes of a product's parts; 0 for those that take next to nothing.
int64_t ProductMessageBytes(Product product, int64_t fibres, int64_t bins);

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_PRODUCT_MESSAGES_H_
