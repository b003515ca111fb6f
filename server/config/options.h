// The operator's options. server/config has their names, limits and sources.
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

struct ServerOptions {
  std::string listen = "127.0.0.1:50051";        // host:port or unix:path; port 0: chosen by the kernel
  std::string http = "127.0.0.1:9464";           // "none": no HTTP server
  std::string port_file;                         // the addresses in use are written here as JSON; "": not
  std::string tls_certificate, tls_private_key;  // PEM files, both or neither; "": plain text
  std::string tls_client_ca;                     // PEM file; clients must show a certificate; "": need not
  std::string identities;                        // see security/identities.h; "": all who connect are alike
  std::vector<std::string> allow_roots;          // folders that path references may name
  std::vector<std::string> preload_psfs;         // see ParsePreload
  bool pin_preloaded = false;
  EngineChoice engine;
  int max_running_jobs = 0;  // 0: see WithDefaultsFor
  int max_queued_jobs = 128;
  int64_t max_queued_bytes = 0;   // inputs of jobs that wait; 0: see WithDefaultsFor
  double max_queued_seconds = 0;  // device-seconds that jobs that wait are estimated to take; 0: likewise
  int64_t max_upload_bytes = int64_t{1} << 30;  // limit for one input, sent or inflated
  int64_t max_upload_total_bytes = int64_t{4} << 30;  // limit for all uploads in flight
  int64_t max_result_bytes = int64_t{4} << 30;        // limit for all results that wait to be sent
  int64_t max_input_bytes = 0;                        // limit for files being read, and for what is decoded
                                                      // of them; 0: see WithDefaultsFor
  int64_t max_product_bytes = int64_t{4} << 30;       // limit for frames and what is made of them
  int64_t product_device_bytes = int64_t{4} << 30;    // of each device, beside the engine's; 0: processors
  int64_t psf_cache_bytes = 0;                        // 0: see WithDefaultsFor
  double grace_seconds = 60;                          // time for accepted jobs after SIGTERM
  double stall_seconds = 300;             // a client that neither sends nor receives for this time is cut off
  double header_seconds = 10;             // from a stream's begin to its header
  double input_seconds = 600;             // from the header to the end of the input
  double max_job_seconds = 3600;          // from a stream's begin to its end
  double keepalive_seconds = 60;          // without a word of a connection, until it is pinged
  double keepalive_timeout_seconds = 20;  // from a ping to the end of a connection that does not answer
  int max_streams = 16384;                // open at once
  int max_streams_per_peer = 4096;
  int max_streams_per_connection = 256;
  int max_connections = 0;           // to the gRPC port; 0: see WithDefaultsFor
  int max_connections_per_peer = 0;  // 0: see WithDefaultsFor
  bool insecure_any_address = false;
  LogLevel log_level = LogLevel::kInfo;
  LogFormat log_format = LogFormat::kAuto;

  std::string jobs_dir;                         // folder of detached jobs; "": none are taken
  int64_t jobs_disk_bytes = int64_t{64} << 30;  // limit for their inputs and results on disk
  int jobs_max_kept = 100000;                   // detached jobs on disk, those that have ended too
  double jobs_keep_seconds = 86400;             // from a job's end to its removal, unless it asks otherwise
  double jobs_max_keep_seconds = 604800;        // the most that it may ask for
};

// The name that tells the user where an option's value came from, for its flag's name: "--http" itself, or
// "/etc/spexd.conf:3: http".
using OptionNames = std::function<std::string(const std::string& flag)>;

// InvalidArgument naming the option, its value and the limit. Roots must be folders that exist.
absl::Status CheckOptions(
    const ServerOptions& options, const OptionNames& names = [](const std::string& flag) { return flag; });

// Fills in the values that `options` leave to the engine. Jobs that run at once: twice those that a
// CUDA engine runs at once, so that some are read and written while others compute; 2 for other engines,
// which share all processors. Bytes of warm PSFs: a GiB, plus the memory of all devices, whose engine makes
// room by itself. Bytes of inputs: an eighth of the memory, at least 1 GiB. Connections: 16384, of them half
// for one peer; never more than ShareDescriptors leaves to the gRPC port. Queued bytes: those of all
// uploads. Queued seconds: what the devices can do in the time that a job may take.
ServerOptions WithDefaultsFor(const Engine& engine, ServerOptions options);

struct HostPort {
  std::string host;
  int port = 0;
};
// "host:port" or "[v6]:port".
absl::StatusOr<HostPort> ParseHostPort(const std::string& flag, const std::string& address);

}  // namespace spexd

#endif  // SPEXD_SERVER_CONFIG_OPTIONS_H_
