#include "server/options.h"

#include <arpa/inet.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "cuda/loader/device_list.h"

namespace spexd {
namespace {

constexpr int kMaxRunningJobs = 256;

absl::Status CheckWithin(const char* flag, double value, double least, double most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is %.15g, must be %.15g to %.15g", flag, value, least, most));
}

bool IsLoopback(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return host == "localhost" || host == "::1";
}

absl::Status CheckAddress(const char* flag, const std::string& address, bool any_address) {
  SPEXD_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort(flag, address));
  if (IsLoopback(where.host) || any_address) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s \"%s\" is not a loopback address: without TLS anyone who reaches it can submit jobs; give "
      "--insecure-any-address if that is meant",
      flag, address));
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(const std::string& flag, const std::string& address) {
  const size_t colon = address.rfind(':');
  HostPort where;
  bool good = colon != std::string::npos && colon > 0;
  if (good) {
    where.host = address.substr(0, colon);
    good = absl::SimpleAtoi(address.substr(colon + 1), &where.port) && where.port >= 0 && where.port <= 65535;
  }
  if (good && where.host.front() == '[') {
    good = where.host.size() > 2 && where.host.back() == ']';
    if (good) where.host = where.host.substr(1, where.host.size() - 2);
  } else if (good && where.host.find(':') != std::string::npos) {
    good = false;  // an IPv6 address without brackets
  }
  if (good) return where;
  return absl::InvalidArgumentError(
      absl::StrFormat("%s \"%s\": expected host:port with a port of 0 to 65535", flag, address));
}

absl::Status CheckOptions(const ServerOptions& options) {
  constexpr double kMaxBytes = 1e15;
  if (absl::StartsWith(options.listen, "unix:")) {
    if (options.listen.size() == 5) return absl::InvalidArgumentError("--listen \"unix:\" lacks a path");
  } else {
    SPEXD_RETURN_IF_ERROR(CheckAddress("--listen", options.listen, options.insecure_any_address));
  }
  if (options.http != "none") {
    SPEXD_RETURN_IF_ERROR(CheckAddress("--http", options.http, options.insecure_any_address));
  }
  for (const std::string& root : options.allow_roots) {
    std::error_code error;
    if (!std::filesystem::is_directory(root, error)) {
      return absl::InvalidArgumentError(absl::StrFormat("--allow-root \"%s\" is not a folder", root));
    }
  }
  SPEXD_RETURN_IF_ERROR(CheckEngineChoice(options.engine));
  SPEXD_RETURN_IF_ERROR(CheckWithin("--max-running-jobs", options.max_running_jobs, 0, kMaxRunningJobs));
  SPEXD_RETURN_IF_ERROR(CheckWithin("--max-queued-jobs", options.max_queued_jobs, 0, 2000));
  SPEXD_RETURN_IF_ERROR(
      CheckWithin("--max-upload-bytes", static_cast<double>(options.max_upload_bytes), 1, kMaxBytes));
  SPEXD_RETURN_IF_ERROR(CheckWithin("--max-upload-total-bytes",
                                    static_cast<double>(options.max_upload_total_bytes), 1, kMaxBytes));
  SPEXD_RETURN_IF_ERROR(
      CheckWithin("--max-result-bytes", static_cast<double>(options.max_result_bytes), 1, kMaxBytes));
  SPEXD_RETURN_IF_ERROR(
      CheckWithin("--psf-cache-bytes", static_cast<double>(options.psf_cache_bytes), 0, kMaxBytes));
  SPEXD_RETURN_IF_ERROR(CheckWithin("--grace-seconds", options.grace_seconds, 0, 86400));
  return CheckWithin("--stall-seconds", options.stall_seconds, 1, 86400);
}

ServerOptions WithDefaultsFor(const Engine& engine, ServerOptions options) {
  const EngineInfo info = engine.Info();
  if (options.max_running_jobs == 0) {
    options.max_running_jobs = info.kind == "cuda" ? std::clamp(2 * info.threads, 2, kMaxRunningJobs) : 2;
  }
  if (options.psf_cache_bytes == 0) {
    options.psf_cache_bytes = int64_t{1} << 30;
    for (const DeviceStatus& device : engine.Devices()) options.psf_cache_bytes += device.memory_bytes;
  }
  return options;
}

