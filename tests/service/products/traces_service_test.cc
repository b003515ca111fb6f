// Trace shifts of the service, through a real channel: what is measured, the reference in each of its forms,
// and what goes wrong.
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/connection/grpc_connection.h"
#include "client/embedded/embedded_extractor.h"
#include "client/extract_client.h"
#include "core/base/digest/sha256.h"
#include "core/extract/cpu/cpu_engine.h"
#include "core/fits/writers.h"
#include "core/traces/shifts/reference.h"
#include "proto/assembler/event_assembler.h"
#include "proto/trace_report.h"
#include "server/server.h"
#include "tests/service/support/harness.h"
#include "tests/support/matchers.h"
#include "tests/traces/shifted_files.h"
#include "tests/traces/shifted_frame.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

constexpr double kShiftX = 0.3, kShiftY = 0.2;  // pixels
constexpr int kFibresAsked = 10;

const ShiftedFrame& FrameOfMovedTraces() {
  static const ShiftedFrame frame =
      MakeShiftedFrame({.x = MakeSeries({{kShiftX}}), .y = MakeSeries({{kShiftY}})});
  return frame;
}

class TracesTest : public ServiceTest {
 protected:
  TracesTest() {
    const ShiftedFrame& frame = FrameOfMovedTraces();
    EXPECT_TRUE(WritePsf(frame.psf, psf_).ok());
    WriteImage(frame.image, image_);
    WriteBytes(reference_, TextOf(frame.sky));
    options_.jobs_dir = folder_ / "jobs";
  }

  // Returns a header with all inputs by path.
  v1::JobHeader TracesHeader() const {
    v1::JobHeader header;
    header.mutable_image()->set_path(image_);
    header.mutable_psf()->set_path(psf_);
    header.mutable_trace_reference()->set_path(reference_);
    header.set_trace_shifts(v1::TRACE_AXES_XY);
    header.set_fibre_count(kFibresAsked);
    return header;
  }
  UploadData ReferenceUpload() const {
    return {.input = v1::INPUT_TRACE_REFERENCE,
            .bytes = ReadBytes(reference_),
            .end_sha256 = "",
            .chunk = 100000};
  }
  static void SetUpload(const std::string& name, const std::string& bytes, v1::JobHeader* header) {
    v1::Upload* const upload = header->mutable_trace_reference()->mutable_upload();
    upload->set_name(name);
    upload->set_bytes(bytes.size());
  }
  // Returns a header with an image without light and the PSF of PathHeader.
  v1::JobHeader DarkHeader() const {
    Image image;
    image.pixels.Assign({kRows, kColumns});
    image.ivar.Assign({kRows, kColumns}, 0.1f);
    WriteImage(image, folder_ / "dark.fits");
    v1::JobHeader header = PathHeader();
    header.mutable_image()->set_path(folder_ / "dark.fits");
    header.set_trace_shifts(v1::TRACE_AXES_XY);
    return header;
  }
  client::Job TracesJob() const {
    client::Job job;
    job.image = image_;
    job.psf = psf_;
    job.trace_reference = reference_;
    job.spec.trace_shifts = TraceAxes::kXY;
    job.spec.fibre_count = kFibresAsked;
    return job;
  }
  // Returns the trace shifts of an answer's frame, serialised, without the name of the reference.
  static std::string ShiftsOf(const Answer& answer) {
    EXPECT_TRUE(answer.status.ok()) << answer.message();
    if (answer.frame_info() == nullptr || !answer.frame_info()->has_trace_shifts()) return "none";
    v1::TraceShifts shifts = answer.frame_info()->trace_shifts();
    shifts.clear_reference();
    return shifts.SerializeAsString();
  }
  // Submits a job and watches it to its end.
  Answer Submit(const v1::JobHeader& header, const std::vector<UploadData>& uploads = {}) const {
    const auto jobs = v1::Jobs::NewStub(NewChannel());
    v1::SubmitReply reply;
    Answer answer;
    {
      grpc::ClientContext context;
      answer.status = SubmitJob(jobs.get(), &context, Submission("traces", header), &reply, uploads);
    }
    if (!answer.status.ok()) return answer;
    grpc::ClientContext context;
    answer.status = WatchJob(jobs.get(), &context, reply.job_id(), 0, [&](const v1::WatchEvent& event) {
      if (event.sequence() > 0) answer.events.push_back(event.event());
    });
    return answer;
  }
  std::unique_ptr<v1::PsfRegistry::Stub> Registry() const { return v1::PsfRegistry::NewStub(NewChannel()); }
  int WarmReferences() const {
    v1::ListPsfsRequest request;
    request.set_kind(v1::WARM_KIND_TRACE_REFERENCE);
    v1::ListPsfsResponse response;
    EXPECT_TRUE(ListPsfs(Registry().get(), request, &response).ok());
    return response.psfs_size();
  }

