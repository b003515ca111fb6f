// Turns the parts of products back into products, checking everything on the way.
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
  // Assembles products of a frame of so many bins and these fibres.
  ProductAssembler(int64_t bins, FibreRange fibres) : bins_(bins), fibres_(fibres) {}

  // InvalidArgument that says what is wrong with a part that is damaged, out of order or impossible.
  absl::Status Add(const v1::ProductPart& part);
  // Call it once. InvalidArgument if a product is not whole.
  absl::StatusOr<NamedProducts> Finish();

 private:
  absl::Status AddSky(const v1::SkyPart& part);
  absl::Status EndSky(const v1::SkyPart& part);
  absl::Status AddVelocities(const v1::VelocityPart& part);
  absl::Status AddLines(const v1::LinePart& part);
  // The frame's rows of some targets.
  absl::Status AddRows(const std::string& bytes, std::vector<int>* rows) const;
  absl::Status Fail(const v1::ProductPart& part);

  const int64_t bins_;
  const FibreRange fibres_;
  std::optional<v1::Product> open_;  // parts of it came, and more will
  std::set<int> done_;
  Sky sky_;
  int64_t sky_fibres_ = 0;  // that came
  std::vector<StarVelocity> stars_;
  std::vector<int> star_rows_, line_rows_;
  NamedProducts result_;
};

}  // namespace spexd

#endif  // SPEXD_PROTO_ASSEMBLER_PRODUCT_ASSEMBLER_H_
