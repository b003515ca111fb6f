// Conversion between the protocol's messages and core's values. Every message made here stays under gRPC's
// default limit of 4 MiB.
#ifndef SPEXD_SERVER_MESSAGES_CONVERT_H_
#define SPEXD_SERVER_MESSAGES_CONVERT_H_

#include <cstdint>
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

// Payload of a message at most.
inline constexpr int64_t kMaxPayloadBytes = 2 << 20;

// Flux, ivar, mask, chi2pix and the resolution's diagonals.
inline constexpr int64_t kBytesPerBin = sizeof(float) * (4 + kResolutionDiagonals);

// A spectrum travels whole in a message, which bounds its bins.
inline constexpr int kMaxRemoteBins = 60000;

// A page of PSFs, with names of up to kMaxStringBytes, fits a message.
inline constexpr int kMaxPsfsPerPage = 1000;

// InvalidArgument for strings as CheckStrings and for options as CheckJobOptions; PlanJob checks the rest.
absl::StatusOr<JobSpec> ToJobSpec(const v1::JobHeader& header);

// The messages of a frame's information, of an image of `rows` by `columns` pixels.
std::vector<v1::ExtractEvent> CutFrameInfo(const JobPlan& plan, int rows, int columns);
// Bytes of the arrays of its spectra, and of its model if it has one.
int64_t ResultBytes(const JobPlan& plan, int rows, int columns);

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
std::vector<v1::ExtractEvent> CutSummary(const JobReport& report);

void ToProto(const WarmCache::Info& info, v1::PsfInfo* out);

// InvalidArgument: no kind that this server knows.
absl::StatusOr<WarmKind> ToWarmKind(v1::WarmKind kind);

void ToProto(const DeviceStatus& device, v1::DeviceInfo* out);

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_CONVERT_H_