  const std::string psf_ = folder_ / "of-the-night.fits";
  const std::string image_ = folder_ / "moved.fits";
  const std::string reference_ = folder_ / "sky.dat";
};

std::string MessageOf(const TraceReport& report) {
  v1::TraceShifts message;
  SetTraceReport(report, &message);
  return message.SerializeAsString();
}

void ExpectSameFrames(const Frame& a, const Frame& b) {
  EXPECT_TRUE(a.spectra == b.spectra);
  ASSERT_TRUE(a.origin.traces.has_value() && b.origin.traces.has_value());
  EXPECT_EQ(MessageOf(*a.origin.traces), MessageOf(*b.origin.traces));
}

TEST_F(TracesTest, GiveTheFrameOfThisProcessOverExtractAndOverSubmit) {
  const std::unique_ptr<Engine> engine = MakeCpuEngine({.threads = 2});
  const absl::StatusOr<JobOutcome> here =
      client::EmbeddedExtractor(engine.get(), 2).Run(TracesJob(), nullptr, {});
  ASSERT_TRUE(here.ok()) << here.status();
  ASSERT_TRUE(here->frame.origin.traces.has_value());
  const TraceReport& report = *here->frame.origin.traces;
  EXPECT_TRUE(report.moved);
  EXPECT_NEAR(report.shifts.x.mean, kShiftX, 0.01);
  EXPECT_NEAR(report.shifts.y.mean, kShiftY, 0.03);
  EXPECT_EQ(report.u.size(), static_cast<size_t>(kFibresAsked));

  Start(MakeCpuEngine({.threads = 1}));
  const auto connection = client::MakeGrpcConnection(server_->grpc_address());
  for (const bool upload : {false, true}) {
    const absl::StatusOr<JobOutcome> there =
        client::RemoteExtractor(connection.get(), {.upload = upload, .retry = {}})
            .Run(TracesJob(), nullptr, {});
    ASSERT_TRUE(there.ok()) << there.status();
    ExpectSameFrames(there->frame, here->frame);
  }
  const Answer detached = Submit(TracesHeader());
  ASSERT_TRUE(detached.status.ok()) << detached.message();
  EventAssembler assembler(nullptr);
  for (const v1::ExtractEvent& event : detached.events) ASSERT_TRUE(assembler.Add(event).ok());
  const absl::StatusOr<JobOutcome> kept = assembler.Finish();
  ASSERT_TRUE(kept.ok()) << kept.status();
  ExpectSameFrames(kept->frame, here->frame);
}

