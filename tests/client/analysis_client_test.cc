// Analyses by the client library, with scripted servers.
#include "client/analysis/analysis_client.h"

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/analysis/analysis_request.h"
#include "client/analysis/file_assembler.h"
#include "core/base/digest/crc32c.h"
#include "tests/client/support/fake_connection.h"
#include "tests/client/support/stand_in_analysis.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::client {
namespace {

using spexd::testing::AnalysisAccepted;
using spexd::testing::AnalysisSummary;
using spexd::testing::FailedFileEvent;
using spexd::testing::FakeConnection;
using spexd::testing::FilePartEvent;
using spexd::testing::Script;
using spexd::testing::TempFolder;
using spexd::testing::WriteBytes;
using std::chrono::milliseconds;

constexpr char kJobId[] = "0123456789abcdef0123456789abcdef";

v1::ExtractEvent StateEvent(const std::string& state) {
  v1::ExtractEvent event;
  event.mutable_progress()->set_state(state);
  return event;
}

// Returns redshifts in two parts.
std::vector<v1::ExtractEvent> RedshiftEvents() {
  return {AnalysisAccepted(), StateEvent("analysing"),
          FilePartEvent(v1::ANALYSIS_FILE_REDSHIFTS, 0, "SIMPLE"),
          FilePartEvent(v1::ANALYSIS_FILE_REDSHIFTS, 6, " = T"), AnalysisSummary()};
}

Script Answer(std::vector<v1::ExtractEvent> events) { return {std::move(events), {absl::OkStatus(), {}}}; }
Script RefusedCall(absl::Status status, std::optional<milliseconds> delay = {}) {
  return {{}, {std::move(status), delay}};
}

// Returns an analysis for servers that read no files.
AnalysisJob SomeAnalysis() {
  AnalysisJob job;
  job.sources = {{.spectra = "/data/coadd-1.fits", .fiberflat = ""}};
  job.lines = true;
  return job;
}

RemoteOptions ImpatientOptions() {
  RemoteOptions options;
  options.retry.first_wait = milliseconds(1);
  options.retry.queue_patience = milliseconds(50);
  return options;
}

class StatesAndRetries : public JobObserver {
 public:
  void OnAccepted(const std::string& job_id, int queue_position) override { accepted = job_id; }
  void OnState(const std::string& state) override { states.push_back(state); }
  void OnRetry(int attempt, const absl::Status& reason, milliseconds delay) override { ++retries; }

