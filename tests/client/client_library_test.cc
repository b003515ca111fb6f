// The client library with scripted servers.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "client/connection/events_ahead.h"
#include "client/connection/grpc_call.h"
#include "client/extract_client.h"
#include "client/psf_list.h"
#include "client/upload/input_file.h"
#include "client/upload/psf_upload.h"
#include "core/base/digest/crc32c.h"
#include "core/base/digest/sha256.h"
#include "proto/assembler/event_assembler.h"
#include "proto/trace_report.h"
#include "tests/client/support/fake_connection.h"
#include "tests/support/matchers.h"

namespace spexd::client {
namespace {

using spexd::testing::FakeConnection;
using spexd::testing::GoodEvents;
using spexd::testing::Script;
using spexd::testing::SomeJob;
using std::chrono::milliseconds;

const CallResult kFine = {absl::OkStatus(), {}};

Script Refusal(absl::Status status, std::optional<milliseconds> delay = {}) {
  return {{}, {std::move(status), delay}};
}

RemoteOptions Hasty() {
  RemoteOptions options;
  options.retry.first_wait = milliseconds(1);
  options.retry.queue_patience = milliseconds(50);
  return options;
}

// A call without end, unless it is cancelled. Its events are numbered.
class EndlessStream : public ExtractStream {
 public:
  bool Write(const v1::ExtractRequest&) override { return true; }
  bool WritesDone() override { return true; }
  bool Read(v1::ExtractEvent* event) override {
    event->mutable_progress()->set_bundles_done(read++);
    return !cancelled;
  }
  CallResult Finish() override { return kFine; }
  void Cancel() override { cancelled = true; }

  std::atomic<uint32_t> read = 0;
  std::atomic<bool> cancelled = false;
};

TEST(EventsAhead, ComeInOrderAndNotWithoutBound) {
  EndlessStream stream;
  {
    EventsAhead events(&stream);
    v1::ExtractEvent event;
    for (uint32_t k = 0; k < 100; ++k) {
      ASSERT_TRUE(events.Next(&event));
      EXPECT_EQ(event.progress().bundles_done(), k);
      EXPECT_LE(stream.read, k + 10) << "so many wait in this process";
    }
    EXPECT_FALSE(stream.cancelled);
  }
  EXPECT_TRUE(stream.cancelled) << "nobody takes the others";
}

class OutcomeRecorder : public JobObserver {
 public:
  void OnAccepted(const std::string& job_id, int queue_position) override { accepted.push_back(job_id); }
  void OnBundle(const BundleSpectra& bundle, int done, int total) override {
    bundles.push_back(bundle.bundle);
    messages.emplace_back(bundle.status.message());
    EXPECT_EQ(done, static_cast<int>(bundles.size()));
    EXPECT_EQ(total, 2);
  }
  void OnRetry(int attempt, const absl::Status& reason, milliseconds delay) override {
    retries.push_back(delay);
    if (cancel != nullptr) cancel->request_stop();
  }

  std::vector<std::string> accepted, messages;
  std::vector<int> bundles;
  std::vector<milliseconds> retries;
  std::stop_source* cancel = nullptr;
};

struct Ran {
  absl::StatusOr<JobOutcome> outcome;
  OutcomeRecorder seen;
  size_t calls;
};

Ran RunScripts(std::vector<Script> scripts) {
  FakeConnection connection(std::move(scripts));
  OutcomeRecorder seen;
  absl::StatusOr<JobOutcome> outcome = RemoteExtractor(&connection, Hasty()).Run(SomeJob(), &seen, {});
  return {std::move(outcome), std::move(seen), connection.calls};
}

// Returns the message of the DataLoss in which `events` end, on both of the attempts that a damaged answer
// gets.
std::string DamageOf(const std::vector<v1::ExtractEvent>& events) {
  const Ran ran = RunScripts({{events, kFine}, {events, kFine}});
  EXPECT_EQ(ran.outcome.status().code(), absl::StatusCode::kDataLoss) << ran.outcome.status();
  return std::string(ran.outcome.status().message());
}

// gRPC ends a call with the same status if its server shuts down as if the client cancelled it.
TEST(GrpcCall, TellsAServerThatStopsFromACallThatWasCancelled) {
  const grpc::Status ended(grpc::StatusCode::CANCELLED, "CANCELLED");
  GrpcCall call("a:50051", {}, {});
  EXPECT_EQ(call.StatusOf(ended), absl::UnavailableError("spexd at a:50051: the server stops"));
  call.Cancel();
  EXPECT_TRUE(absl::IsCancelled(call.StatusOf(ended)));
}

TEST(RemoteExtractor, AssemblesAFrameFromBundlesInAnyOrder) {
  const Ran ran = RunScripts({{GoodEvents(), kFine}});
  ASSERT_TRUE(ran.outcome.ok()) << ran.outcome.status();
  const Frame& frame = ran.outcome->frame;
  EXPECT_EQ(frame.fibres, (FibreRange{10, 5}));
  EXPECT_EQ(frame.grid, (WavelengthGrid{6000, 0.8, 4}));
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 4; ++j) {
      EXPECT_EQ(frame.spectra.flux(i, j), 100 * (10 + i) + j);
      EXPECT_EQ(frame.spectra.resolution(i, 2, j), 1000 * (10 + i) + 2 * 4 + j);
      EXPECT_EQ(frame.spectra.mask(i, j), i == 1 && j == 1 ? kMaskBad2dFit : 0u);
    }
  }
  EXPECT_EQ(frame.origin.version, "9.9");
  EXPECT_THAT(ran.seen.bundles, ElementsAre(1, 0));
  EXPECT_THAT(ran.seen.accepted, ElementsAre("job-1"));
}

