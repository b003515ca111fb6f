// The making of one job's products: their inputs, memory and computation.
#ifndef SPEXD_SERVER_JOBS_PRODUCT_MAKER_H_
#define SPEXD_SERVER_JOBS_PRODUCT_MAKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/extract/device_spectra.h"
#include "core/frame/job.h"
#include "core/job/run_job.h"
#include "core/products/analyse.h"
#include "server/inputs/job_inputs.h"
#include "server/inputs/warm_input.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// An error within an input, a hash that is not warm, or too large a need for memory fails only the products
// concerned. A path that does not exist fails the job, as for its other inputs.
class ProductMaker {
 public:
  ProductMaker(const ServerParts& parts, JsonFields log_fields, ProductInputs inputs);

  bool any() const { return !asked_.asked.empty(); }

  // The files to measure and open.
  std::vector<FileInput*> files();
  // Opens the files by `open` and finds inputs that are named by hash. Reads headers but no pixels.
  absl::Status Open(const FileOpener& open);

  // Returns the memory of the plan's frame and its products until Make returns. Products that would need more
  // than the server's limit fail and are not counted.
  int64_t Plan(const JobPlan& plan);
  // The part of Plan's memory that readers of the input files take.
  int64_t decode_bytes() const {
    return fiberflat_.outline().decode_bytes + templates_.outline().decode_bytes;
  }
  // Returns the bytes of the products' messages.
  int64_t MessageBytes(const JobPlan& plan) const;
  // Returns the bytes that count as results: those of the messages, or of the frame if Plan did not count it.
  // REQUIRES: Plan.
  int64_t ResultBytes(const JobPlan& plan) const;

  // Takes the messages of a product that is complete.
  using Sink = std::function<void(std::vector<v1::ExtractEvent> parts)>;
  // Makes the products of the frame and gives each one that is asked for to `sink`, also if it failed. Waits
  // for its threads, whose number is bounded. Cancelled: a stop was requested.
  absl::Status Make(const Frame& frame, const std::stop_token& stop, const Sink& sink);
  // Whether a device may make the products, so that the frame's spectra should stay on it. REQUIRES: Plan.
  bool TakesDevice() const { return any() && too_large_.ok() && parts_.analyser != nullptr; }
  // Sets the frame's spectra that the extraction left on a device; may be null. Held until Make returns.
  void SetResident(std::shared_ptr<DeviceSpectra> resident) { resident_ = std::move(resident); }
  // The time of each product, including a sky that only other products needed.
  const std::vector<StageSeconds>& stages() const { return stages_; }

 private:
  int64_t BytesOf(const JobPlan& plan, bool velocities) const;
  void Send(Product product, std::vector<v1::ExtractEvent> parts, const StageSeconds& took, const Sink& sink);
  void FailRest(const absl::Status& error, const Sink& sink);
  absl::Status MakeAll(const Frame& frame, const std::stop_token& stop, const Sink& sink, int threads);
  AnalysisRequest RequestOf(const std::stop_token& stop, int threads) const;

  const ServerParts parts_;
  const JsonFields log_fields_;
  ProductInputs asked_;
  WarmInput fiberflat_, templates_;
  std::shared_ptr<DeviceSpectra> resident_;
  absl::Status too_large_;  // why no product can be made of a frame of this size
  std::vector<Product> sent_;
  std::vector<StageSeconds> stages_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_PRODUCT_MAKER_H_
