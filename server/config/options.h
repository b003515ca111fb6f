// The operator's options. option_table.h has their names and limits, configuration.h their sources.
#ifndef SPEXD_SERVER_CONFIG_OPTIONS_H_
#define SPEXD_SERVER_CONFIG_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cuda/loader/choose_engine.h"
#include "server/base/log.h"

namespace spexd {

inline constexpr int kMaxRunningJobs = 256;

// The values of the options, whose meaning is in the help texts of option_table.cc.
struct ServerOptions {
  std::string listen = "127.0.0.1:50051";        // host:port or unix:path; port 0: any free port
  std::string http = "127.0.0.1:9464";           // "none": no HTTP server
  std::string port_file;                         // "": no file
  std::string tls_certificate, tls_private_key;  // PEM files, both or neither; "": no TLS
  std::string tls_client_ca;                     // PEM file; "": clients need no certificate
  std::string identities;                        // "": see Identities::Open
  std::vector<std::string> allow_roots;
  std::vector<std::string> preload_psfs;  // see ParsePreload
  bool pin_preloaded = false;
  EngineChoice engine;
  int max_running_jobs = 0;  // 0: see WithDefaultsFor
  int max_queued_jobs = 128;
  int64_t max_queued_bytes = 0;                 // 0: see WithDefaultsFor
  double max_queued_seconds = 0;                // device-seconds; 0: see WithDefaultsFor
  int64_t max_upload_bytes = int64_t{1} << 30;  // limit of one input, as sent or read, and as decompressed
  int64_t max_upload_total_bytes = int64_t{4} << 30;  // limit of all uploads in flight
  int64_t max_result_bytes = int64_t{4} << 30;        // limit of all results that wait to be sent
  int64_t max_input_bytes = 0;  // limit of files, and of the data decoded from them; 0: see WithDefaultsFor
  int64_t max_product_bytes = int64_t{4} << 30;     // limit of frames with products, and the products
  int64_t product_device_bytes = int64_t{4} << 30;  // of each device; 0: the CPU computes products
  int64_t psf_cache_bytes = 0;                      // 0: see WithDefaultsFor
  double grace_seconds = 60;
  double stall_seconds = 300;
  double header_seconds = 10;
  double input_seconds = 600;
  double max_job_seconds = 3600;
  double keepalive_seconds = 60;
  double keepalive_timeout_seconds = 20;
  int max_streams = 16384;  // open calls
  int max_streams_per_peer = 4096;
  int max_streams_per_connection = 256;
  int max_connections = 0;           // 0: see WithDefaultsFor
  int max_connections_per_peer = 0;  // 0: see WithDefaultsFor
  bool insecure_any_address = false;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kAuto;

  std::string jobs_dir;  // "": detached jobs are refused
  int64_t jobs_disk_bytes = int64_t{64} << 30;
  int jobs_max_kept = 100000;
  double jobs_keep_seconds = 86400;
  double jobs_max_keep_seconds = 604800;
};

// Maps the name of a flag to the name that tells the user where its value was given: "--http" itself, or
// "/etc/spexd.conf:3: http".
using OptionNames = std::function<std::string(const std::string& flag)>;

// Checks all options. InvalidArgument names the option, its value and the limit. Roots must exist.
absl::Status CheckOptions(
    const ServerOptions& options, const OptionNames& names = [](const std::string& flag) { return flag; });

// Returns the options with defaults for values of 0 that depend on the engine, the machine or other options:
// - max_running_jobs: twice the jobs that a CUDA engine computes at once, so that some are read and written
//   while others compute; 2 for other engines, whose jobs share all processors.
// - psf_cache_bytes: 1 GiB plus the memory of all devices, in which the engine evicts PSFs by itself.
// - max_input_bytes: an eighth of the memory, at least 1 GiB.
// - max_queued_bytes: max_upload_total_bytes. max_queued_seconds: max_job_seconds for each device.
// - max_connections: 16384. max_connections_per_peer: half of max_connections.
// Also reduces max_connections to what ShareDescriptors allows.
ServerOptions WithDefaultsFor(const Engine& engine, ServerOptions options);

struct HostPort {
  std::string host;
  int port = 0;
};
// Parses "host:port" or "[v6]:port". InvalidArgument begins with `flag`.
absl::StatusOr<HostPort> ParseHostPort(const std::string& flag, const std::string& address);

}  // namespace spexd

#endif  // SPEXD_SERVER_CONFIG_OPTIONS_H_