TEST(RemoteExtractor, NamesTheInputsAsThisSideKnowsThem) {
  const Ran ran = RunScripts({{GoodEvents(), kFine}});
  ASSERT_TRUE(ran.outcome.ok());
  EXPECT_EQ(ran.outcome->frame.origin.input_image, "image.fits");
  EXPECT_EQ(ran.outcome->frame.origin.input_psf, "psf.fits");
}

// Returns events of a frame whose shifts in x were measured, changed by `change`.
std::vector<v1::ExtractEvent> EventsWithTraces(const std::function<void(v1::TraceShifts*)>& change = {}) {
  TraceReport report;
  report.shifts.x.status = ShiftStatus::kOk;
  report.shifts.x.series.Assign({2, 1}, 0.1);
  report.shifts.x.covariance.Assign({2, 2}, 1e-6);
  report.reference = "/server/sky.dat";
  report.wave_min = 5990;
  report.wave_max = 6010;
  report.u.assign(spexd::testing::kEventFibres, 0.25);
  std::vector<v1::ExtractEvent> events = GoodEvents();
  v1::TraceShifts* const shifts = events[1].mutable_frame_info()->mutable_trace_shifts();
  SetTraceReport(report, shifts);
  if (change) change(shifts);
  return events;
}

TEST(RemoteExtractor, ReadsTheTraceShiftsOfTheFrameAndNamesTheReferenceAsThisSideKnowsIt) {
  FakeConnection connection({{EventsWithTraces(), kFine}});
  Job job = SomeJob();
  job.spec.trace_shifts = TraceAxes::kXY;
  job.trace_reference = "sky.dat";
  const absl::StatusOr<JobOutcome> outcome = RemoteExtractor(&connection, Hasty()).Run(job, nullptr, {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(connection.requests[0].header().trace_shifts(), v1::TRACE_AXES_XY);
  EXPECT_EQ(connection.requests[0].header().trace_reference().path(),
            (std::filesystem::current_path() / "sky.dat").string());
  ASSERT_TRUE(outcome->frame.origin.traces.has_value());
  EXPECT_EQ(outcome->frame.origin.traces->shifts.x.series(1, 0), 0.1);
  EXPECT_EQ(outcome->frame.origin.traces->reference, "sky.dat");
}

TEST(RemoteExtractor, RefusesTraceShiftsThatAreNotTheFrames) {
  EXPECT_THAT(DamageOf(EventsWithTraces([](auto* shifts) { shifts->mutable_u()->resize(8); })),
              HasSubstr("damaged: trace_shifts.u has 8 bytes, must have 8 for each of 5 fibres"));
  EXPECT_THAT(DamageOf(EventsWithTraces([](auto* shifts) { shifts->mutable_x()->set_t_terms(2); })),
              HasSubstr("trace_shifts.x: 2 coefficients and 4 covariances of a series of 2 x 2 terms"));
}

TEST(RemoteExtractor, NoticesThatTraceShiftsAreMissing) {
  FakeConnection connection({{GoodEvents(), kFine}, {GoodEvents(), kFine}});
  Job job = SomeJob();
  job.spec.trace_shifts = TraceAxes::kX;
  EXPECT_THAT(RemoteExtractor(&connection, Hasty()).Run(job, nullptr, {}).status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("nothing of the trace shifts")));
}

TEST(RemoteExtractor, RefusesAReferenceOfAJobThatMeasuresNoTraceShifts) {
  FakeConnection connection({});
  Job job = SomeJob();
  job.trace_reference = "sky.dat";
  EXPECT_THAT(RemoteExtractor(&connection).Run(job, nullptr, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("trace_reference is given, but trace_shifts is off")));
  EXPECT_EQ(connection.calls, 0u);
}

TEST(RemoteExtractor, AddsTheBundlesModelsUp) {
  const Ran ran =
      RunScripts({{{spexd::testing::Info(true), spexd::testing::Model(1, 2), spexd::testing::Part(1, 12, 3),
                    spexd::testing::Model(0, 1), spexd::testing::Part(0, 10, 2), spexd::testing::Summary()},
                   kFine}});
  ASSERT_TRUE(ran.outcome.ok()) << ran.outcome.status();
  const Array<float, 2>& model = ran.outcome->model;
  ASSERT_EQ(model.shape(), (std::array<int64_t, 2>{3, 6}));
  EXPECT_EQ(model(0, 0), 1);
  EXPECT_EQ(model(2, 3), 3);
  EXPECT_EQ(model(2, 5), 2);
}

TEST(RemoteExtractor, KeepsABundleThatFailedWithItsReason) {
  v1::ExtractEvent failed = spexd::testing::Part(0, 10, 2);
  v1::BundlePart& part = *failed.mutable_bundle();
  part.set_error("out of luck");
  for (std::string* bytes : {part.mutable_flux(), part.mutable_ivar(), part.mutable_mask(),
                             part.mutable_resolution(), part.mutable_chi2pix()}) {
    bytes->clear();
  }
  spexd::testing::SetChecksum(&part);
  const Ran ran = RunScripts(
      {{{spexd::testing::Info(), failed, spexd::testing::Part(1, 12, 3), spexd::testing::Summary()}, kFine}});
  ASSERT_TRUE(ran.outcome.ok()) << ran.outcome.status();
  EXPECT_TRUE(ran.outcome->frame.spectra.mask(0, 0) & kMaskNoData);
  EXPECT_EQ(ran.outcome->frame.spectra.mask(2, 0), 0u);
  EXPECT_THAT(ran.seen.messages, ElementsAre("out of luck", ""));
}

TEST(RemoteExtractor, RefusesABundleWithAWrongChecksum) {
  std::vector<v1::ExtractEvent> events = GoodEvents();
  (*events[2].mutable_bundle()->mutable_flux())[5] ^= 1;
  EXPECT_THAT(DamageOf(events), HasSubstr("checksum"));
}

TEST(RemoteExtractor, RefusesAModelWithAWrongChecksum) {
  v1::ExtractEvent model = spexd::testing::Model(0, 1);
  (*model.mutable_model()->mutable_pixels())[5] ^= 1;
  EXPECT_THAT(DamageOf({spexd::testing::Info(true), model}), HasSubstr("model of bundle 0: wrong checksum"));
}

TEST(RemoteExtractor, RefusesAProductOfAFrameWithoutAFibermap) {
  std::vector<v1::ExtractEvent> events = GoodEvents();
  v1::ExtractEvent product;
  product.mutable_product()->set_product(v1::PRODUCT_LINES);
  product.mutable_product()->mutable_lines();
  product.mutable_product()->set_last(true);
  events.insert(events.end() - 1, product);
  EXPECT_THAT(DamageOf(events), HasSubstr("a product of a frame without a fibermap"));
}

TEST(RemoteExtractor, NamesAFibreThatNeverCame) {
  EXPECT_THAT(DamageOf({spexd::testing::Info(), spexd::testing::Summary()}),
              HasSubstr("fibre 10 never came"));
  const Ran ran = RunScripts(
      {{{spexd::testing::Info(), spexd::testing::Part(0, 10, 2), spexd::testing::Summary()}, kFine}});
  EXPECT_THAT(ran.outcome.status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("1 of 2 bundles; fibre 12 never came")));
}

