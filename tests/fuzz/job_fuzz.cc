// A job as a client sends it: a header, chunks and ends of its uploads, through everything that the server
// does before it opens a file.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/frame/job.h"
#include "core/traces/shifts/reference.h"
#include "server/admission/string_limits.h"
#include "server/detached/submit_header.h"
#include "server/inputs/job_claims.h"
#include "server/inputs/job_inputs.h"
#include "server/messages/convert.h"
#include "server/schedule/schedule.h"
#include "tests/fits/samples.h"
#include "tests/fuzz/support/fuzz_check.h"
#include "tests/fuzz/support/submission.h"
#include "tests/support/temp_folder.h"

namespace spexd::fuzz {
namespace {

constexpr int64_t kMaxUploadBytes = int64_t{1} << 20;
constexpr int64_t kInputs = 6;
constexpr double kMaxKeepSeconds = 604800;
constexpr int64_t kKeepSeconds = 86400;

const ErrorRules kNamesOfUsers = {.also = {absl::StatusCode::kNotFound}, .utf8 = true};

// Checks a text that goes into logs, listings and terminals.
void RequireName(const std::string& name, size_t most = kMaxStringBytes) {
  Require(name.size() <= most, "a name is short");
  Require(std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }),
          "a name has no control characters");
}

// The stored header must be the same job, however often it is read.
void RequireKept(const v1::SubmitHeader& header, const JobSpec& spec) {
  const StoredJob job = JobOf(header, kKeepSeconds);
  for (const std::string& name : {job.image, job.psf, job.request_id}) RequireName(name);
  Require(!job.request_id.empty() && job.keep_seconds > 0, "a job has its identity's name and its time");
  v1::SubmitHeader again = header;
  Require(again.mutable_job()->ParseFromString(job.header), "a header that is kept is read");
  Require(JobOf(again, kKeepSeconds).header == job.header, "a header is kept in the same bytes");
  const absl::StatusOr<JobSpec> kept = ToJobSpec(again.job());
  Require(kept.ok() && *kept == spec, "a header that is kept says the same");
}

// Plans the job for a PSF and an image of fitting size.
void Plan(const JobSpec& spec) {
  static const auto psf = std::make_shared<const Psf>(testing::SamplePsf());
  JobInput input;
  input.image_name = input.psf_name = "a file";
  input.image_rows = psf->rows;
  input.image_columns = psf->columns;
  input.psf = psf;
  const HeapMeter meter;
  const absl::StatusOr<JobPlan> plan = PlanJob(spec, input);
  RequireHeapWithin(meter, StructureBytes(0), "a plan");
  RequireGoodError(plan.status());
  if (!plan.ok()) return;
  Require(plan->fibres.first >= 0 && plan->fibres.count >= 1 && plan->fibres.end() <= psf->fibres,
          "a plan's fibres are the PSF's");
  Require(plan->bundles >= 1 && plan->bundles <= plan->fibres.count, "a plan's bundles have fibres");
}

// Sends the job through an empty queue: it gets a slot, and leaves.
void Queue(const v1::JobHeader& header, int64_t bytes) {
  JobClaim claim = ClaimOf(header, {"me", {true, true, false}}, "ipv4:10.0.0.7:41234");
  claim.bytes = bytes;
  RequireName(claim.psf, 2 * kMaxStringBytes);
  RequireName(claim.kind);
  RequireName(claim.reader);
  Schedule schedule(Schedule::Limits{});
  const Schedule::Time now(std::chrono::hours(1));
  Require(!schedule.WhyNot(claim, now).has_value(), "an empty queue takes a job");
  const Schedule::JobId job = schedule.Admit(claim, now).id;
  Require(schedule.stats(now).bytes == bytes, "a job's bytes are counted");
  schedule.Join(job, now);
  Require(schedule.Next(now) == job, "a job alone gets a slot");
  schedule.ReleaseSlot(job, true, now + std::chrono::seconds(1));
  schedule.Remove(job, now + std::chrono::seconds(1));
  const Schedule::Stats left = schedule.stats(now + std::chrono::seconds(1));
  Require(left.running == 0 && left.waiting == 0 && left.bytes == 0, "nothing of a job that left is counted");
}

// Receives the uploads; this must take little more memory than their size.
void Receive(InputReceiver receiver, const std::vector<v1::SubmitRequest>& messages) {
  const HeapMeter meter;
  const int64_t most = receiver.declared_bytes() + StructureBytes(0);
  for (size_t k = 1; k < messages.size(); ++k) {
    const absl::Status added = receiver.Add(messages[k]);
    RequireGoodError(added, kNamesOfUsers);
    if (!added.ok()) return;
  }
  const bool complete = receiver.complete();
  absl::StatusOr<JobInputs> inputs = receiver.Finish();
  RequireGoodError(inputs.status(), kNamesOfUsers);
  Require(inputs.ok() == complete, "inputs are whole where all have ended");
  RequireHeapWithin(meter, most, "receiving inputs");
  if (!inputs.ok()) return;
  RequireName(inputs->products.fiberflat_hash);
  RequireName(inputs->products.templates_hash);
  RequireName(inputs->trace_reference_hash);
  if (inputs->trace_reference.has_value() && inputs->trace_reference->bytes.has_value()) {
    RequireGoodError(
        ParseReferenceSpectrum(inputs->trace_reference->name, *inputs->trace_reference->bytes).status(),
        kNamesOfUsers);
  }
  static const PathPolicy none = *PathPolicy::Make({});
  for (std::optional<FileInput>* file :
       {&inputs->image, &inputs->psf, &inputs->fibermap, &inputs->trace_reference,
        &inputs->products.fiberflat, &inputs->products.templates}) {
    if (file->has_value()) RequireGoodError((*file)->Measure(none, kMaxUploadBytes).status(), kNamesOfUsers);
  }
}

void CheckPaths(const std::vector<std::string>& paths) {
  static const testing::TempFolder root;
  static const PathPolicy policy = *PathPolicy::Make({root.path()});
  for (const std::string& path : paths) RequireGoodError(policy.Check(path), kNamesOfUsers);
}

void Submit(const std::vector<v1::SubmitRequest>& messages) {
  const v1::SubmitHeader& header = messages[0].header();
  const absl::Status good = CheckSubmitHeader(header, kMaxKeepSeconds);
  RequireGoodError(good, kNamesOfUsers);
  const absl::StatusOr<JobSpec> spec = ToJobSpec(header.job());
  RequireGoodError(spec.status(), kNamesOfUsers);
  Require(spec.ok() || !good.ok(), "a Submit checks all that an Extract does");
  if (!spec.ok()) return;
  Plan(*spec);
  absl::StatusOr<InputReceiver> receiver = InputReceiver::Make(header.job(), kMaxUploadBytes);
  RequireGoodError(receiver.status(), kNamesOfUsers);
  if (!receiver.ok()) return;
  if (good.ok()) RequireKept(header, *spec);
  const int64_t bytes = receiver->declared_bytes();
  Require(bytes >= 0 && bytes <= kInputs * kMaxUploadBytes, "uploads are within their limit");
  Queue(header.job(), bytes);
  CheckPaths(receiver->paths());
  Receive(*std::move(receiver), messages);
}

void Fuzz(const std::string& input) {
  const std::vector<v1::SubmitRequest> messages = MessagesOf(input);
  if (messages.empty() || !messages[0].has_header()) return;
  Submit(messages);
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spexd::fuzz::Fuzz(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
