#include "server/config/options.h"

#include <arpa/inet.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "core/base/machine/memory.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/config/descriptor_budget.h"
#include "server/config/option_table.h"
#include "server/config/preload_option.h"

namespace spexd {
namespace {

constexpr int kMaxConnections = 16384;  // default of --max-connections

bool IsLoopback(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  return host == "localhost" || host == "::1";
}

absl::Status CheckAddress(const std::string& name, const std::string& address, bool any_address,
                          const char* why_not) {
  SPEXD_ASSIGN_OR_RETURN(const HostPort where, ParseHostPort(name, address));
  if (IsLoopback(where.host) || any_address) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s \"%s\" is not a loopback address: %s", name, address, why_not));
}

absl::Status CheckListen(const ServerOptions& options, const std::string& name) {
  const bool tls = !options.tls_certificate.empty();
  if (absl::StartsWith(options.listen, "unix:")) {
    if (options.listen.size() == 5) return absl::InvalidArgumentError(name + " \"unix:\" lacks a path");
    if (tls) return absl::InvalidArgumentError(name + " \"unix:...\" takes no TLS: give host:port");
    return absl::OkStatus();
  }
  const bool authenticates = tls && (!options.tls_client_ca.empty() || !options.identities.empty());
  return CheckAddress(name, options.listen, options.insecure_any_address || authenticates,
                      "anyone who reaches it can submit jobs; give --tls-certificate with --tls-client-ca or "
                      "--identities, or --insecure-any-address if that is meant");
}

absl::Status CheckTls(const ServerOptions& options, const OptionNames& names) {
  if (options.tls_certificate.empty() != options.tls_private_key.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s and %s must be given together", names("--tls-certificate"), names("--tls-private-key")));
  }
  if (!options.tls_client_ca.empty() && options.tls_certificate.empty()) {
    return absl::InvalidArgumentError(names("--tls-client-ca") + " needs --tls-certificate");
  }
  return absl::OkStatus();
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
  good = good && std::all_of(where.host.begin(), where.host.end(),
                             [](unsigned char c) { return absl::ascii_isgraph(c) && c != '[' && c != ']'; });
  if (good) return where;
  return absl::InvalidArgumentError(
      absl::StrFormat("%s \"%s\": expected host:port with a port of 0 to 65535", flag, ForMessage(address)));
}

absl::Status CheckOptions(const ServerOptions& options, const OptionNames& names) {
  for (const Option& option : OptionTable())
    SPEXD_RETURN_IF_ERROR(CheckLimits(option, names(option.flag()), options));
  SPEXD_RETURN_IF_ERROR(CheckTls(options, names));
  SPEXD_RETURN_IF_ERROR(CheckListen(options, names("--listen")));
  if (options.http != "none") {
    SPEXD_RETURN_IF_ERROR(CheckAddress(names("--http"), options.http, options.insecure_any_address,
                                       "anyone who reaches it can read the server's state; give "
                                       "--insecure-any-address if that is meant"));
  }
  for (const std::string& root : options.allow_roots) {
    std::error_code error;
    if (!std::filesystem::is_directory(root, error)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s \"%s\" is not a folder", names("--allow-root"), root));
    }
  }
  for (const std::string& preload : options.preload_psfs)
    SPEXD_RETURN_IF_ERROR(ParsePreload(names("--preload-psf"), preload).status());
  if (options.jobs_keep_seconds > options.jobs_max_keep_seconds) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s is %g, must be at most %s, %g", names("--jobs-keep-seconds"), options.jobs_keep_seconds,
        names("--jobs-max-keep-seconds"), options.jobs_max_keep_seconds));
  }
  return CheckEngineChoice(options.engine);
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
  if (options.max_input_bytes == 0) {
    options.max_input_bytes = std::max(MachineMemory() / 8, int64_t{1} << 30);
  }
  if (options.max_queued_bytes == 0) options.max_queued_bytes = options.max_upload_total_bytes;
  if (options.max_queued_seconds == 0) {
    const size_t devices = std::max<size_t>(1, engine.Devices().size());
    options.max_queued_seconds = static_cast<double>(devices) * options.max_job_seconds;
  }
  const int fit = ShareDescriptors(DescriptorLimit(), options.max_running_jobs).grpc;
  options.max_connections =
      std::min(options.max_connections == 0 ? kMaxConnections : options.max_connections, fit);
  if (options.max_connections_per_peer == 0) {
    options.max_connections_per_peer = std::max(1, options.max_connections / 2);
  }
  return options;
}

}  // namespace spexd
