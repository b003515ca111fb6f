// Random calls: submitted, cancelled, cut off in the middle or given up, on an engine that fails now and
// then. Whatever happens, statuses are those of the contract, events keep their bytes, and the server ends
// idle.
//
//   SPEXD_RANDOM_CALLS=5000 SPEXD_RANDOM_SEED=1 service_random_test
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "core/base/threads/mutex.h"
#include "server/server.h"
#include "tests/service/support/harness.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

constexpr int kClients = 4;
constexpr int kRequests = 12;  // request ids of each client
constexpr int kBundlesOfAJob = 3;

unsigned FromEnvironment(const char* name, unsigned otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

// Events of detached jobs that any client saw. A job's number must always name the same bytes.
class SeenEvents {
 public:
  void Take(const std::string& job, const v1::WatchEvent& message) {
    if (message.sequence() == 0) return;
    const std::string bytes = message.event().SerializeAsString();
    MutexLock lock(&mutex_);
    const auto [event, added] = events_[job].emplace(message.sequence(), bytes);
    EXPECT_EQ(event->second, bytes) << job << ": event " << message.sequence() << " changed";
  }
  // Returns the number of copies of each bundle among the job's events.
  std::map<uint32_t, int> Copies(const std::string& job) {
    std::map<uint32_t, int> copies;
    MutexLock lock(&mutex_);
    for (const auto& [sequence, bytes] : events_[job]) {
      v1::ExtractEvent event;
      EXPECT_TRUE(event.ParseFromString(bytes));
      if (event.has_bundle() && event.bundle().last()) ++copies[event.bundle().bundle()];
    }
    return copies;
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::map<uint64_t, std::string>> events_ ABSL_GUARDED_BY(mutex_);
};

// A client that does one random thing after the other, chosen by its seed.
class RandomClient {
 public:
  RandomClient(int number, unsigned seed, std::function<std::shared_ptr<grpc::Channel>()> connect,
               const v1::JobHeader& by_path, const v1::JobHeader& raw, SeenEvents* seen)
      : number_(number),
        random_(seed),
        connect_(std::move(connect)),
        by_path_(by_path),
        raw_(raw),
        seen_(seen) {
    Reconnect();
  }

  void Act() {
    switch (Below(10)) {
      case 0:
        return Reconnect();
      case 1:
      case 2:
      case 3:
        return Extract();
      case 4:
      case 5:
        return Submit();
      case 6:
      case 7:
        return Watch();
      case 8:
        return CancelJob();
      default:
        return Acknowledge();
    }
  }
  // Submits what is not yet submitted, and watches all jobs to their end.
  void FinishAll() {
    Reconnect();
    for (int request = 0; request < kRequests; ++request) {
      const std::string id = SubmitWhole(request);
      ASSERT_FALSE(id.empty()) << "request " << request;
      const grpc::Status status = WatchFrom(id, After(id), -1);
      EXPECT_TRUE(status.ok() || status.error_code() == StatusCode::CANCELLED) << status.error_message();
      if (status.ok() && acknowledged_[id] == 0) ExpectEachBundleOnce(id);
    }
  }

 private:
  int Below(int limit) { return std::uniform_int_distribution(0, limit - 1)(random_); }

  void Reconnect() {
    const std::shared_ptr<grpc::Channel> channel = connect_();
    extraction_ = v1::Extraction::NewStub(channel);
    jobs_ = v1::Jobs::NewStub(channel);
  }
  void SetSomeDeadline(grpc::ClientContext* context) {
    const auto patience = Below(4) == 0 ? std::chrono::milliseconds(Below(30)) : std::chrono::minutes(5);
    context->set_deadline(std::chrono::system_clock::now() + patience);
  }
  static void ExpectOfTheContract(const grpc::Status& status) {
    static const std::set<StatusCode> known = {
        StatusCode::OK,          StatusCode::CANCELLED,          StatusCode::DEADLINE_EXCEEDED,
        StatusCode::UNAVAILABLE, StatusCode::RESOURCE_EXHAUSTED, StatusCode::OUT_OF_RANGE,
        StatusCode::DATA_LOSS,   StatusCode::NOT_FOUND};
    EXPECT_EQ(known.count(status.error_code()), 1u) << status.error_code() << " " << status.error_message();
  }

  // Sends the raw arrays, or less; returns false if it stopped before their end.
  template <typename Stream, typename Request>
  bool SendArrays(Stream* stream, int chunks_less) {
    const std::string bytes = RawArrays(kRows, kColumns);
    const size_t size = bytes.size() / 4 + 1;
    Request request;
    for (int k = 0; k < 4 - chunks_less; ++k) {
      request.mutable_chunk()->set_input(v1::INPUT_IMAGE);
      request.mutable_chunk()->set_offset(k * size);
      request.mutable_chunk()->set_payload(bytes.substr(k * size, size));
      if (!stream->Write(request)) return false;
    }
    if (chunks_less > 0) return false;
    request.mutable_end()->set_input(v1::INPUT_IMAGE);
    stream->Write(request);
    return true;
  }

  // Extracts to the end, or gives up after some events by cancelling or by dropping the stream.
  void Extract() {
    grpc::ClientContext context;
    SetSomeDeadline(&context);
    const auto stream = extraction_->Extract(&context);
    v1::ExtractRequest request;
    const bool raw = Below(2) == 0;
    *request.mutable_header() = raw ? raw_ : by_path_;
    request.mutable_header()->mutable_grid()->set_count(20 + Below(3));
    request.mutable_header()->set_priority(Below(21) - 10);
    stream->Write(request);
    const bool whole =
        !raw ||
        SendArrays<grpc::ClientReaderWriter<v1::ExtractRequest, v1::ExtractEvent>, v1::ExtractRequest>(
            stream.get(), Below(3) == 0 ? 1 + Below(3) : 0);
    const bool waits_for_more = !whole && Below(2) == 0;
    if (!waits_for_more) stream->WritesDone();
    const bool to_the_end = whole && Below(2) == 0;
    const int most = to_the_end ? 1 << 20 : Below(waits_for_more ? 2 : 10);
    v1::ExtractEvent event;
    for (int left = most; left > 0 && stream->Read(&event); --left) continue;
    if (!to_the_end) {
      if (Below(3) == 0) return;  // the stream is dropped
      context.TryCancel();
    }
    ExpectOfTheContract(stream->Finish());
  }

  std::unique_ptr<grpc::ClientWriter<v1::SubmitRequest>> BeginSubmit(int number, grpc::ClientContext* context,
                                                                     v1::SubmitReply* reply) {
    auto stream = jobs_->Submit(context, reply);
    v1::SubmitRequest request;
    request.mutable_header()->set_request_id(absl::StrCat("client ", number_, " request ", number));
    *request.mutable_header()->mutable_job() = number % 2 == 0 ? raw_ : by_path_;
    request.mutable_header()->mutable_job()->set_priority(number % 5);  // more urgent jobs displace others
    stream->Write(request);
    return stream;
  }
  // gRPC 1.51 may treat a connection that is still being made as failed, so such a call waits for the next
  // one.
  std::string SubmitWhole(int number) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::SubmitReply reply;
    const auto stream = BeginSubmit(number, &context, &reply);
    if (number % 2 == 0)
      SendArrays<grpc::ClientWriter<v1::SubmitRequest>, v1::SubmitRequest>(stream.get(), 0);
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    if (!status.ok()) return "";
    const auto [known, added] = ids_.emplace(number, reply.job_id());
    EXPECT_EQ(known->second, reply.job_id());
    return reply.job_id();
  }
  void Submit() {
    const int number = Below(kRequests);
    if (Below(3) > 0) {
      SubmitWhole(number);
      return;
    }
    grpc::ClientContext context;
    v1::SubmitReply reply;
    const auto stream = BeginSubmit(number, &context, &reply);
    if (number % 2 == 0)
      SendArrays<grpc::ClientWriter<v1::SubmitRequest>, v1::SubmitRequest>(stream.get(), Below(5));
    if (Below(2) == 0) return;  // the stream is dropped
    context.TryCancel();
    const grpc::Status status = stream->Finish();
    ExpectOfTheContract(status);
    if (status.ok()) ids_.emplace(number, reply.job_id());
  }

  std::string SomeJob() {
    if (ids_.empty()) return "no such job";
    return std::next(ids_.begin(), Below(static_cast<int>(ids_.size())))->second;
  }
  uint64_t After(const std::string& id) { return acknowledged_[id]; }
  // Reads at most `most` events; returns the status of the call.
  grpc::Status WatchFrom(const std::string& id, uint64_t after, int most) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::WatchRequest request;
    request.set_job_id(id);
    request.set_after(after);
    const auto stream = jobs_->Watch(&context, request);
    v1::WatchEvent event;
    int read = 0;
    while (read != most && stream->Read(&event)) {
      seen_->Take(id, event);
      last_[id] = std::max(last_[id], event.sequence());
      ++read;
    }
    if (read == most) context.TryCancel();
    return stream->Finish();
  }
  void Watch() {
    const std::string id = SomeJob();
    ExpectOfTheContract(WatchFrom(id, After(id), 1 + Below(8)));
  }
  void CancelJob() {
    if (Below(3) > 0) return;
    v1::JobRecord record;
    ExpectOfTheContract(testing::CancelJob(jobs_.get(), SomeJob(), &record));
  }
  void Acknowledge() {
    const std::string id = SomeJob();
    if (last_[id] == 0) return;
    grpc::ClientContext context;
    SetSomeDeadline(&context);
    const uint64_t upto = 1 + Below(static_cast<int>(last_[id]));
    v1::JobRecord record;
    ExpectOfTheContract(testing::Acknowledge(jobs_.get(), &context, id, upto, &record));
    acknowledged_[id] = std::max(acknowledged_[id], upto);  // it may be acknowledged whatever the status
  }
  void ExpectEachBundleOnce(const std::string& id) {
    const std::map<uint32_t, int> copies = seen_->Copies(id);
    EXPECT_EQ(copies.size(), static_cast<size_t>(kBundlesOfAJob)) << id;
    for (const auto& [bundle, count] : copies) EXPECT_EQ(count, 1) << id << ": bundle " << bundle;
  }

  const int number_;
  std::mt19937 random_;
  const std::function<std::shared_ptr<grpc::Channel>()> connect_;
  const v1::JobHeader by_path_, raw_;
  SeenEvents* const seen_;
  std::unique_ptr<v1::Extraction::Stub> extraction_;
  std::unique_ptr<v1::Jobs::Stub> jobs_;
  std::map<int, std::string> ids_;                       // by request
  std::map<std::string, uint64_t> last_, acknowledged_;  // by id
};

