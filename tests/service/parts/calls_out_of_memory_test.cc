// Calls of LoadPsf and Extract where memory runs out, at any allocation from their begin to their end: each
// ends alone, gives back what it held, and the next one is served.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "core/base/threads/guard.h"
#include "server/rpc/extract_call.h"
#include "server/rpc/load_psf_call.h"
#include "tests/service/support/fake_engine.h"
#include "tests/service/support/inputs.h"
#include "tests/support/failing_new.h"

// protobuf loses an element of a list if it finds no memory for its place in the list.
extern "C" const char* __lsan_default_suppressions() { return "leak:google::protobuf::"; }

namespace spexd {
namespace {

using testing::EngineControl;
using testing::Failing;
using testing::FakeEngine;
using testing::TempFolder;

const Identity kMe{"me", Roles::All()};
constexpr char kClient[] = "ipv6:[2001:db8:0:1234::5678]:41234";  // too long for a string without memory

// gRPC's side of a call whose client sends one message. `Stream`: ServerCallbackReader or
// ServerCallbackReaderWriter. Reads and writes are done at once, on a thread of their own. Takes no memory
// once it is made.
template <typename Stream, typename Reactor, typename Message>
class Connection : public Stream {
 public:
  Connection(EventThread* thread, Message message)
      : thread_(thread),
        message_(std::move(message)),
        read_(std::make_shared<EventThread::Step>([this] { reactor_->OnReadDone(true); })),
        done_(std::make_shared<EventThread::Step>([this] { Done(); })) {}

  // Returns what the call ends with.
  grpc::Status Carry(Reactor* call) {
    reactor_ = call;
    this->BindReactor(call);
    MutexLock lock(&mutex_);
    bound_ = true;
    if (finished_) thread_->Post(done_);
    while (!done_with_it_) changed_.Wait(&mutex_);
    return std::move(status_);
  }

  void Read(Message* message) override {
    message->Swap(&message_);
    thread_->Post(read_);
  }
  void Finish(grpc::Status status) override {
    MutexLock lock(&mutex_);
    status_ = std::move(status);
    finished_ = true;
    if (bound_) thread_->Post(done_);  // a call does not end while it is being bound, nor does it in gRPC
  }
  void SendInitialMetadata() override {}

 protected:
  EventThread* const thread_;
  Reactor* reactor_ = nullptr;

 private:
  grpc::internal::ServerReactor* reactor() override { return reactor_; }
  void CallOnDone() override {}
  // After the call's last reaction, as gRPC does it.
  void Done() {
    reactor_->OnDone();
    MutexLock lock(&mutex_);
    done_with_it_ = true;
    changed_.NotifyAll();
  }