TEST_F(TracesTest, AreTheSameWithTheReferenceByPathByUploadAndByItsHash) {
  Start();
  const Answer by_path = Extract(TracesHeader());
  ASSERT_NE(ShiftsOf(by_path), "none");
  EXPECT_EQ(by_path.frame_info()->trace_shifts().y().status(), v1::AxisShifts::OK);
  EXPECT_EQ(by_path.frame_info()->trace_shifts().reference(), reference_);
  v1::JobHeader header = TracesHeader();
  SetUpload("mine.dat", ReadBytes(reference_), &header);
  const Answer by_upload = Extract(header, {ReferenceUpload()});
  EXPECT_EQ(ShiftsOf(by_upload), ShiftsOf(by_path));
  EXPECT_EQ(by_upload.frame_info()->trace_shifts().reference(), "mine.dat");
  header.mutable_trace_reference()->set_content_hash(Sha256Hex(ReadBytes(reference_)));
  EXPECT_EQ(ShiftsOf(Extract(header)), ShiftsOf(by_path));
  // The reference was parsed once.
  EXPECT_EQ(WarmReferences(), 1);
  EXPECT_EQ(Metric("spexd_psf_cache_misses_total{kind=\"trace_reference\"}"), 1);
  EXPECT_EQ(Metric("spexd_psf_cache_hits_total{kind=\"trace_reference\"}"), 2);
}

TEST_F(TracesTest, InYAreRelativeWithoutAReference) {
  Start();
  v1::JobHeader header = TracesHeader();
  header.clear_trace_reference();
  const Answer answer = Extract(header);
  ASSERT_NE(ShiftsOf(answer), "none");
  const v1::TraceShifts& shifts = answer.frame_info()->trace_shifts();
  EXPECT_EQ(shifts.x().status(), v1::AxisShifts::OK);
  EXPECT_EQ(shifts.y().status(), v1::AxisShifts::RELATIVE);
  EXPECT_EQ(shifts.reference(), "");
}

TEST_F(TracesTest, AreNotThereUnlessTheyAreAskedFor) {
  Start();
  v1::JobHeader header = TracesHeader();
  header.clear_trace_reference();
  header.clear_trace_shifts();
  EXPECT_EQ(ShiftsOf(Extract(header)), "none");
  EXPECT_EQ(Metric("spexd_stage_duration_seconds_count{stage=\"traces\"}"), 0);
  EXPECT_EQ(Metric("spexd_trace_shifts_total{axis=\"x\",status=\"ok\"}"), 0);
}

TEST_F(TracesTest, OfEachFrameAreInTheMetrics) {
  Start();
  for (int frame = 0; frame < 2; ++frame) ASSERT_NE(ShiftsOf(Extract(TracesHeader())), "none");
  for (const auto& [axis, shift] : {std::pair("x", kShiftX), {"y", kShiftY}}) {
    EXPECT_EQ(Metric(absl::StrFormat("spexd_trace_shifts_total{axis=\"%s\",status=\"ok\"}", axis)), 2);
    EXPECT_EQ(Metric(absl::StrFormat("spexd_trace_shift_pixels_count{axis=\"%s\"}", axis)), 2);
    EXPECT_NEAR(Metric(absl::StrFormat("spexd_trace_shift_pixels_sum{axis=\"%s\"}", axis)), 2 * shift, 0.06);
  }
  EXPECT_EQ(Metric("spexd_stage_duration_seconds_count{stage=\"traces\"}"), 2);
}

TEST_F(TracesTest, MoveAPsfForTheirFrameAloneAndTheWarmOneStaysAsItIs) {
  Start();
  v1::JobHeader plain = TracesHeader();
  plain.clear_trace_reference();
  plain.clear_trace_shifts();
  ASSERT_TRUE(Extract(plain).status.ok());
  const auto grids = [&](const char* what) {
    return Metric(absl::StrFormat("spexd_psf_cache_%s_total{kind=\"grid\"}", what));
  };
  EXPECT_EQ(grids("misses"), 1);
  for (int frame = 0; frame < 2; ++frame) ASSERT_TRUE(Extract(TracesHeader()).status.ok());
  EXPECT_EQ(engine_->seen().prepares, 3);  // the warm PSF once, and a moved one for each frame
  EXPECT_EQ(grids("misses"), 1);
  EXPECT_EQ(grids("hits"), 0);
  EXPECT_EQ(Metric("spexd_psf_cache_misses_total{kind=\"psf\"}"), 1);
  EXPECT_EQ(Metric("spexd_psf_cache_entries"), 2);  // the PSF and the reference
  ASSERT_TRUE(Extract(plain).status.ok());
  EXPECT_EQ(engine_->seen().prepares, 3);
  EXPECT_EQ(grids("hits"), 1);
}

