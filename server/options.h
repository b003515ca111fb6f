// The operator's options: the flags of spexd.
#ifndef SPEXD_SERVER_OPTIONS_H_
#define SPEXD_SERVER_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cuda/loader/choose_engine.h"
#include "server/log.h"

namespace spexd {

struct ServerOptions {
  std::string listen = "127.0.0.1:50051";  // host:port or unix:path; port 0: chosen by the kernel
  std::string http = "127.0.0.1:9464";     // "none": no HTTP server
  std::string port_file;                   // the addresses in use are written here as JSON; "": not
  std::vector<std::string> allow_roots;    // folders that path references may name
  EngineChoice engine;
  int max_running_jobs = 0;  // 0: see WithDefaultsFor
  int max_queued_jobs = 128;
  int64_t max_upload_bytes = int64_t{1} << 30;        // limit for one input, sent or inflated
  int64_t max_upload_total_bytes = int64_t{4} << 30;  // limit for all uploads in flight
  int64_t max_result_bytes = int64_t{4} << 30;        // limit for all results that wait to be sent
  int64_t psf_cache_bytes = 0;                        // 0: see WithDefaultsFor
  double grace_seconds = 60;                          // time for accepted jobs after SIGTERM
  double stall_seconds = 300;  // a client that neither sends nor receives for this time is cut off
  bool insecure_any_address = false;
  LogLevel log_level = LogLevel::kInfo;
};

// Result of parsing the command line.
struct ParsedCommandLine {
  ServerOptions options;
  std::optional<int>
      exit_code;  // set where the program should end now (--help, --version, a mistake); `text` says why
  std::string text;
};

ParsedCommandLine ParseCommandLine(int argc, const char* const* argv);

// InvalidArgument naming the flag, its value and the limit. Roots must be folders that exist.
absl::Status CheckOptions(const ServerOptions& options);

// Fills in the values that `options` leave to the engine. Jobs that have a turn at once: twice those that a
// CUDA engine runs at once, so that some are read and written while others compute; 2 for other engines,
// which share all processors. Bytes of warm PSFs: a GiB, plus the memory of all devices, whose engine makes
// room by itself.
ServerOptions WithDefaultsFor(const Engine& engine, ServerOptions options);

struct HostPort {
  std::string host;
  int port = 0;
};
// "host:port" or "[v6]:port".
absl::StatusOr<HostPort> ParseHostPort(const std::string& flag, const std::string& address);

}  // namespace spexd

#endif  // SPEXD_SERVER_OPTIONS_H_