  Message message_;
  const std::shared_ptr<EventThread::Step> read_, done_;
  Mutex mutex_;
  CondVar changed_;
  bool bound_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool done_with_it_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

using LoadPsfConnection =
    Connection<grpc::ServerCallbackReader<v1::LoadPsfRequest>, LoadPsfCall::Reactor, v1::LoadPsfRequest>;

class ExtractConnection final
    : public Connection<grpc::ServerCallbackReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>,
                        ExtractCall::Reactor, grpc::ByteBuffer> {
 public:
  ExtractConnection(EventThread* thread, grpc::ByteBuffer message)
      : Connection(thread, std::move(message)),
        written_(std::make_shared<EventThread::Step>([this] { reactor_->OnWriteDone(true); })) {}
  void Write(const grpc::ByteBuffer*, grpc::WriteOptions) override { thread_->Post(written_); }
  void WriteAndFinish(const grpc::ByteBuffer*, grpc::WriteOptions, grpc::Status) override {}

 private:
  const std::shared_ptr<EventThread::Step> written_;
};

grpc::ByteBuffer Serialised(const v1::ExtractRequest& request) {
  const grpc::Slice slice(request.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

class CallsOutOfMemory : public ::testing::TestWithParam<Failing> {
 protected:
  CallsOutOfMemory() {
    testing::WritePsfFile(folder_ / "psf.fits");
    testing::WritePreprocFile(folder_ / "preproc.fits");
    paths_ = PathPolicy::Make({folder_.path()}).value();
    parts_.options = &options_;
    parts_.engine = &engine_;
    parts_.health = &health_;
    parts_.access = &access_;
    parts_.paths = &paths_;
    parts_.cache = &cache_;
    parts_.queue = &queue_;
    parts_.uploads = &uploads_;
    parts_.results = &results_;
    parts_.files = &files_;
    parts_.decoded = &decoded_;
    parts_.readers = &readers_;
    parts_.streams = &streams_;
    parts_.watchdog = &watchdog_;
    parts_.events = &events_;
    parts_.tasks = &tasks_;
    parts_.metrics = &metrics_;
    parts_.board = &board_;
    parts_.log = &log_;
    // protobuf's descriptors, which it makes at their first use, and which would end the process.
    EXPECT_TRUE(LoadPsf().ok());
    EXPECT_TRUE(Extract().ok());
  }

  // Calls that end with `code` ended well.
  static absl::Status Judge(const grpc::Status& status, grpc::StatusCode code = grpc::StatusCode::OK) {
    if (status.error_code() == code) return absl::OkStatus();
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  void ForgetPsfs() {
    for (const WarmCache::Info& info : cache_.List()) EXPECT_TRUE(cache_.Unload(info.hash, kMe).ok());
  }
  absl::Status LoadPsf() {
    ForgetPsfs();
    v1::LoadPsfRequest request;
    request.mutable_header()->set_path(folder_ / "psf.fits");
    v1::PsfInfo response;
    grpc::CallbackServerContext context;
    LoadPsfConnection connection(&grpc_, std::move(request));
    return Judge(connection.Carry(
        LoadPsfCall::Begin(parts_, &context, kMe, streams_.Enter(kClient).value(), &response)));
  }
  absl::Status Extract(grpc::StatusCode code = grpc::StatusCode::OK) {
    ForgetPsfs();
    v1::ExtractRequest request;
    *request.mutable_header() = testing::PathHeader(folder_, 4);
    request.mutable_header()->set_fibre_count(4);
    grpc::CallbackServerContext context;
    ExtractConnection connection(&grpc_, Serialised(request));
    return Judge(
        connection.Carry(ExtractCall::Begin(parts_, &context, kMe, streams_.Enter(kClient).value(), "job")),
        code);
  }
  void ExpectNothingHeld() {
    EXPECT_EQ(streams_.open(), 0);
    EXPECT_EQ(queue_.stats().running, 0);
    EXPECT_EQ(queue_.stats().waiting, 0);
    for (const ByteBudget* budget : {&uploads_, &results_, &files_, &decoded_}) EXPECT_EQ(budget->used(), 0);
    for (const WarmCache::Info& info : cache_.List()) EXPECT_FALSE(info.in_use);
  }

  const TempFolder folder_;
  const ServerOptions options_;
  const std::shared_ptr<EngineControl> control_ = std::make_shared<EngineControl>();
  FakeEngine engine_{control_};
  Logger log_{LogLevel::kError, MakeDescriptorSink(2)};
  Metrics metrics_;
  EngineHealth health_{&engine_, &log_};
  Access access_{Identities::Open(0), &log_, &metrics_};
  PathPolicy paths_;
  WarmCache cache_{&engine_, 1 << 30};
  JobQueue queue_{JobQueue::Limits{.running = 2, .queued = 100}};
  ByteBudget uploads_{"uploads", 1 << 30}, results_{"results", 1 << 30}, files_{"files", 1 << 30},
      decoded_{"decoded", 1 << 30};
  SharedThreads readers_{2};
  StreamLimits streams_{{}};
  StallWatchdog watchdog_;
  JobBoard board_;
  ServerParts parts_;
  EventThread events_, grpc_;
  TaskThreads tasks_{16};
};

TEST_P(CallsOutOfMemory, ALoadPsfEndsAlone) {
  const auto load = [&] { return CatchExceptions([&] { return LoadPsf(); }); };
  EXPECT_GT(testing::FailEverywhere(GetParam(), load), 50);
  ExpectNothingHeld();
  EXPECT_TRUE(load().ok());
}

TEST_P(CallsOutOfMemory, AnExtractEndsAlone) {
  const auto extract = [&] { return CatchExceptions([&] { return Extract(); }); };
  EXPECT_GT(testing::FailEverywhere(GetParam(), extract), 100);
  ExpectNothingHeld();
  EXPECT_TRUE(extract().ok());
}

TEST_P(CallsOutOfMemory, AnExtractWhoseDeviceFailsEndsAlone) {
  control_->Set(
      [](auto& behaviour) { behaviour.extract_error = absl::UnavailableError("the device failed"); });
  const auto extract = [&] {
    return CatchExceptions([&] { return Extract(grpc::StatusCode::UNAVAILABLE); });
  };
  EXPECT_GT(testing::FailEverywhere(GetParam(), extract), 100);
  ExpectNothingHeld();
  EXPECT_TRUE(extract().ok());
}

INSTANTIATE_TEST_SUITE_P(OnceAndForGood, CallsOutOfMemory,
                         ::testing::Values(Failing::kOnce, Failing::kForGood));

}  // namespace
}  // namespace spexd