TEST(RemoteExtractor, ReportsAStreamThatEndsBeforeItsSummary) {
  std::vector<v1::ExtractEvent> events = GoodEvents();
  events.pop_back();
  const Ran ran = RunScripts({{events, kFine}});
  EXPECT_THAT(ran.outcome.status().message(), HasSubstr("before the summary"));
  EXPECT_EQ(ran.calls, 1u);
}

TEST(RemoteExtractor, ReportsAnEmptyStream) {
  EXPECT_THAT(DamageOf({}), HasSubstr("before the first bundle"));
}

TEST(RemoteExtractor, RefusesImpossibleBundles) {
  v1::ExtractEvent part = spexd::testing::Part(0, 10, 2);
  part.mutable_bundle()->set_first_fibre(0xffffffffu);
  EXPECT_THAT(DamageOf({spexd::testing::Info(), part}), HasSubstr("not the frame's"));
  part = spexd::testing::Part(0, 10, 2);
  part.mutable_bundle()->set_bins(5);
  EXPECT_THAT(DamageOf({spexd::testing::Info(), part}), HasSubstr("not the frame's"));
  part = spexd::testing::Part(0, 10, 2);
  part.mutable_bundle()->mutable_ivar()->resize(3);
  EXPECT_THAT(DamageOf({spexd::testing::Info(), part}), HasSubstr("wrong size"));
  EXPECT_THAT(DamageOf({part}), HasSubstr("before the FrameInfo"));
}