  std::string accepted;
  std::vector<std::string> states;
  int retries = 0;
};

v1::AnalysisHeader HeaderOf(const AnalysisJob& job, bool upload = false) {
  return MakeAnalysisHeader(job, upload).value();
}

void ExpectHeaderRefused(const AnalysisJob& job, const std::string& message) {
  EXPECT_THAT(MakeAnalysisHeader(job, /*upload=*/false).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
}

TEST(AnalysisHeader, NamesFilesJobsAndWarmInputs) {
  AnalysisJob job = SomeAnalysis();
  job.sources = {{.spectra = std::string(kJobPrefix) + kJobId, .fiberflat = "sha256:abc"},
                 {.spectra = "/data/sframe-b0-1.fits", .fiberflat = "/data/flat-b0.fits"}};
  job.templates = "sha256:def";
  const v1::AnalysisHeader header = HeaderOf(job);
  ASSERT_EQ(header.spectra_size(), 2);
  EXPECT_EQ(header.spectra(0).job_id(), kJobId);
  EXPECT_EQ(header.spectra(0).fiberflat().content_hash(), "abc");
  EXPECT_EQ(header.spectra(1).path(), "/data/sframe-b0-1.fits");
  EXPECT_EQ(header.spectra(1).fiberflat().path(), "/data/flat-b0.fits");
  EXPECT_EQ(header.templates().content_hash(), "def");
  EXPECT_TRUE(header.lines());
}

TEST(AnalysisHeader, HasWhatWasAskedForAndNothingElse) {
  AnalysisJob job = SomeAnalysis();
  EXPECT_FALSE(HeaderOf(job).has_templates());
  EXPECT_FALSE(HeaderOf(job).has_exclude());
  EXPECT_FALSE(HeaderOf(job).has_coefficients());
  EXPECT_FALSE(HeaderOf(job).rows().has_target_ids());
  job.templates = "/data/templates.fits";
  job.models = true;
  job.rows.target_ids = {39627, -5};
  job.rows.min_snr = 2.5;
  job.rows.min_exposure = 10;
  job.rows.max_exposure = 20;
  job.rows.object_types = {"MWS_ANY", "STD_.*"};
  job.stars_by_redrock = true;
  job.redrock = "/data/redrock-1.fits";
  job.per_target = true;
  job.coefficients = 5;
  job.exclude = {{4300, 4450}, {5570, 5590}};
  job.arms = {"b", "R"};
  job.sky_subtracted = true;
  job.priority = -3;
  const v1::AnalysisHeader header = HeaderOf(job);
  EXPECT_THAT(header.rows().target_ids().ids(), ElementsAre(39627, -5));
  EXPECT_EQ(header.rows().min_snr(), 2.5);
  EXPECT_EQ(header.rows().min_exposure(), 10);
  EXPECT_EQ(header.rows().max_exposure(), 20);
  EXPECT_THAT(header.rows().object_types(), ElementsAre("MWS_ANY", "STD_.*"));
  EXPECT_TRUE(header.rows().stars_by_redrock());
  EXPECT_EQ(header.redrock().path(), "/data/redrock-1.fits");
  EXPECT_TRUE(header.models());
  EXPECT_TRUE(header.per_target());
  EXPECT_EQ(header.coefficients(), 5u);
  EXPECT_THAT(header.exclude().first(), ElementsAre(4300, 5570));
  EXPECT_THAT(header.exclude().last(), ElementsAre(4450, 5590));
  EXPECT_THAT(header.arms(), ElementsAre("B", "R"));
  EXPECT_TRUE(header.sky_subtracted());
  EXPECT_EQ(header.priority(), -3);
}

TEST(AnalysisHeader, ExcludesNothingIfNoRangesAreGiven) {
  AnalysisJob job = SomeAnalysis();
  job.exclude.emplace();
  EXPECT_TRUE(HeaderOf(job).has_exclude());
  EXPECT_EQ(HeaderOf(job).exclude().first_size(), 0);
}

TEST(AnalysisHeader, NamesTheFieldThatIsBeyondItsLimits) {
  const AnalysisJob good = SomeAnalysis();
  AnalysisJob job = good;
  job.sources.clear();
  ExpectHeaderRefused(job, "spectra: there are 0 sources, must be 1 to 16");
  job.sources.assign(17, good.sources[0]);
  ExpectHeaderRefused(job, "spectra: there are 17 sources, must be 1 to 16");
  job.sources = {good.sources[0], {.spectra = "", .fiberflat = ""}};
  ExpectHeaderRefused(job, "spectra[1]: names no file");
  job.sources = {{.spectra = kJobPrefix, .fiberflat = ""}};
  ExpectHeaderRefused(job, "spectra[0]: a job's id of 0 characters");
  job = good;
  job.lines = false;
  ExpectHeaderRefused(job, "no product is asked for");
  job = good;
  job.models = true;
  ExpectHeaderRefused(job, "models: are those of velocities");
  job = good;
  job.coefficients = 22;
  ExpectHeaderRefused(job, "coefficients: 22, must be 1 to 21");
  job = good;
  job.arms = {"x"};
  ExpectHeaderRefused(job, "arms: ");
  job = good;
  job.exclude = {{4450, 4300}};
  ExpectHeaderRefused(job, "exclude: 4450 to 4300 Angstrom");
  job.exclude = std::vector<WavelengthRange>(101, {4300, 4450});
  ExpectHeaderRefused(job, "exclude: there are 101 ranges, the limit is 100");
  job = good;
  job.priority = 11;
  ExpectHeaderRefused(job, "priority");
  job = good;
  job.rows.min_snr = std::numeric_limits<double>::quiet_NaN();
  ExpectHeaderRefused(job, "rows.min_snr");
  job = good;
  job.rows.object_types.assign(101, "MWS_ANY");
  ExpectHeaderRefused(job, "rows.object_types: there are 101, the limit is 100");
  job.rows.object_types = {std::string(101, 'A')};
  ExpectHeaderRefused(job, "has 101 characters, must have 1 to 100");
  job = good;
  job.stars_by_redrock = true;
  ExpectHeaderRefused(job, "rows.stars_by_redrock: needs redrock's file");
  job = good;
  job.rows.target_ids.emplace(600000, int64_t{39627000000000000});
  ExpectHeaderRefused(job, "rows.target_ids: with its 600000 numbers");
}

// The answers of a server to an analysis, and the number of its calls.
class ScriptedAnalysis : public ::testing::Test {
 protected:
  absl::StatusOr<AnalysisOutcome> Run(std::vector<Script> scripts, const AnalysisJob& job = SomeAnalysis()) {
    FakeConnection server(std::move(scripts));
    absl::StatusOr<AnalysisOutcome> outcome =
        RemoteAnalyser(&server, ImpatientOptions()).Run(job, &seen_, {});
    calls_ = server.calls;
    return outcome;
  }
  // Expects that the events end in this damage, on both of the attempts that a damaged answer gets.
  void ExpectDamaged(const std::vector<v1::ExtractEvent>& events, const std::string& what) {
    EXPECT_THAT(Run({Answer(events), Answer(events)}).status(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the server's answer is damaged: " + what)));
    EXPECT_EQ(calls_, 2u);
  }
  // The same with the events of redshifts, one of whose parts is changed.
  template <typename Change>
  void ExpectDamagedPart(size_t which, const Change& change, const std::string& what) {
    std::vector<v1::ExtractEvent> events = RedshiftEvents();
    change(events[2 + which].mutable_file());
    ExpectDamaged(events, what);
  }

  StatesAndRetries seen_;
  size_t calls_ = 0;
};

TEST_F(ScriptedAnalysis, BringsTheBytesOfAFile) {
  const auto outcome = Run({Answer(RedshiftEvents())});
  ASSERT_THAT(outcome.status(), IsOk());
  ASSERT_THAT(outcome->redshifts.status(), IsOk());
  EXPECT_EQ(outcome->redshifts->bytes, "SIMPLE = T");
  EXPECT_EQ(outcome->redshifts->targets, 6);
  EXPECT_EQ(outcome->redshifts->good, 2);
  EXPECT_THAT(outcome->velocities.status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(outcome->models.status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(outcome->job_id, "analysis-1");
  EXPECT_EQ(outcome->queue_seconds, 1);
  EXPECT_EQ(outcome->run_seconds, 4);
  ASSERT_EQ(outcome->stages.size(), 1u);
  EXPECT_EQ(outcome->stages[0].by, "cuda");
  EXPECT_EQ(seen_.accepted, "analysis-1");
  EXPECT_THAT(seen_.states, ElementsAre("analysing"));
}

TEST_F(ScriptedAnalysis, BringsAFileBesideOneThatCouldNotBeMade) {
  AnalysisJob job = SomeAnalysis();
  job.templates = "/data/templates.fits";
  job.models = true;
  const auto outcome = Run(
      {Answer(
          {AnalysisAccepted(),
           FailedFileEvent(v1::ANALYSIS_FILE_VELOCITIES, absl::StatusCode::kInvalidArgument, "no overlap"),
           FailedFileEvent(v1::ANALYSIS_FILE_MODELS, absl::StatusCode::kInvalidArgument, "no overlap"),
           FilePartEvent(v1::ANALYSIS_FILE_REDSHIFTS, 0, "0123456789"), AnalysisSummary()})},
      job);
  ASSERT_THAT(outcome.status(), IsOk());
  EXPECT_EQ(outcome->velocities.status(), absl::InvalidArgumentError("no overlap"));
  EXPECT_EQ(outcome->models.status(), absl::InvalidArgumentError("no overlap"));
  ASSERT_THAT(outcome->redshifts.status(), IsOk());
  EXPECT_EQ(outcome->redshifts->bytes, "0123456789");
}

TEST_F(ScriptedAnalysis, RefusesPartsThatAreDamaged) {
  ExpectDamagedPart(
      1, [](v1::FilePart* part) { part->set_crc32c(1); }, "redshifts: checksum");
  ExpectDamagedPart(
      1, [](v1::FilePart* part) { part->set_offset(5); }, "redshifts: bytes from 5 on");
  ExpectDamagedPart(
      0, [](v1::FilePart* part) { part->set_offset(1); }, "redshifts: bytes from 1 on");
  ExpectDamagedPart(
      0, [](v1::FilePart* part) { part->clear_payload(); }, "redshifts: 0 bytes after 0");
  ExpectDamagedPart(
      1, [](v1::FilePart* part) { part->set_payload("12345"); }, "redshifts: 5 bytes after 6");
  ExpectDamagedPart(
      0, [](v1::FilePart* part) { part->set_last(true); }, "redshifts: ended after 6 of 10");
  ExpectDamagedPart(
      1, [](v1::FilePart* part) { part->set_last(false); }, "redshifts: no end after 10");
}

TEST_F(ScriptedAnalysis, RefusesPartsOfDifferentFiles) {
  ExpectDamagedPart(
      1, [](v1::FilePart* part) { part->set_bytes(11); }, "redshifts: parts of different files");
  ExpectDamagedPart(
      1, [](v1::FilePart* part) { part->set_targets(7); }, "redshifts: parts of different files");
  ExpectDamagedPart(
      1, [](v1::FilePart* part) { part->set_good(1); }, "redshifts: parts of different files");
  ExpectDamagedPart(
      1, [](v1::FilePart* part) { part->set_file(v1::ANALYSIS_FILE_MODELS); },
      "models before the end of redshifts");
}

TEST_F(ScriptedAnalysis, RefusesFilesThatCannotBe) {
  ExpectDamagedPart(
      0, [](v1::FilePart* part) { part->set_bytes(0); }, "redshifts: a file of 0 bytes");
  ExpectDamagedPart(
      0, [](v1::FilePart* part) { part->set_bytes(kMaxAnalysisFileBytes + 1); },
      "redshifts: a file of 4294967297 bytes");
  ExpectDamagedPart(
      0, [](v1::FilePart* part) { part->set_good(7); }, "redshifts: 7 of 6 targets are good");
  ExpectDamagedPart(
      0, [](v1::FilePart* part) { part->set_code(17); }, "redshifts: status 17");
  ExpectDamagedPart(
      0, [](v1::FilePart* part) { part->set_code(-1); }, "redshifts: status -1");
  ExpectDamagedPart(
      1, [](v1::FilePart* part) { part->set_code(3); }, "redshifts: status 3");
  ExpectDamagedPart(
      0, [](v1::FilePart* part) { part->set_file(v1::ANALYSIS_FILE_VELOCITIES); },
      "velocities that were not asked for");
  ExpectDamagedPart(
      0, [](v1::FilePart* part) { part->set_file(static_cast<v1::AnalysisFile>(9)); },
      "file 9 that were not asked for");
}

TEST_F(ScriptedAnalysis, RefusesEventsOutOfOrder) {
  const std::vector<v1::ExtractEvent> good = RedshiftEvents();
  const v1::ExtractEvent whole = FilePartEvent(v1::ANALYSIS_FILE_REDSHIFTS, 0, "0123456789");
  ExpectDamaged({whole, AnalysisSummary()}, "redshifts before the job was accepted");
  ExpectDamaged({AnalysisAccepted(), whole, whole, AnalysisSummary()},
                "redshifts that were not asked for, or came");
  ExpectDamaged({AnalysisAccepted(), whole, AnalysisSummary(), AnalysisSummary()},
                "an event after the summary");
  ExpectDamaged({AnalysisAccepted(), whole}, "it ended before the summary");
  ExpectDamaged({AnalysisAccepted(), AnalysisSummary()}, "it ended without redshifts");
  ExpectDamaged({good[0], good[1], good[2], good[4]}, "it ended after 6 of 10 bytes of redshifts");
  ExpectDamaged({}, "it ended without redshifts");
  ExpectDamaged({AnalysisAccepted(), spexd::testing::Info()}, "an event of an extraction");
}

// A small machine's memory could not hold 4 GiB that a server only announces.
TEST_F(ScriptedAnalysis, TakesNoMemoryForAFileThatIsOnlyAnnounced) {
  FileAssembler assembler(HeaderOf(SomeAnalysis()), nullptr);
  ASSERT_THAT(assembler.Add(AnalysisAccepted()), IsOk());
  v1::ExtractEvent event = FilePartEvent(v1::ANALYSIS_FILE_REDSHIFTS, 0, "01234");
  event.mutable_file()->set_bytes(kMaxAnalysisFileBytes);
  EXPECT_THAT(assembler.Add(event), IsOk());
  EXPECT_THAT(assembler.Finish().status(),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("it ended after 5 of 4294967296 bytes")));
}

TEST_F(ScriptedAnalysis, IsTriedAgainIfItArrivesDamaged) {
  std::vector<v1::ExtractEvent> damaged = RedshiftEvents();
  damaged[2].mutable_file()->set_crc32c(1);
  EXPECT_THAT(Run({Answer(damaged), Answer(RedshiftEvents())}).status(), IsOk());
  EXPECT_EQ(seen_.retries, 1);
}

TEST_F(ScriptedAnalysis, IsTriedAgainWhereTheServerIsFullOrAway) {
  EXPECT_THAT(Run({RefusedCall(absl::ResourceExhaustedError("full"), milliseconds(1)),
                   RefusedCall(absl::UnavailableError("away")), Answer(RedshiftEvents())})
                  .status(),
              IsOk());
  EXPECT_EQ(calls_, 3u);
}

TEST_F(ScriptedAnalysis, IsNotTriedAgainWithBadInput) {
  EXPECT_THAT(Run({RefusedCall(absl::InvalidArgumentError("arms: ..")), Answer(RedshiftEvents())}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(calls_, 1u);
}

TEST_F(ScriptedAnalysis, SaysThatAServerIsTooOld) {
  EXPECT_THAT(Run({RefusedCall(absl::UnimplementedError(""))}).status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("spexd at fake:1: is too old")));
}

class UploadedAnalysis : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& bytes) const {
    WriteBytes(folder_ / name, bytes);
    return folder_ / name;
  }

  TempFolder folder_;
};

TEST_F(UploadedAnalysis, SendsEachFileWithTheIndexOfItsSource) {
  AnalysisJob job;
  job.sources = {{.spectra = Write("b", "BLUE"), .fiberflat = Write("flat-b", "FLAT B")},
                 {.spectra = std::string(kJobPrefix) + kJobId, .fiberflat = Write("flat-r", "FLAT R")},
                 {.spectra = Write("z", "NEAR INFRARED"), .fiberflat = "sha256:abc"}};
  job.templates = Write("templates", "STARS");
  job.lines = true;
  FakeConnection server(
      {Answer({AnalysisAccepted(), FilePartEvent(v1::ANALYSIS_FILE_VELOCITIES, 0, "0123456789"),
               FilePartEvent(v1::ANALYSIS_FILE_REDSHIFTS, 0, "0123456789"), AnalysisSummary()})});
  RemoteOptions options;
  options.upload = true;
  ASSERT_THAT(RemoteAnalyser(&server, options).Run(job, nullptr, {}).status(), IsOk());
  const struct {
    v1::Input input;
    uint32_t index;
    std::string bytes;
  } expected[] = {{v1::INPUT_SPECTRA, 0, "BLUE"},
                  {v1::INPUT_FIBERFLAT, 0, "FLAT B"},
                  {v1::INPUT_FIBERFLAT, 1, "FLAT R"},
                  {v1::INPUT_SPECTRA, 2, "NEAR INFRARED"},
                  {v1::INPUT_TEMPLATES, 0, "STARS"}};
  ASSERT_EQ(server.analyses.size(), 1 + 2 * std::size(expected));
  const v1::AnalysisHeader& header = server.analyses[0].header();
  EXPECT_EQ(header.spectra(0).upload().bytes(), 4u);
  EXPECT_EQ(header.spectra(1).job_id(), kJobId);
  EXPECT_EQ(header.spectra(2).fiberflat().content_hash(), "abc");
  for (size_t k = 0; k < std::size(expected); ++k) {
    SCOPED_TRACE(k);
    const v1::InputChunk& chunk = server.analyses[1 + 2 * k].chunk();
    EXPECT_EQ(chunk.input(), expected[k].input);
    EXPECT_EQ(chunk.index(), expected[k].index);
    EXPECT_EQ(chunk.payload(), expected[k].bytes);
    const v1::InputEnd& end = server.analyses[2 + 2 * k].end();
    EXPECT_EQ(end.input(), expected[k].input);
    EXPECT_EQ(end.index(), expected[k].index);
    EXPECT_EQ(end.crc32c(), Crc32c(expected[k].bytes));
  }
}

TEST_F(UploadedAnalysis, SendsRedrocksFileAfterTheSpectra) {
  AnalysisJob job;
  job.sources = {{.spectra = Write("coadd", "SPECTRA"), .fiberflat = ""}};
  job.redrock = Write("redrock", "REDSHIFTS");
  job.lines = true;
  FakeConnection server({Answer(RedshiftEvents())});
  RemoteOptions options;
  options.upload = true;
  ASSERT_THAT(RemoteAnalyser(&server, options).Run(job, nullptr, {}).status(), IsOk());
  ASSERT_EQ(server.analyses.size(), 5u);
  EXPECT_EQ(server.analyses[1].chunk().payload(), "SPECTRA");
  EXPECT_EQ(server.analyses[3].chunk().input(), v1::INPUT_REDROCK);
  EXPECT_EQ(server.analyses[3].chunk().payload(), "REDSHIFTS");
}

TEST_F(UploadedAnalysis, NamesAFileThatIsNotThere) {
  AnalysisJob job = SomeAnalysis();
  job.sources[0].spectra = folder_ / "nothing.fits";
  EXPECT_THAT(MakeAnalysisHeader(job, /*upload=*/true).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nothing.fits")));
}

class AnalysisOfJobs : public ::testing::Test {
 protected:
  AnalysisOfJobs() { job_.sources[0].spectra = std::string(kJobPrefix) + kJobId; }
  static Script UnknownJob() { return RefusedCall(absl::NotFoundError("there is no such job")); }
  // Runs the job on two servers; with the seeds each of them is the first.
  void Run(const std::vector<Script>& first, const std::vector<Script>& second,
           const ::testing::Matcher<absl::Status>& status) {
    for (const uint32_t seed : {0, 1, 2, 3, 4, 5}) {
      SCOPED_TRACE(seed);
      FakeConnection a(first), b(second);
      b.name = "fake:2";
      RemoteOptions options = ImpatientOptions();
      options.retry.seed = seed;
      EXPECT_THAT(RemoteAnalyser({&a, &b}, options).Run(job_, nullptr, {}).status(), status);
      calls_ = a.calls + b.calls;
    }
  }

  AnalysisJob job_ = SomeAnalysis();
  size_t calls_ = 0;
};

TEST_F(AnalysisOfJobs, IsMadeByTheServerThatKnowsThem) {
  Run({UnknownJob(), UnknownJob()}, {Answer(RedshiftEvents())}, IsOk());
}

TEST_F(AnalysisOfJobs, EndsWhereNoServerKnowsThem) {
  Run({UnknownJob(), UnknownJob()}, {UnknownJob(), UnknownJob()}, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(calls_, 2u);
}

TEST_F(AnalysisOfJobs, IsNotSaidToBeUnknownWhileAServerIsAway) {
  const Script away = RefusedCall(absl::UnavailableError("away"));
  Run(std::vector<Script>(9, UnknownJob()), std::vector<Script>(9, away),
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("fake:2: away")));
}

TEST_F(AnalysisOfJobs, OfFilesThatAreMissingIsNotOfferedToOthers) {
  job_ = SomeAnalysis();
  Run({UnknownJob(), UnknownJob()}, {UnknownJob(), UnknownJob()}, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(calls_, 1u);
}

}  // namespace
}  // namespace spexd::client
