// The server's own cost, with an engine that takes no time: processor time of a small job, and throughput of
// uploads and results compared with gRPC alone.
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/digest/crc32c.h"
#include "core/base/machine/cpus.h"
#include "core/fits/writers.h"
#include "spexd/v1/extraction.grpc.pb.h"
#include "tests/measure/raw_stream.h"
#include "tests/service/support/inputs.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

constexpr char kExtract[] = "/spexd.v1.Extraction/Extract";
constexpr int kRepeats = 9;
constexpr double kMinShare = 0.7;  // of the throughput of gRPC alone
constexpr double kMaxJobSeconds = 1e-3;
constexpr size_t kChunkBytes = 1 << 20;

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Returns the processor time of a process in seconds, user's and kernel's.
double CpuSecondsOf(pid_t process) {
  clockid_t clock;
  timespec time = {};
  EXPECT_EQ(clock_getcpuclockid(process, &clock), 0);
  EXPECT_EQ(clock_gettime(clock, &time), 0);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) {
  grpc::ChannelArguments own;
  own.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), own);
}

grpc::ByteBuffer Serialised(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

v1::ExtractEvent Parsed(const grpc::ByteBuffer& message) {
  grpc::Slice bytes;
  EXPECT_TRUE(message.DumpToSingleSlice(&bytes).ok());
  v1::ExtractEvent event;
  EXPECT_TRUE(event.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size())));
  return event;
}

// Returns a PSF with many spectra on a small CCD; no real engine could separate them.
Psf WidePsf(int fibres, double wave_max) {
  Psf psf = SmallPsf();
  psf.fibres = fibres;
  psf.columns = fibres + 10;
  psf.rows = 1000;
  psf.wave_max = wave_max;
  std::vector<LegendreTable*> tables = GaussHermite(psf).Tables();
  tables.insert(tables.end(), {&psf.traces.x, &psf.traces.y});
  for (LegendreTable* table : tables) {
    table->wave_max = wave_max;
    table->coeff.Assign({fibres, 2});
    for (int i = 0; i < fibres; ++i) table->coeff(i, 0) = 1;
  }
  for (int i = 0; i < fibres; ++i) {
    psf.traces.x.coeff(i, 0) = 5 + i;
    psf.traces.y.coeff(i, 0) = psf.traces.y.coeff(i, 1) = psf.rows / 2.0 - 4;
    psf.traces.y.coeff(i, 0) += 4;
  }
  return psf;
}

struct Peer {
  std::shared_ptr<grpc::Channel> channel;
  pid_t process = -1;
};

class ServiceBenchmark : public ::testing::Test {
 protected:
  ServiceBenchmark()
      : spexd_({"--allow-root", folder_.path(), "--device", "cuda", "--log-level", "info"},
               {.environment = {"SPEXD_CUDA_MODULE=" SPEXD_INSTANT_ENGINE}}),
        raw_({BinFolder() + "/raw_grpc_server"}),
        channel_(ChannelTo(spexd_.address())) {
    std::string line;
    EXPECT_TRUE(raw_.WaitForLine("port ", &line));
    raw_channel_ = ChannelTo("127.0.0.1:" + line.substr(5));
  }

  // Returns a header of a job whose raw image has the PSF's size and follows.
  v1::JobHeader Header(const Psf& psf, int bundle_size) {
    const absl::Status written = WritePsf(psf, folder_ / "psf.fits");
    EXPECT_TRUE(written.ok()) << written;
    v1::JobHeader header = RawHeader(folder_, bundle_size);
    header.mutable_image()->mutable_raw()->set_rows(psf.rows);
    header.mutable_image()->mutable_raw()->set_columns(psf.columns);
    return header;
  }
  static std::vector<v1::ExtractRequest> Messages(const v1::JobHeader& header) {
    const v1::RawImage& raw = header.image().raw();
    const std::string bytes = RawArrays(raw.rows(), raw.columns());
    std::vector<v1::ExtractRequest> messages(1);
    *messages[0].mutable_header() = header;
    for (size_t sent = 0; sent < bytes.size(); sent += kChunkBytes) {
      v1::InputChunk& chunk = *messages.emplace_back().mutable_chunk();
      chunk.set_input(v1::INPUT_IMAGE);
      chunk.set_offset(sent);
      chunk.set_payload(bytes.substr(sent, kChunkBytes));
    }
    v1::InputEnd& end = *messages.emplace_back().mutable_end();
    end.set_input(v1::INPUT_IMAGE);
    end.set_crc32c(Crc32c(bytes));
    return messages;
  }
  // Runs a job; returns its summary.
  v1::JobSummary Run(const std::vector<v1::ExtractRequest>& messages) {
    const auto stub = v1::Extraction::NewStub(channel_);
    grpc::ClientContext context;
    const auto stream = stub->Extract(&context);
    for (const v1::ExtractRequest& message : messages) stream->Write(message);
    stream->WritesDone();
    v1::ExtractEvent event;
    while (stream->Read(&event)) continue;
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return event.summary();
  }