class RandomTest : public ServiceTest {
 protected:
  RandomTest() {
    options_.jobs_dir = folder_ / "jobs";
    options_.max_running_jobs = 2;
    options_.max_queued_jobs = 6;
    options_.header_seconds = 300;  // a busy machine with a sanitizer is slow
  }
  // Makes a device fail in one job of twenty.
  void LetTheEngineFail(unsigned seed) {
    const auto calls = std::make_shared<std::atomic<unsigned>>(seed);
    engine_->Set([&](auto& b) {
      b.fault.at = EngineControl::Fault::At::kExtract;
      b.fault.after_bundles = 1;
      b.fault.happens = [calls]() -> absl::Status {
        const unsigned call = ++*calls % 20;
        if (call == 3) return absl::UnavailableError("the device failed");
        return absl::OkStatus();
      };
    });
  }
  void Mend() {
    engine_->Set([](auto& b) {
      b.fault = {};
      b.gate_closed = false;
    });
  }
  v1::JobHeader OnAGrid(v1::JobHeader header) const {
    header.mutable_grid()->set_first(kWaveMin);
    header.mutable_grid()->set_step(0.5);
    header.mutable_grid()->set_count(20);
    return header;
  }
  void ExpectIdle() {
    EXPECT_TRUE(Eventually([&] {
      const v1::Capabilities status = Status();
      return status.jobs_running() == 0 && status.jobs_queued() == 0 && Metric("spexd_streams") == 0 &&
             Metric("spexd_detached_jobs{state=\"queued\"}") == 0 &&
             Metric("spexd_detached_jobs{state=\"running\"}") == 0;
    })) << Get("/metrics").second;
    EXPECT_EQ(engine_->seen().running, 0);
  }
};