TEST_F(TracesTest, ThatAreRefusedAreReportedAndFailTheJobOnlyIfTheyAreRequired) {
  Start();
  v1::JobHeader header = DarkHeader();
  const Answer answer = Extract(header);
  ASSERT_NE(ShiftsOf(answer), "none");
  const v1::TraceShifts& shifts = answer.frame_info()->trace_shifts();
  EXPECT_EQ(shifts.x().status(), v1::AxisShifts::REFUSED);
  EXPECT_THAT(shifts.reason(), HasSubstr("no light"));
  EXPECT_FALSE(shifts.moved());
  EXPECT_THAT(answer.summary()->warnings(), ::testing::Contains(HasSubstr("no light")));
  EXPECT_EQ(Metric("spexd_trace_shifts_total{axis=\"x\",status=\"refused\"}"), 1);
  header.set_trace_required(true);
  for (const Answer& required : {Extract(header), Submit(header)}) {
    EXPECT_THAT(required.status, StatusIs(StatusCode::FAILED_PRECONDITION, HasSubstr("no light")));
    EXPECT_TRUE(required.parts().empty());
  }
  EXPECT_EQ(Metric("spexd_trace_shifts_total{axis=\"x\",status=\"refused\"}"), 3);
}

TEST_F(TracesTest, WithABadReferenceAreRefusedWithItsFieldFileAndLine) {
  Start();
  const auto refused = [&](const v1::JobHeader& header, StatusCode code, const std::string& words,
                           const std::vector<UploadData>& uploads = {}) {
    const Answer answer = Extract(header, uploads);
    EXPECT_THAT(answer.status, StatusIs(code, HasSubstr(words)));
    EXPECT_TRUE(answer.parts().empty());
  };
  v1::JobHeader header = TracesHeader();
  const std::string text = "6300 1\n6200 2\n";
  SetUpload("bad.dat", text, &header);
  refused(header, StatusCode::INVALID_ARGUMENT,
          "trace_reference: bad.dat, line 2 (\"6200 2\"): wavelengths must",
          {{v1::INPUT_TRACE_REFERENCE, text, ""}});
  WriteText(folder_ / "bad.dat", text);
  header.mutable_trace_reference()->set_path(folder_ / "bad.dat");
  refused(header, StatusCode::INVALID_ARGUMENT, "trace_reference: " + (folder_ / "bad.dat") + ", line 2");
  header.mutable_trace_reference()->set_path(folder_ / "none.dat");
  refused(header, StatusCode::NOT_FOUND, "none.dat");
  header.mutable_trace_reference()->set_path("/etc/hosts");
  refused(header, StatusCode::PERMISSION_DENIED, "/etc/hosts");
  header.mutable_trace_reference()->mutable_upload()->set_bytes(kMaxReferenceBytes + 1);
  refused(header, StatusCode::INVALID_ARGUMENT,
          "trace_reference: an upload of 67108865 bytes, the server's limit is 67108864");
  header.mutable_trace_reference()->set_content_hash("0123");
  refused(header, StatusCode::FAILED_PRECONDITION,
          "content_hash \"0123\" names no trace_reference that is loaded");
  header.mutable_trace_reference()->set_content_hash("");
  refused(header, StatusCode::INVALID_ARGUMENT, "trace_reference: content_hash is empty");
  header.mutable_trace_reference()->set_psf_hash("0123");
  refused(header, StatusCode::INVALID_ARGUMENT, "trace_reference: psf_hash is only for the PSF");
  header = TracesHeader();
  header.clear_trace_shifts();
  refused(header, StatusCode::INVALID_ARGUMENT, "trace_reference is given, but trace_shifts is off");
  EXPECT_EQ(WarmReferences(), 0);
}