  Peer spexd_peer() { return {channel_, spexd_.process().id()}; }
  Peer raw_peer() { return {raw_channel_, raw_.id()}; }

  TempFolder folder_;
  TestServer spexd_;
  Process raw_;
  std::shared_ptr<grpc::Channel> channel_, raw_channel_;
};

TEST_F(ServiceBenchmark, AWarmJobCostsLessThanAMillisecondOfTheServersProcessors) {
  constexpr int kJobs = 500;
  v1::JobHeader header = Header(SmallPsf(), kFibres);
  const std::string hash = Run(Messages(header)).psf_hash();
  header.mutable_psf()->set_psf_hash(hash);
  const std::vector<v1::ExtractRequest> messages = Messages(header);
  Run(messages);
  for (const int clients : {1, 8}) {
    std::vector<double> seconds;
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      const double before = CpuSecondsOf(spexd_.process().id());
      std::vector<std::jthread> threads;
      for (int k = 0; k < clients; ++k) {
        threads.emplace_back([&] {
          for (int job = 0; job < kJobs / clients; ++job) Run(messages);
        });
      }
      threads.clear();
      seconds.push_back((CpuSecondsOf(spexd_.process().id()) - before) / (kJobs / clients * clients));
    }
    std::printf("a warm job, %d at once: %.3f ms of the server's processors (%.3f .. %.3f)\n", clients,
                1e3 * Median(seconds), 1e3 * *std::min_element(seconds.begin(), seconds.end()),
                1e3 * *std::max_element(seconds.begin(), seconds.end()));
    EXPECT_LT(Median(seconds), kMaxJobSeconds);
  }
}

// The size of a transfer in one direction, and its cost.
struct Transfer {
  double bytes = 0;
  double seconds = 0;
  double cpu = 0;  // processor seconds of server and client together
};

// Measures a transfer from construction to End, which may be called again.
class TransferClock {
 public:
  explicit TransferClock(pid_t server) : server_(server) {}
  void End(Transfer* transfer) const {
    transfer->seconds = SecondsSince(start_);
    transfer->cpu = CpuSecondsOf(server_) + CpuSecondsOf(getpid()) - cpu_;
  }

 private:
  const pid_t server_;
  const double cpu_ = CpuSecondsOf(server_) + CpuSecondsOf(getpid());
  const Clock::time_point start_ = Clock::now();
};

// Prints the figures; returns the server's throughput as a fraction of gRPC's alone.
double Compare(const char* what, const std::vector<Transfer>& server, const std::vector<Transfer>& alone) {
  const auto rate = [](const Transfer& t) { return 1e-6 * t.bytes / t.seconds; };
  const auto cpu = [](const Transfer& t) { return 1e9 * t.cpu / t.bytes; };
  const auto median = [](const std::vector<Transfer>& all, const auto& value) {
    std::vector<double> values;
    for (const Transfer& transfer : all) values.push_back(value(transfer));
    return Median(std::move(values));
  };
  const auto best = [&rate](const std::vector<Transfer>& all) {
    double most = 0;
    for (const Transfer& transfer : all) most = std::max(most, rate(transfer));
    return most;
  };
  std::vector<double> shares;
  for (size_t k = 0; k < server.size(); ++k) shares.push_back(rate(server[k]) / rate(alone[k]));
  std::printf(
      "%s: %.0f MB/s (best %.0f), gRPC alone %.0f MB/s (best %.0f); processors %.2f s/GB, gRPC alone %.2f "
      "s/GB\n",
      what, median(server, rate), best(server), median(alone, rate), best(alone), median(server, cpu),
      median(alone, cpu));
  std::printf("%s: share of gRPC alone %.2f (%.2f .. %.2f)\n", what, Median(shares),
              *std::min_element(shares.begin(), shares.end()),
              *std::max_element(shares.begin(), shares.end()));
  return Median(shares);
}

// Measures from the first chunk to the answer that everything arrived intact.
Transfer Upload(const Peer& spexd, const std::vector<grpc::ByteBuffer>& messages) {
  RawStream stream(spexd.channel, kExtract);
  stream.Write(messages[0]);
  grpc::ByteBuffer answer;
  EXPECT_TRUE(stream.Read(&answer));
  EXPECT_TRUE(Parsed(answer).has_accepted());
  Transfer transfer;
  const TransferClock clock(spexd.process);
  for (size_t k = 1; k < messages.size(); ++k) {
    transfer.bytes += static_cast<double>(messages[k].Length());
    EXPECT_TRUE(stream.Write(messages[k]));
  }
  EXPECT_TRUE(stream.Read(&answer));
  clock.End(&transfer);
  EXPECT_EQ(Parsed(answer).progress().state(), "queued");
  stream.WritesDone();
  while (stream.Read(&answer)) continue;
  const grpc::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return transfer;
}