TEST(RemoteExtractor, RefusesAFibreThatComesTwice) {
  const Ran ran = RunScripts(
      {{{spexd::testing::Info(), spexd::testing::Part(0, 10, 2), spexd::testing::Part(0, 10, 2)}, kFine}});
  EXPECT_THAT(ran.outcome.status().message(), HasSubstr("fibre 10 came twice"));
}

TEST(RemoteExtractor, TakesNoMemoryForAFrameBeyondAllLimits) {
  v1::ExtractEvent info = spexd::testing::Info();
  info.mutable_frame_info()->mutable_grid()->set_count(1000000);
  info.mutable_frame_info()->set_fibre_count(20000);
  EXPECT_THAT(DamageOf({info}), HasSubstr("20000 fibres x 1000000 bins"));
}

TEST(RemoteExtractor, ComesBackToAFullServerWhenItSays) {
  const Ran ran = RunScripts({Refusal(absl::ResourceExhaustedError("full"), milliseconds(3)),
                              Refusal(absl::ResourceExhaustedError("full"), milliseconds(4)),
                              {GoodEvents(), kFine}});
  EXPECT_TRUE(ran.outcome.ok()) << ran.outcome.status();
  ASSERT_EQ(ran.seen.retries.size(), 2u);
  EXPECT_GE(ran.seen.retries[0].count(), 3);
  EXPECT_GE(ran.seen.retries[1].count(), 4);
  EXPECT_LE(ran.seen.retries[1].count(), 5);
}

TEST(RemoteExtractor, LosesPatienceWithAServerThatStaysFull) {
  const Ran ran =
      RunScripts(std::vector<Script>(100, Refusal(absl::ResourceExhaustedError("full"), milliseconds(20))));
  EXPECT_EQ(ran.outcome.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LE(ran.calls, 3u);
}

TEST(RemoteExtractor, DoesNotRetryAJobThatIsTooLarge) {
  const Ran ran = RunScripts({Refusal(absl::ResourceExhaustedError("too large")), {GoodEvents(), kFine}});
  EXPECT_EQ(ran.outcome.status().message(), "too large");
  EXPECT_EQ(ran.calls, 1u);
}

TEST(RemoteExtractor, DoesNotRetryBadInput) {
  const Ran ran =
      RunScripts({Refusal(absl::InvalidArgumentError("bad"), milliseconds(1)), {GoodEvents(), kFine}});
  EXPECT_EQ(ran.outcome.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ran.calls, 1u);
}

TEST(RemoteExtractor, TriesAnUnreachableServerAFewTimes) {
  EXPECT_TRUE(RunScripts({Refusal(absl::UnavailableError("gone")), {GoodEvents(), kFine}}).outcome.ok());
  const Ran ran = RunScripts({});
  EXPECT_EQ(ran.outcome.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ran.calls, 5u);
}

TEST(RemoteExtractor, TriesADamagedUploadOnceMore) {
  EXPECT_TRUE(RunScripts({Refusal(absl::DataLossError("hash")), {GoodEvents(), kFine}}).outcome.ok());
  EXPECT_EQ(RunScripts({Refusal(absl::DataLossError("a")), Refusal(absl::DataLossError("b"))}).calls, 2u);
}

TEST(RemoteExtractor, DoesNotRetryOnceBundlesArrived) {
  const Ran ran = RunScripts({{{spexd::testing::Info(), spexd::testing::Part(0, 10, 2)},
                               {absl::UnavailableError("died"), milliseconds(1)}},
                              {GoodEvents(), kFine}});
  EXPECT_EQ(ran.outcome.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ran.calls, 1u);
}

TEST(RemoteExtractor, TriesAJobWhoseDeviceFailedAgainIfTheServerSaysSo) {
  const std::vector<v1::ExtractEvent> accepted = {GoodEvents().front()};
  const Ran ran = RunScripts(
      {{accepted, {absl::UnavailableError("device 0 failed"), milliseconds(1)}}, {GoodEvents(), kFine}});
  EXPECT_TRUE(ran.outcome.ok()) << ran.outcome.status();
  EXPECT_EQ(ran.calls, 2u);
  const Ran lost =
      RunScripts({{accepted, {absl::UnavailableError("connection lost"), {}}}, {GoodEvents(), kFine}});
  EXPECT_EQ(lost.calls, 1u);
}

TEST(RemoteExtractor, StopsWaitingWhenCancelled) {
  FakeConnection connection({Refusal(absl::ResourceExhaustedError("full"), std::chrono::minutes(8))});
  std::stop_source cancel;
  OutcomeRecorder seen;
  seen.cancel = &cancel;
  const auto outcome = RemoteExtractor(&connection).Run(SomeJob(), &seen, cancel.get_token());
  EXPECT_EQ(outcome.status().code(), absl::StatusCode::kCancelled);
}

TEST(RemoteExtractor, DoesNotWaitBeyondTheDeadline) {
  FakeConnection connection({Refusal(absl::ResourceExhaustedError("full"), std::chrono::minutes(8))});
  Job job = SomeJob();
  job.deadline = Clock::now() + std::chrono::minutes(1);
  EXPECT_THAT(RemoteExtractor(&connection).Run(job, nullptr, {}).status(),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("full")));
}

