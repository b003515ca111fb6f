// Conversion between protobuf messages and core's values. Every message stays under gRPC's default limit of
// 4 MiB.
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

// The largest payload of a message, in bytes.
inline constexpr int64_t kMaxPayloadBytes = 2 << 20;

// The bytes of a bin in messages: flux, ivar, mask, chi2pix and the resolution's diagonals.
inline constexpr int64_t kBytesPerBin = sizeof(float) * (4 + kResolutionDiagonals);

// The largest number of bins of a remote job. It is limited because a message has whole spectra.
inline constexpr int kMaxRemoteBins = 60000;

// The largest page of PSFs. It fits a message even if names have kMaxStringBytes.
inline constexpr int kMaxPsfsPerPage = 1000;

// Returns the options of a header. InvalidArgument as in CheckStrings and CheckJobOptions; PlanJob checks the
// rest.
absl::StatusOr<JobSpec> ToJobSpec(const v1::JobHeader& header);

// Returns the messages of a frame's information. The image has `rows` by `columns` pixels.
std::vector<v1::ExtractEvent> CutFrameInfo(const JobPlan& plan, int rows, int columns);
// Returns the bytes of the frame's spectra, and of its model if it has one.
int64_t ResultBytes(const JobPlan& plan, int rows, int columns);

// A message of a bundle (a BundlePart or a ModelPart), with its arrays kept apart.
struct BundlePiece {
  v1::ExtractEvent event;
  // Field numbers of the arrays, and their bytes, which belong to the bundle.
  std::vector<std::pair<int, absl::string_view>> arrays;
};
// Cuts a bundle into messages with checksums: first its model, if any, then its spectra.
std::vector<BundlePiece> CutBundle(const BundleSpectra& bundle, int bins);

// Returns the message with copies of its arrays.
v1::ExtractEvent Whole(const BundlePiece& piece);

struct JobReport : JobResult {
  std::string job_id;
  double queue_seconds = 0;
};
// Returns the messages of a job's summary.
std::vector<v1::ExtractEvent> CutSummary(const JobReport& report);

void ToProto(const WarmCache::Info& info, v1::PsfInfo* out);

// InvalidArgument: this server does not know the kind.
absl::StatusOr<WarmKind> ToWarmKind(v1::WarmKind kind);

void ToProto(const DeviceStatus& device, v1::DeviceInfo* out);

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_CONVERT_H_