Transfer UploadAlone(const Peer& raw, const std::vector<grpc::ByteBuffer>& messages) {
  RawStream stream(raw.channel, "/raw/Take");
  Transfer transfer;
  const TransferClock clock(raw.process);
  for (size_t k = 1; k < messages.size(); ++k) {
    transfer.bytes += static_cast<double>(messages[k].Length());
    EXPECT_TRUE(stream.Write(messages[k]));
  }
  stream.WritesDone();
  grpc::ByteBuffer answer;
  EXPECT_TRUE(stream.Read(&answer));
  clock.End(&transfer);
  EXPECT_TRUE(stream.Finish().ok());
  return transfer;
}

TEST_F(ServiceBenchmark, AnUploadReachesItsShareOfWhatGrpcDoesAlone) {
  Psf psf = SmallPsf();
  psf.rows = psf.columns = 4096;
  const v1::JobHeader header = Header(psf, kFibres);
  std::vector<grpc::ByteBuffer> messages;
  for (const v1::ExtractRequest& message : Messages(header)) messages.push_back(Serialised(message));
  Upload(spexd_peer(), messages);
  UploadAlone(raw_peer(), messages);
  std::vector<Transfer> server, alone;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    server.push_back(Upload(spexd_peer(), messages));
    alone.push_back(UploadAlone(raw_peer(), messages));
  }
  EXPECT_GE(Compare("upload of 201 MB", server, alone), kMinShare);
}

// The first byte of a message tells which field of ExtractEvent it sets.
bool IsBundle(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  return message.Dump(&slices).ok() && !slices.empty() &&
         *slices[0].begin() == (v1::ExtractEvent::kBundleFieldNumber << 3 | 2);
}

// Measures from the first to the last message of a bundle; `sizes`: the sizes of these messages.
Transfer Results(const Peer& spexd, const std::vector<grpc::ByteBuffer>& messages,
                 std::vector<uint32_t>* sizes) {
  RawStream stream(spexd.channel, kExtract);
  for (const grpc::ByteBuffer& message : messages) EXPECT_TRUE(stream.Write(message));
  stream.WritesDone();
  grpc::ByteBuffer event;
  std::optional<TransferClock> clock;
  Transfer transfer;
  sizes->clear();
  while (stream.Read(&event)) {
    if (!IsBundle(event)) continue;
    if (!clock.has_value()) {
      clock.emplace(spexd.process);
    } else {
      transfer.bytes += static_cast<double>(event.Length());
      clock->End(&transfer);
    }
    sizes->push_back(static_cast<uint32_t>(event.Length()));
  }
  const grpc::Status status = stream.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return transfer;
}

Transfer ResultsAlone(const Peer& raw, const std::vector<uint32_t>& sizes) {
  RawStream stream(raw.channel, "/raw/Give");
  const grpc::Slice asked(sizes.data(), sizes.size() * sizeof(uint32_t));
  stream.Write(grpc::ByteBuffer(&asked, 1));
  grpc::ByteBuffer message;
  EXPECT_TRUE(stream.Read(&message));
  Transfer transfer;
  const TransferClock clock(raw.process);
  while (stream.Read(&message)) {
    transfer.bytes += static_cast<double>(message.Length());
    clock.End(&transfer);
  }
  EXPECT_TRUE(stream.Finish().ok());
  return transfer;
}

TEST_F(ServiceBenchmark, ResultsReachTheirShareOfWhatGrpcDoesAlone) {
  constexpr int kManyFibres = 500, kBins = 5000;
  v1::JobHeader header = Header(WidePsf(kManyFibres, kWaveMin + 0.8 * kBins), 25);
  std::vector<grpc::ByteBuffer> messages;
  for (const v1::ExtractRequest& message : Messages(header)) messages.push_back(Serialised(message));
  std::vector<uint32_t> sizes;
  Results(spexd_peer(), messages, &sizes);
  ResultsAlone(raw_peer(), sizes);
  std::vector<Transfer> server, alone;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    server.push_back(Results(spexd_peer(), messages, &sizes));
    alone.push_back(ResultsAlone(raw_peer(), sizes));
  }
  const double share = Compare("results of 150 MB", server, alone);
  constexpr int kBusyThreads = 3;  // those of the job, the sending and the client; gRPC alone has two
  if (AvailableCpus() < kBusyThreads)
    GTEST_SKIP() << "checksums and sending share a processor here, the share is not judged";
  EXPECT_GE(share, kMinShare);
}

}  // namespace
}  // namespace spexd::testing
