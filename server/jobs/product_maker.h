// The products of one job: their inputs, the memory that they take, and making them.
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

// What is wrong within an input, a hash that is not warm (any more), and what exceeds the server's memory
// fail the products that need it. Paths that lead nowhere fail the job, as those of its other inputs do.
class ProductMaker {
 public:
  ProductMaker(const ServerParts& parts, JsonFields log_fields, ProductInputs inputs);

  bool any() const { return !asked_.asked.empty(); }

  // The files to be opened.
  std::vector<FileInput*> files();
  // Opens them by `open`, and finds what is named by its hash. Reads headers, no pixels.
  absl::Status Open(const FileOpener& open);

  // Memory of a frame of that plan and of all that is made of it, until Make returns; never more than the
  // server has. Products that would need more fail.
  int64_t Plan(const JobPlan& plan);
  // The part of it that readers of its files take.
  int64_t decode_bytes() const {
    return fiberflat_.outline().decode_bytes + templates_.outline().decode_bytes;
  }
  // Bytes of the products' messages.
  int64_t MessageBytes(const JobPlan& plan) const;
  // Bytes of the messages while they are sent, or of the frame where Plan left it out. REQUIRES: Plan.
  int64_t ResultBytes(const JobPlan& plan) const;

  // Takes a product's messages, as soon as it is there.
  using Sink = std::function<void(std::vector<v1::ExtractEvent> parts)>;
  // Makes the products of the frame by a bounded number of threads, for which it may wait. Each one that is
  // asked for comes once. Cancelled once a stop is requested.
  absl::Status Make(const Frame& frame, const std::stop_token& stop, const Sink& sink);
  // Whether a device may make them, so that the frame's spectra had better stay there. REQUIRES: Plan.
  bool TakesDevice() const { return any() && too_large_.ok() && parts_.analyser != nullptr; }
  // The frame as its extraction left it on a device; null, or until Make returns.
  void SetResident(std::shared_ptr<DeviceSpectra> resident) { resident_ = std::move(resident); }
  // What it took to make each, that of the sky too where others needed it.
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
