// Assembles the parts of a frame's products into products, and checks them.
#ifndef SPEXD_PROTO_ASSEMBLER_PRODUCT_ASSEMBLER_H_
#define SPEXD_PROTO_ASSEMBLER_PRODUCT_ASSEMBLER_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/fibre_range.h"
#include "proto/assembler/job_outcome.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

class ProductAssembler {
 public:
  // `bins`, `fibres`: those of the frame.
  ProductAssembler(int64_t bins, FibreRange fibres) : bins_(bins), fibres_(fibres) {}

  // Adds the next part. InvalidArgument says why a part is damaged, out of order or impossible.
  absl::Status Add(const v1::ProductPart& part);
  // Returns the products. Call it once. InvalidArgument: a product is incomplete, or products contradict each
  // other.
  absl::StatusOr<NamedProducts> Finish();

 private:
  absl::Status AddSky(const v1::SkyPart& part);
  absl::Status EndSky(const v1::SkyPart& part);
  absl::Status AddVelocities(const v1::VelocityPart& part);
  absl::Status AddLines(const v1::LinePart& part);
  // Appends the rows (packed uint32) of some targets. InvalidArgument: they are not ascending rows of the
  // frame.
  absl::Status AddRows(const std::string& bytes, std::vector<int>* rows) const;
  absl::Status Fail(const v1::ProductPart& part);

  const int64_t bins_;
  const FibreRange fibres_;
  std::optional<v1::Product> open_;  // the product whose last part has not arrived yet
  std::set<int> done_;
  Sky sky_;
  int64_t sky_fibres_ = 0;  // fibres of which the sky has arrived
  std::vector<StarVelocity> stars_;
  std::vector<int> star_rows_, line_rows_;
  NamedProducts result_;
};

}  // namespace spexd

#endif  // SPEXD_PROTO_ASSEMBLER_PRODUCT_ASSEMBLER_H_