ParsedCommandLine ParseCommandLine(int argc, const char* const* argv) {
  ParsedCommandLine parsed;
  ServerOptions& o = parsed.options;
  std::string log_level = "info", devices;

  CLI::App app{"spexd: extracts spectra from CCD frames, as a gRPC service", "spexd"};
  app.set_version_flag("--version", std::string("spexd ") + kVersion);
  const CLI::AsSizeValue size(false);
  app.add_option("--listen", o.listen, "gRPC address, host:port or unix:path; port 0: any free one")
      ->capture_default_str();
  app.add_option("--http", o.http,
                 "address of /metrics, /livez, /readyz and the status page; \"none\": without")
      ->capture_default_str();
  app.add_option("--port-file", o.port_file, "write the addresses in use to this file, as JSON");
  app.add_option("--allow-root", o.allow_roots, "folder that jobs may name files under; may be repeated");
  app.add_option("--device", o.engine.device,
                 "cpu, cuda or auto; auto: CUDA, or the CPU where that cannot be had")
      ->capture_default_str();
  const CLI::Option* devices_flag =
      app.add_option("--devices", devices, "CUDA devices, such as 0,2; default: all");
  app.add_option("--device-memory-bytes", o.engine.device_memory_bytes,
                 "memory of each CUDA device; 0: nine tenths of what is free")
      ->transform(size);
  app.add_option("--jobs-per-device", o.engine.jobs_per_device, "jobs that compute on a CUDA device at once")
      ->capture_default_str();
  app.add_option("--threads", o.engine.threads,
                 "threads of the CPU engine and of reading files; 0: all processors")
      ->capture_default_str();
  app.add_option("--max-running-jobs", o.max_running_jobs,
                 "jobs that run at once; 0: 2, with CUDA twice those that compute at once")
      ->capture_default_str();
  app.add_option("--max-queued-jobs", o.max_queued_jobs, "jobs that may wait; more are refused")
      ->capture_default_str();
  app.add_option("--max-upload-bytes", o.max_upload_bytes, "largest input, as sent and as inflated")
      ->transform(size);
  app.add_option("--max-upload-total-bytes", o.max_upload_total_bytes, "all uploads in flight")
      ->transform(size);
  app.add_option("--max-result-bytes", o.max_result_bytes, "all results that wait to be sent")
      ->transform(size);
  app.add_option("--psf-cache-bytes", o.psf_cache_bytes,
                 "memory for warm PSFs; 0: 1 GiB and, with CUDA, that of all devices")
      ->transform(size);
  app.add_option("--max-workspace-bytes", o.engine.max_workspace_bytes,
                 "memory of the CPU engine's workspaces; 0: half of all")
      ->transform(size);
  app.add_option("--grace-seconds", o.grace_seconds, "time that accepted jobs get after SIGTERM")
      ->capture_default_str();
  app.add_option("--stall-seconds", o.stall_seconds,
                 "cut off a client that neither sends nor receives for so long")
      ->capture_default_str();
  app.add_flag("--insecure-any-address", o.insecure_any_address,
               "allow addresses that are not loopback, without TLS");
  app.add_option("--log-level", log_level, "debug, info, warning or error")->capture_default_str();

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    parsed.exit_code = app.exit(error, out, err) == 0 ? 0 : 2;
    parsed.text = out.str() + err.str();
    return parsed;
  }
  absl::Status status;
  if (devices_flag->count() > 0) {
    absl::StatusOr<std::vector<int>> list = ParseDeviceList(devices);
    status.Update(list.status());
    if (list.ok()) o.engine.devices = *std::move(list);
  }
  status.Update(CheckOptions(o));
  if (const absl::StatusOr<LogLevel> level = ParseLogLevel(log_level); level.ok()) {
    o.log_level = *level;
  } else {
    status.Update(level.status());
  }
  if (!status.ok()) {
    parsed.exit_code = 2;
    parsed.text = absl::StrFormat("spexd: %s\n", status.message());
  }
  return parsed;
}

}  // namespace spexd