TEST_F(TracesTest, WithAReferenceThatNeedsMoreMemoryThanTheServerHasAreRefused) {
  options_.max_input_bytes = 12'000'000;
  std::string text;
  for (int line = 1; line <= 300000; ++line) absl::StrAppend(&text, line, " 1\n");
  WriteText(reference_, text);
  Start();
  v1::JobHeader header = DarkHeader();
  EXPECT_TRUE(Extract(header).status.ok());
  header.mutable_trace_reference()->set_path(reference_);
  const Answer answer = Extract(header);
  EXPECT_THAT(answer.status, StatusIs(StatusCode::RESOURCE_EXHAUSTED, HasSubstr("14400")));
  EXPECT_EQ(answer.retry_seconds(), -1);
  EXPECT_EQ(WarmReferences(), 0);
}

TEST_F(TracesTest, HaveAReferenceThatIsLoadedAheadOfJobs) {
  Start();
  v1::LoadPsfHeader load;
  load.set_path(reference_);
  load.set_kind(v1::WARM_KIND_TRACE_REFERENCE);
  v1::PsfInfo info;
  {
    grpc::ClientContext context;
    const grpc::Status loaded = LoadPsf(Registry().get(), &context, load, &info);
    ASSERT_TRUE(loaded.ok()) << loaded.error_message();
  }
  EXPECT_EQ(info.hash(), Sha256Hex(ReadBytes(reference_)));
  EXPECT_EQ(info.rows(), FrameOfMovedTraces().sky.wave.size());
  EXPECT_EQ(info.columns(), 2u);
  v1::JobHeader header = TracesHeader();
  header.mutable_trace_reference()->set_content_hash(info.hash());
  ASSERT_NE(ShiftsOf(Extract(header)), "none");
  EXPECT_EQ(Metric("spexd_psf_cache_misses_total{kind=\"trace_reference\"}"), 1);
  EXPECT_TRUE(UnloadPsf(Registry().get(), info.hash(), v1::WARM_KIND_TRACE_REFERENCE).ok());
  EXPECT_EQ(WarmReferences(), 0);
  load.set_path(psf_);
  grpc::ClientContext context;
  EXPECT_THAT(LoadPsf(Registry().get(), &context, load, &info),
              StatusIs(StatusCode::INVALID_ARGUMENT, HasSubstr(psf_ + ", line 1")));
}

TEST_F(TracesTest, OfADetachedJobHaveTheirReferenceInItsFolderUntilItEnds) {
  Start();
  CloseGateAfter(0);
  v1::JobHeader header = TracesHeader();
  SetUpload("mine.dat", ReadBytes(reference_), &header);
  const auto jobs = v1::Jobs::NewStub(NewChannel());
  v1::SubmitReply reply;
  {
    grpc::ClientContext context;
    const grpc::Status submitted =
        SubmitJob(jobs.get(), &context, Submission("kept", header), &reply, {ReferenceUpload()});
    ASSERT_TRUE(submitted.ok()) << submitted.error_message();
  }
  const std::string kept = options_.jobs_dir + "/jobs/" + reply.job_id() + "/trace_reference";
  EXPECT_EQ(ReadBytes(kept), ReadBytes(reference_));
  ASSERT_TRUE(AtGate(1));
  OpenGate();
  grpc::ClientContext context;
  std::string shifts;
  const grpc::Status watched =
      WatchJob(jobs.get(), &context, reply.job_id(), 0, [&](const v1::WatchEvent& event) {
        if (event.event().frame_info().has_trace_shifts())
          shifts = event.event().frame_info().trace_shifts().reference();
      });
  EXPECT_TRUE(watched.ok()) << watched.error_message();
  EXPECT_EQ(shifts, "mine.dat");
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(kept); }));
}

TEST_F(TracesTest, OfADetachedJobWithAHashThatIsNotWarmAreRefusedAtOnce) {
  Start();
  v1::JobHeader header = TracesHeader();
  header.mutable_trace_reference()->set_content_hash("0123");
  EXPECT_THAT(Submit(header).status,
              StatusIs(StatusCode::FAILED_PRECONDITION, HasSubstr("\"0123\" names no")));
}

}  // namespace
}  // namespace spexd::testing
