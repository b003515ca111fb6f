// Frames from the results of detached jobs. Jobs of a server give values, jobs of a store give refusals.
#include "server/detached/job_frame.h"

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/status_macros.h"
#include "core/fits/writers.h"
#include "core/products/joint/exposure_spectra.h"
#include "core/products/product_files.h"
#include "proto/assembler/event_assembler.h"
#include "server/server.h"
#include "tests/service/parts/job_files.h"
#include "tests/service/support/harness.h"
#include "tests/service/support/product_inputs.h"

namespace spexd::testing {
namespace {

const Identity kCaller{"anonymous", Roles::All()};

class JobFrameTest : public ServiceTest {
 protected:
  JobFrameTest() : logger_(LogLevel::kInfo, MakeStreamSink(&lines_)) {
    options_.jobs_dir = folder_ / "jobs";
    WritePreprocWithSky(folder_ / "preproc.fits");
    WriteTemplates(folder_ / "templates.fits", {});
    engine_->Set([](auto& behaviour) { behaviour.reshape = ReshapeToSpectra; });
  }

  // Runs a job on a server to its end, stops the server and opens its store. Puts the frame that a watching
  // client assembles into `watched_`.
  void RunJob(const v1::JobHeader& header) {
    Start();
    const auto jobs = v1::Jobs::NewStub(NewChannel());
    v1::SubmitReply reply;
    grpc::ClientContext submit, watch;
    grpc::Status status = SubmitJob(jobs.get(), &submit, Submission("one", header), &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
    id_ = reply.job_id();
    EventAssembler assembler(nullptr);
    status = WatchJob(jobs.get(), &watch, id_, 0, [&](const v1::WatchEvent& event) {
      if (event.sequence() == 0) return;
      const absl::Status added = assembler.Add(event.event());
      EXPECT_TRUE(added.ok()) << added;
    });
    ASSERT_TRUE(status.ok()) << status.error_message();
    absl::StatusOr<JobOutcome> outcome = assembler.Finish();
    ASSERT_TRUE(outcome.ok()) << outcome.status();
    watched_ = *std::move(outcome);
    server_.reset();
    auto store = JobStore::Open({options_.jobs_dir, {.bytes = 1 << 30}}, &logger_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  absl::StatusOr<Frame> Read() {
    SPEXD_ASSIGN_OR_RETURN(const JobFrame frame, JobFrame::Open(store_.get(), kCaller, id_));
    return frame.Read({});
  }
  // Returns the bytes of the frame's file.
  std::string BytesOf(const Frame& frame) const {
    const std::string path = folder_ / "frame.fits";
    EXPECT_TRUE(WriteFrame(frame, path).ok());
    return ReadBytes(path);
  }
  std::string EventsPath() const { return store_->folder().EventsPath(id_); }

  std::ostringstream lines_;
  Logger logger_;
  std::unique_ptr<JobStore> store_;
  std::string id_;
  JobOutcome watched_;
};

TEST_F(JobFrameTest, IsToTheBitWhatAClientAssemblesThatWatches) {
  v1::JobHeader header = PathHeader();
  header.set_want_model(true);
  RunJob(header);
  EXPECT_FALSE(watched_.model.empty());
  const absl::StatusOr<JobFrame> frame = JobFrame::Open(store_.get(), kCaller, id_);
  ASSERT_TRUE(frame.ok()) << frame.status();
  EXPECT_EQ(frame->image(), folder_ / "preproc.fits");
  EXPECT_EQ(frame->fibres(), kFibres);
  EXPECT_EQ(frame->bins(), watched_.frame.grid.count);
  EXPECT_GT(frame->bytes(), 100 * frame->fibres() * frame->bins());
  for (const char* time : {"first", "second"}) {
    const absl::StatusOr<Frame> read = frame->Read({});
    ASSERT_TRUE(read.ok()) << time << read.status();
    EXPECT_EQ(read->grid, watched_.frame.grid);
    EXPECT_TRUE(read->spectra == watched_.frame.spectra) << time;
    EXPECT_TRUE(BytesOf(*read) == BytesOf(watched_.frame)) << time;
    EXPECT_TRUE(HasSky(*read, frame->image()));
  }
}

TEST_F(JobFrameTest, HasNoSkyIfTheJobMadeIt) {
  v1::JobHeader header = PathHeader();
  header.mutable_products()->set_sky(true);
  header.mutable_products()->set_lines(true);
  header.mutable_products()->mutable_templates()->set_path(folder_ / "templates.fits");
  RunJob(header);
  ASSERT_TRUE(watched_.products.has_value());
  const absl::StatusOr<Sky>& sky = watched_.products->products.sky;
  ASSERT_TRUE(sky.ok()) << sky.status();
  const absl::StatusOr<Frame> read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->spectra == watched_.frame.spectra);
  EXPECT_TRUE(BytesOf(*read) == BytesOf(SkySubtracted(watched_.frame, *sky)));
  EXPECT_FALSE(HasSky(*read, "preproc.fits"));
}

TEST_F(JobFrameTest, HasItsSkyIfTheJobCouldNotMakeIt) {
  WritePreprocWithSky(folder_ / "preproc.fits", false);
  v1::JobHeader header = PathHeader();
  header.mutable_products()->set_sky(true);
  RunJob(header);
  const absl::StatusOr<Frame> read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(BytesOf(*read) == BytesOf(watched_.frame));
  EXPECT_TRUE(HasSky(*read, "preproc.fits"));
}

TEST_F(JobFrameTest, EndsWithAStopAndWithAnAcknowledgementMeanwhile) {
  RunJob(PathHeader());
  const absl::StatusOr<JobFrame> frame = JobFrame::Open(store_.get(), kCaller, id_);
  ASSERT_TRUE(frame.ok()) << frame.status();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(frame->Read(stop.get_token()).status(), StatusIs(absl::StatusCode::kCancelled));
  ASSERT_TRUE(store_->Acknowledge(kCaller, id_, store_->Get(kCaller, id_)->last_sequence).ok());
  EXPECT_THAT(frame->Read({}).status(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(id_)));
  EXPECT_THAT(Read().status(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("released")));
  EXPECT_EQ(store_->stats().disk_errors, 0);
}

TEST_F(JobFrameTest, IsNeverMadeOfDamagedResults) {
  RunJob(PathHeader());
  const std::string good = ReadBytes(EventsPath());
  constexpr size_t kStep = 997;
  ASSERT_GT(good.size(), 10 * kStep);
  for (size_t at = kEventLogHeaderBytes; at < good.size(); at += kStep) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    WriteBytes(EventsPath(), bad);
    EXPECT_THAT(Read().status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(EventsPath()))) << at;
  }
  WriteBytes(EventsPath(), good.substr(0, good.size() / 2));
  EXPECT_THAT(Read().status(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr(EventsPath())));
  WriteBytes(EventsPath(), good);
  EXPECT_TRUE(Read().ok());
}

// Adds a job to a store that ended well with these events.
std::string AddEndedWith(JobStore* store, const std::string& id,
                         const std::vector<v1::ExtractEvent>& events) {
  absl::StatusOr<EventLogWriter> log = EventLogWriter::Open(store->folder().EventsPath(id), id, 0);
  EXPECT_TRUE(log.ok()) << log.status();
  EXPECT_TRUE(log->Append(events).ok() && log->Commit().ok());
  EXPECT_TRUE(store->ReserveForResults(id, log->bytes()).ok());
  EXPECT_TRUE(store->Show(id, log->content(), 1).ok());
  EXPECT_TRUE(store->End(id, absl::OkStatus()).ok());
  return id;
}

v1::ExtractEvent FrameInfoOf(uint32_t fibres, bool last) {
  v1::ExtractEvent event;
  event.mutable_frame_info()->mutable_grid()->set_count(5);
  event.mutable_frame_info()->set_fibre_count(fibres);
  event.mutable_frame_info()->set_bundles(1);
  event.mutable_frame_info()->set_last(last);
  return event;
}

TEST_F(JobStoreTest, MakesNoFrameOfWholeRecordsThatAreNone) {
  const auto store = Open();
  v1::ExtractEvent progress;
  progress.mutable_progress()->set_state("reading");
  const auto expect = [&](const std::vector<v1::ExtractEvent>& events, const std::string& words) {
    const std::string id = AddEndedWith(store.get(), Add(store.get(), words), events);
    absl::StatusOr<JobFrame> frame = JobFrame::Open(store.get(), me_, id);
    absl::Status status = frame.status();
    if (frame.ok()) status = frame->Read({}).status();
    const std::string damaged = "the results of job " + id + " are damaged: ";
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr(damaged), HasSubstr(words))));
  };
  expect({FrameInfoOf(0, true)}, "a frame of 0 fibres");
  expect({FrameInfoOf(1u << 30, true)}, "a frame of 1073741824 fibres");
  expect({progress}, "do not begin with a FrameInfo");
  expect({FrameInfoOf(3, false)}, "before the first bundle");
  expect({FrameInfoOf(3, true)}, "after 0 of 1 bundles");
}