TEST_F(RandomTest, CallsLeaveAnIdleServerAndWholeJobs) {
  const unsigned seed = FromEnvironment("SPEXD_RANDOM_SEED", std::random_device()() & 0xffffff);
  const int calls = static_cast<int>(FromEnvironment("SPEXD_RANDOM_CALLS", 400));
  std::cout << "seed " << seed << ", " << calls << " calls" << std::endl;
  Start();
  LetTheEngineFail(seed);
  SeenEvents seen;
  std::vector<std::unique_ptr<RandomClient>> clients;
  for (int k = 0; k < kClients; ++k) {
    clients.push_back(std::make_unique<RandomClient>(
        k, seed + k, [this] { return NewChannel(); }, OnAGrid(PathHeader()), OnAGrid(RawHeader()), &seen));
  }
  std::atomic<int> left = calls;
  std::vector<std::thread> threads;
  for (const auto& client : clients) {
    threads.emplace_back([&, acting = client.get()] {
      while (--left >= 0) acting->Act();
    });
  }
  std::mt19937 random(seed);
  while (left > 0) {  // bundles stop and continue
    const int until = left - 10;
    engine_->Set([&](auto& b) {
      b.gate_closed = !b.gate_closed && random() % 2 == 0;
      b.open_bundles = static_cast<int>(random() % 3);
    });
    for (int looks = 0; left > std::max(0, until) && looks < 20; ++looks)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Mend();
  for (std::thread& thread : threads) thread.join();
  for (const auto& client : clients) client->FinishAll();
  ExpectIdle();
  EXPECT_TRUE(Extract(PathHeader()).status.ok());
  EXPECT_TRUE(server_->Drain());
}

}  // namespace
}  // namespace spexd::testing
