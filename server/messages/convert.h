// Conversion between the protocol's messages and core's values. Every message made here stays under gRPC's
// default limit of 4 MiB.
#ifndef SPEXD_SERVER_MESSAGES_CONVERT_H_
#define SPEXD_SERVER_MESSAGES_CONVERT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/frame/bundle_spectra.h"
#include "core/frame/frame_assembler.h"
#include "core/frame/job.h"
#include "core/job/run_job.h"
#include "server/admission/warm_cache.h"
#include "spexd/v1/extraction.pb.h"
#include "spexd/v1/registry.pb.h"

namespace spexd {

// Receives messages one by one; returning false ends the sending.
using EventWriter = std::function<bool(const v1::ExtractEvent&)>;

// Payload of a message at most.
inline constexpr int64_t kMaxPayloadBytes = 2 << 20;

// A spectrum travels whole in a message, which bounds its bins.
inline constexpr int kMaxRemoteBins = 60000;

// A page of PSFs, with names of up to kMaxStringBytes, fits a message.
inline constexpr int kMaxPsfsPerPage = 1000;

// InvalidArgument for fields that are out of range by themselves; PlanJob checks the rest.
absl::StatusOr<JobSpec> ToJobSpec(const v1::JobHeader& header);

bool WriteFrameInfo(const JobPlan& plan, int rows, int columns, const EventWriter& write);

// A message of a bundle, a BundlePart or a ModelPart, beside its arrays.
struct BundlePiece {
  v1::ExtractEvent event;
  // Fields by number, and their bytes, which lie in the bundle.
  std::vector<std::pair<int, absl::string_view>> arrays;
};
// Cuts a bundle into messages with their checksums: its model, if any, then its spectra.
std::vector<BundlePiece> CutBundle(const BundleSpectra& bundle, int bins);

// The message with copies of the arrays in it.
v1::ExtractEvent Whole(const BundlePiece& piece);

struct JobReport : JobResult {
  std::string job_id;
  double queue_seconds = 0;
};
bool WriteSummary(const JobReport& report, const EventWriter& write);

void ToProto(const WarmCache::Info& info, v1::PsfInfo* out);

// InvalidArgument: no kind that this server knows.
absl::StatusOr<WarmKind> ToWarmKind(v1::WarmKind kind);

void ToProto(const DeviceStatus& device, v1::DeviceInfo* out);

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_CONVERT_H_