TEST(RemoteExtractor, SendsAbsolutePathsByReferenceAndHashesOfLoadedPsfs) {
  FakeConnection connection({{GoodEvents(), kFine}});
  Job job = SomeJob();
  job.psf = "sha256:abc";
  job.spec.grid = WavelengthGrid{6000, 0.8, 4};
  job.spec.fibre_count = 5;
  ASSERT_TRUE(RemoteExtractor(&connection).Run(job, nullptr, {}).ok());
  ASSERT_EQ(connection.requests.size(), 1u);
  const v1::JobHeader& header = connection.requests[0].header();
  EXPECT_EQ(header.image().path(), (std::filesystem::current_path() / "image.fits").string());
  EXPECT_EQ(header.psf().psf_hash(), "abc");
  EXPECT_FALSE(header.has_fibermap());
  EXPECT_EQ(header.grid().count(), 4u);
  EXPECT_EQ(header.fibre_count(), 5u);
  EXPECT_FALSE(header.has_psferr());
}

// A file with some bytes, removed at the end.
class SomeFile {
 public:
  explicit SomeFile(const std::string& bytes) {
    std::string pattern = (std::filesystem::temp_directory_path() / "spexd-test-XXXXXX").string();
    close(mkstemp(pattern.data()));
    path_ = pattern;
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~SomeFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string Pattern(size_t bytes) {
  std::string text(bytes, '\0');
  for (size_t k = 0; k < bytes; ++k) text[k] = static_cast<char>(k * 2654435761u >> 24);
  return text;
}

TEST(RemoteExtractor, UploadsFilesInChunksWithTheirChecksum) {
  const std::string bytes = Pattern((5 << 20) / 2);
  const SomeFile image(bytes), psf("PSF");
  FakeConnection connection({{GoodEvents(), kFine}});
  Job job;
  job.image = image.path();
  job.psf = psf.path();
  RemoteOptions options;
  options.upload = true;
  ASSERT_TRUE(RemoteExtractor(&connection, options).Run(job, nullptr, {}).ok());
  ASSERT_EQ(connection.requests.size(), 1u + 3 + 1 + 1 + 1);
  EXPECT_EQ(connection.requests[0].header().image().upload().bytes(), bytes.size());
  std::string sent;
  for (int k = 1; k <= 3; ++k) {
    const v1::InputChunk& chunk = connection.requests[k].chunk();
    EXPECT_EQ(chunk.offset(), sent.size());
    EXPECT_EQ(chunk.input(), v1::INPUT_IMAGE);
    EXPECT_LE(chunk.payload().size(), size_t{1} << 20);
    sent += chunk.payload();
  }
  EXPECT_EQ(sent, bytes);
  EXPECT_EQ(connection.requests[4].end().crc32c(), Crc32c(bytes));
  EXPECT_EQ(connection.requests[6].end().input(), v1::INPUT_PSF);
}

TEST(RemoteExtractor, UploadsTheReferenceOfTraceShiftsInEachAttempt) {
  const SomeFile image("IMAGE"), psf("PSF"), reference("5577.3 1\n6300.3 2\n");
  FakeConnection connection({Refusal(absl::DataLossError("damaged")), {EventsWithTraces(), kFine}});
  Job job;
  job.image = image.path();
  job.psf = psf.path();
  job.trace_reference = reference.path();
  job.spec.trace_shifts = TraceAxes::kXY;
  RemoteOptions options = Hasty();
  options.upload = true;
  const absl::StatusOr<JobOutcome> outcome = RemoteExtractor(&connection, options).Run(job, nullptr, {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(connection.calls, 2u);
  ASSERT_EQ(connection.requests.size(), 1u + 3 * 2);
  EXPECT_EQ(connection.requests[0].header().trace_reference().upload().bytes(), 18u);
  EXPECT_EQ(connection.requests[5].chunk().input(), v1::INPUT_TRACE_REFERENCE);
  EXPECT_EQ(connection.requests[5].chunk().payload(), "5577.3 1\n6300.3 2\n");
  EXPECT_EQ(connection.requests[6].end().input(), v1::INPUT_TRACE_REFERENCE);
}

TEST(RemoteExtractor, NamesAReferenceThatIsWarmByItsHash) {
  FakeConnection connection({{EventsWithTraces(), kFine}});
  Job job = SomeJob();
  job.trace_reference = "sha256:abc";
  job.spec.trace_shifts = TraceAxes::kXY;
  const absl::StatusOr<JobOutcome> outcome = RemoteExtractor(&connection).Run(job, nullptr, {});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(connection.requests[0].header().trace_reference().content_hash(), "abc");
  EXPECT_EQ(outcome->frame.origin.traces->reference, "/server/sky.dat");
}

TEST(RemoteExtractor, NamesAnUploadThatIsNotThere) {
  FakeConnection connection({{GoodEvents(), kFine}});
  Job job = SomeJob();
  job.image = "/nowhere/image.fits";
  RemoteOptions options;
  options.upload = true;
  EXPECT_THAT(RemoteExtractor(&connection, options).Run(job, nullptr, {}).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/nowhere/image.fits")));
  EXPECT_EQ(connection.calls, 0u);
}

TEST(InputFile, RefusesUrlsFoldersAndEmptyFiles) {
  EXPECT_THAT(InputFile::Open("file:///x.fits").status().message(), HasSubstr("URL"));
  EXPECT_THAT(InputFile::Open("/").status().message(), HasSubstr("regular file"));
  EXPECT_THAT(InputFile::Open("/nowhere/x.fits[1]").status().message(), HasSubstr("CFITSIO"));
  const SomeFile empty("");
  EXPECT_THAT(InputFile::Open(empty.path()).status().message(), HasSubstr("empty"));
}

TEST(InputFile, NoticesAFileThatShrinks) {
  const SomeFile file(Pattern(3 << 20));
  absl::StatusOr<InputFile> input = InputFile::Open(file.path());
  ASSERT_TRUE(input.ok());
  std::filesystem::resize_file(file.path(), 100);
  EXPECT_EQ(input->Read().status().code(), absl::StatusCode::kDataLoss);
}

TEST(ListAllPsfs, ReadsEveryPage) {
  FakeConnection connection({});
  for (const int psfs : {0, 2, 5}) {
    connection.psfs = psfs;
    const auto list = ListAllPsfs(&connection, {});
    ASSERT_TRUE(list.ok()) << list.status();
    ASSERT_EQ(list->psfs_size(), psfs);
    for (int k = 0; k < psfs; ++k) EXPECT_EQ(list->psfs(k).hash(), std::to_string(k));
    EXPECT_EQ(list->total(), static_cast<uint64_t>(psfs));
    EXPECT_EQ(list->next_page_token(), "");
  }
}

TEST(LoadPsf, SendsTheHashAheadOfTheBytes) {
  const SomeFile psf("some bytes");
  FakeConnection connection({});
  const auto info = LoadPsf(&connection, psf.path(), {.upload = true}, {});
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->hash(), Sha256Hex("some bytes"));
  EXPECT_EQ(connection.psf_bytes, "some bytes");
}

}  // namespace
}  // namespace spexd::client