TEST_F(JobStoreTest, MakesAFrameOnlyOfACallersOwnJobThatEndedWellAndIsNotAcknowledged) {
  const auto store = Open();
  const auto open = [&](const Identity& caller, const std::string& id) {
    return JobFrame::Open(store.get(), caller, id).status();
  };
  const std::string waits = Add(store.get(), "waits"), fails = Add(store.get(), "fails");
  ASSERT_TRUE(store->End(fails, absl::InvalidArgumentError("the image is cut")).ok());
  const std::string released = AddEnded(store.get(), "released"), partly = AddEnded(store.get(), "partly");
  ASSERT_TRUE(store->Acknowledge(me_, released, 3).ok());
  ASSERT_TRUE(store->Acknowledge(me_, partly, 1).ok());
  using Code = absl::StatusCode;
  EXPECT_THAT(open(me_, waits),
              StatusIs(Code::kFailedPrecondition, "job " + waits + " has not ended; analyse it once it has"));
  EXPECT_THAT(open(me_, fails),
              StatusIs(Code::kFailedPrecondition, "job " + fails + " failed: the image is cut"));
  for (const std::string& id : {released, partly}) {
    EXPECT_THAT(open(me_, id), StatusIs(Code::kFailedPrecondition,
                                        "the results of job " + id + " are released (acknowledged)"));
  }
  const std::string unknown(kJobIdBytes, '0');
  for (const std::string& id : {waits, fails, released, unknown, std::string("no id")})
    EXPECT_THAT(open(you_, id), StatusIs(Code::kNotFound, "no job \"" + id + "\""));
  EXPECT_THAT(open(root_, fails), StatusIs(Code::kFailedPrecondition)) << "an administrator sees all jobs";
}

}  // namespace
}  // namespace spexd::testing
