// Conversion between the protocol's messages and core's values. Every message made here stays under gRPC's
// default limit of 4 MiB.
#ifndef SPEXD_SERVER_CONVERT_H_
#define SPEXD_SERVER_CONVERT_H_

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "core/frame/bundle_spectra.h"
#include "core/frame/frame_assembler.h"
#include "core/frame/job.h"
#include "server/psf_cache.h"
#include "spexd/v1/extraction.pb.h"
#include "spexd/v1/registry.pb.h"

namespace spexd {

// Receives messages one by one; returning false ends the sending.
using EventWriter = std::function<bool(const v1::ExtractEvent&)>;

// A spectrum travels whole in a message, which bounds its bins.
inline constexpr int kMaxRemoteBins = 60000;

// InvalidArgument for fields that are out of range by themselves; PlanJob checks the rest.
absl::StatusOr<JobSpec> ToJobSpec(const v1::JobHeader& header);

bool WriteFrameInfo(const JobPlan& plan, int rows, int columns, const EventWriter& write);

// The bundle's model, if any, then its spectra.
bool WriteBundle(const BundleSpectra& bundle, int bins, const EventWriter& write);

struct JobReport {
  std::string job_id, engine, psf_hash;
  FrameSummary summary;
  std::vector<std::pair<std::string, double>> stages;  // seconds
  double queue_seconds = 0;
  double run_seconds = 0;
  // Time of Prepare and Extract: expected by the engine (0 if it makes no estimate), and measured.
  double estimated_seconds = 0;
  double engine_seconds = 0;
};
bool WriteSummary(const JobReport& report, const EventWriter& write);

void ToProto(const PsfCache::Info& info, v1::PsfInfo* out);

void ToProto(const DeviceStatus& device, v1::DeviceInfo* out);

}  // namespace spexd

#endif  // SPEXD_SERVER_CONVERT_H_
