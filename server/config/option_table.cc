#include "server/config/option_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "cuda/loader/device_list.h"

namespace spexd {
namespace {

constexpr double kMaxBytes = kMaxEngineBytes;
constexpr double kMaxSeconds = 86400;
constexpr size_t kMaxTextBytes = 1024;
constexpr double kMaxStreams = 1e6;  // and connections
constexpr double kMaxQueuedSeconds = 1e9;
constexpr double kMaxKeepSeconds = 366 * kMaxSeconds;
constexpr double kMaxKept = 10000000;

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// Returns the value as a number to compare with limits; none for values that are not numbers.
std::optional<double> NumberOf(const OptionValue& value) {
  return std::visit(Overloaded{[](int* number) -> std::optional<double> { return *number; },
                               [](int64_t* bytes) -> std::optional<double> { return *bytes; },
                               [](double* number) -> std::optional<double> { return *number; },
                               [](auto*) -> std::optional<double> { return std::nullopt; }},
                    value);
}

OptionValue ValueOf(const Option& option, const ServerOptions& options) {
  return option.value(const_cast<ServerOptions*>(&options));  // callers only read through the pointer
}

absl::Status Wrong(const std::string& name, const std::string& text, const std::string& expected) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is \"%s\", must be %s", name, ForMessage(text), expected));
}

// Checks that a value fits into messages, and into files with one value per line.
absl::Status CheckText(const std::string& name, const std::string& text) {
  if (text.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s has %d bytes, must have at most %d", name, text.size(), kMaxTextBytes));
  }
  if (HasControlCharacters(text)) return Wrong(name, text, "without control characters");
  return absl::OkStatus();
}

absl::Status SetBytes(const std::string& name, std::string text, const std::string& limits, int64_t* bytes) {
  const std::string given = text;
  try {
    const std::string error = CLI::AsSizeValue(false)(text);  // replaces "2GiB" by a number
    if (error.empty() && absl::SimpleAtoi(text, bytes)) return absl::OkStatus();
  } catch (const CLI::Error&) {
  }
  return Wrong(name, given, "a count of bytes such as 2GiB, " + limits);
}

absl::Status SetSwitch(const std::string& name, const std::string& text, bool* on) {
  if (text != "true" && text != "false") return Wrong(name, text, "true or false");
  *on = text == "true";
  return absl::OkStatus();
}

template <class Number, class Parse>
absl::Status SetNumber(const std::string& name, const std::string& text, const std::string& kind, Parse parse,
                       Number* number) {
  return parse(text, number) ? absl::OkStatus() : Wrong(name, text, kind);
}

std::string BytesText(int64_t bytes) {
  for (const auto& [unit, size] : {std::pair("GiB", int64_t{1} << 30), std::pair("MiB", int64_t{1} << 20)}) {
    if (bytes >= size && bytes % size == 0) return absl::StrCat(bytes / size, unit);
  }
  return absl::StrCat(bytes);
}

// Returns 15 digits of the value if they determine it, otherwise 17.
std::string RealText(double value) {
  const std::string text = absl::StrFormat("%.15g", value);
  double same = 0;
  return absl::SimpleAtod(text, &same) && same == value ? text : absl::StrFormat("%.17g", value);
}

std::string LimitText(const OptionValue& value, double limit) {
  if (std::holds_alternative<int64_t*>(value) && limit >= 1024) return "1e15";
  return absl::StrFormat("%.15g", limit);
}

using O = ServerOptions*;
using V = OptionValue;

// The last two fields of the rows below.
constexpr bool kCommon = true, kReloadable = true;

std::vector<Option> ListeningOptions() {
  return {
      {"listen", "ADDRESS", [](O o) -> V { return &o->listen; }, 0, 0,
       "Address of the gRPC service: host:port, or unix:PATH for a Unix socket. Port 0: any free port. The "
       "socket of a running server is never replaced",
       kCommon},
      {"http", "ADDRESS", [](O o) -> V { return &o->http; }, 0, 0,
       "host:port of metrics, probes and the status page. none: no HTTP server", kCommon},
      {"port-file", "FILE", [](O o) -> V { return &o->port_file; }, 0, 0,
       "File to which the addresses in use are written as JSON (grpc, grpc_port, http_port, pid), "
       "atomically"},
      {"max-connections", "N", [](O o) -> V { return &o->max_connections; }, 0, kMaxStreams,
       "Connections to the gRPC port. 0: 16384. The file descriptors may allow fewer; the log line started "
       "gives the number"},
      {"max-connections-per-peer", "N", [](O o) -> V { return &o->max_connections_per_peer; }, 0, kMaxStreams,
       "Connections to the gRPC port from one address or, on a Unix socket, from one user. 0: half of all"},
      {"max-streams", "N", [](O o) -> V { return &o->max_streams; }, 1, kMaxStreams,
       "Open calls of Extract, Analyse, LoadPsf and Jobs; more are refused with a retry delay"},
      {"max-streams-per-peer", "N", [](O o) -> V { return &o->max_streams_per_peer; }, 1, kMaxStreams,
       "Open calls of Extract, Analyse, LoadPsf and Jobs from one address"},
      {"max-streams-per-connection", "N", [](O o) -> V { return &o->max_streams_per_connection; }, 1,
       kMaxStreams, "Open calls of Extract, Analyse, LoadPsf and Jobs on one connection"},
      {"keepalive-seconds", "SECONDS", [](O o) -> V { return &o->keepalive_seconds; }, 1, kMaxSeconds,
       "Time without data from a client after which its connection is pinged"},
      {"keepalive-timeout-seconds", "SECONDS", [](O o) -> V { return &o->keepalive_timeout_seconds; }, 1,
       kMaxSeconds,
       "Time to answer a ping. A connection that does not answer is closed, and its calls are cancelled"},
      {"header-seconds", "SECONDS", [](O o) -> V { return &o->header_seconds; }, 0.1, kMaxSeconds,
       "Time from the start of a call to its header; a slower call is ended"},
      {"input-seconds", "SECONDS", [](O o) -> V { return &o->input_seconds; }, 0.1, kMaxSeconds,
       "Time from the header of a call to the end of its input; a slower call is ended"},
      {"stall-seconds", "SECONDS", [](O o) -> V { return &o->stall_seconds; }, 1, kMaxSeconds,
       "Time after which a client that neither sends nor receives is disconnected"},
  };
}

std::vector<Option> EngineOptions() {
  return {
      {"device", "{auto,cpu,cuda}", [](O o) -> V { return &o->engine.device; }, 0, 0,
       "Engine. cuda: spexd does not start without CUDA. auto: CUDA, or the CPU if CUDA is not available",
       kCommon},
      {"devices", "LIST", [](O o) -> V { return &o->engine.devices; }, 0, 0,
       "CUDA devices by their CUDA numbers, such as 0,2. A list requires CUDA", kCommon},
      {"threads", "N", [](O o) -> V { return &o->engine.threads; }, 0, kMaxEngineThreads,
       "Threads of the CPU engine, of reading files and of products, each. 0: one per processor", kCommon},
      {"jobs-per-device", "N", [](O o) -> V { return &o->engine.jobs_per_device; }, 1, kMaxJobsPerDevice,
       "Jobs that compute at once on each CUDA device"},
  };
}

std::vector<Option> InputOptions() {
  return {
      {"allow-root", "DIR", [](O o) -> V { return &o->allow_roots; }, 0, 0,
       "Folder under which jobs may name files; may be repeated. Links and .. are resolved before the check. "
       "Without it jobs must upload their files",
       kCommon},
      {"preload-psf", "PATH[,FIRST,LAST,STEP[,SIZE]]", [](O o) -> V { return &o->preload_psfs; }, 0, 0,
       "PSF to load before the server is ready, from any folder; may be repeated. With FIRST,LAST,STEP "
       "(Angstrom) it is also prepared for this grid, in bundles of SIZE fibres (25)",
       kCommon},
      {"pin-preloaded", "", [](O o) -> V { return &o->pin_preloaded; }, 0, 0,
       "Keep preloaded PSFs, however long they are not used"},
  };
}

std::vector<Option> JobOptions() {
  return {
      {"max-running-jobs", "N", [](O o) -> V { return &o->max_running_jobs; }, 0, kMaxRunningJobs,
       "Jobs that have a slot at once; some read while others compute. 0: with CUDA twice as many as "
       "compute at once, otherwise 2",
       kCommon},
      {"max-queued-jobs", "N", [](O o) -> V { return &o->max_queued_jobs; }, 0, 2000,
       "Jobs in the queue; more are refused with a retry delay. With --identities, one identity may fill "
       "half of it, or its queue-share",
       kCommon},
      {"max-queued-bytes", "BYTES", [](O o) -> V { return &o->max_queued_bytes; }, 0, kMaxBytes,
       "Inputs of the jobs in the queue. 0: the value of --max-upload-total-bytes"},
      {"max-queued-seconds", "SECONDS", [](O o) -> V { return &o->max_queued_seconds; }, 0, kMaxQueuedSeconds,
       "Device time that the jobs in the queue are estimated to take. 0: --max-job-seconds for each device"},
      {"max-job-seconds", "SECONDS", [](O o) -> V { return &o->max_job_seconds; }, 0.1, 10 * kMaxSeconds,
       "Time from the start of a call to the end of its job; a slower job is ended. For detached jobs the "
       "time of each run",
       kCommon},
  };
}

std::vector<Option> MemoryOptions() {
  return {
      {"device-memory-bytes", "BYTES", [](O o) -> V { return &o->engine.device_memory_bytes; }, 0, kMaxBytes,
       "Memory of each CUDA device that the engine takes at the start. 0: nine tenths of the free memory",
       kCommon},
      {"product-device-bytes", "BYTES", [](O o) -> V { return &o->product_device_bytes; }, 0, kMaxBytes,
       "Memory of each CUDA device for products, in addition to --device-memory-bytes: a quarter for waiting "
       "spectra, the rest for computing. Products that do not fit are computed on the CPU. 0: all are"},
      {"psf-cache-bytes", "BYTES", [](O o) -> V { return &o->psf_cache_bytes; }, 0, kMaxBytes,
       "Cache of PSFs, prepared grids, trace references, fiberflats and templates. 0: 1 GiB and, with "
       "CUDA, the memory of all devices, where the engine evicts the least recently used",
       kCommon},
      {"max-workspace-bytes", "BYTES", [](O o) -> V { return &o->engine.max_workspace_bytes; }, 0, kMaxBytes,
       "Workspaces of the CPU engine. 0: half of the memory of the machine or container"},
      {"max-upload-bytes", "BYTES", [](O o) -> V { return &o->max_upload_bytes; }, 1, kMaxBytes,
       "One input, as sent or read, and as decompressed"},
      {"max-upload-total-bytes", "BYTES", [](O o) -> V { return &o->max_upload_total_bytes; }, 1, kMaxBytes,
       "All uploads in flight. With --identities, one identity may hold no more than it leaves free"},
      {"max-input-bytes", "BYTES", [](O o) -> V { return &o->max_input_bytes; }, 0, kMaxBytes,
       "Files that running jobs read and decompress at once, and as much again for the data decoded from "
       "them. 0: an eighth of the memory each, at least 1 GiB"},
      {"max-product-bytes", "BYTES", [](O o) -> V { return &o->max_product_bytes; }, 1, kMaxBytes,
       "Frames for which products are computed, the products, and analyses. A product or analysis that needs "
       "more fails"},
      {"max-result-bytes", "BYTES", [](O o) -> V { return &o->max_result_bytes; }, 1, kMaxBytes,
       "All results that wait to be sent"},
  };
}

std::vector<Option> DetachedOptions() {
  return {
      {"jobs-dir", "DIR", [](O o) -> V { return &o->jobs_dir; }, 0, 0,
       "Folder for detached jobs, used by this server alone; created if it does not exist. Without it "
       "detached jobs are refused",
       kCommon},
      {"jobs-disk-bytes", "BYTES", [](O o) -> V { return &o->jobs_disk_bytes; }, 1, kMaxBytes,
       "Inputs and results of detached jobs on disk. A job that would exceed it is refused with a retry "
       "delay",
       kCommon},
      {"jobs-keep-seconds", "SECONDS", [](O o) -> V { return &o->jobs_keep_seconds; }, 1, kMaxKeepSeconds,
       "Time from the end of a detached job to its removal with its results, unless the job asks for "
       "another",
       kCommon},
      {"jobs-max-keep-seconds", "SECONDS", [](O o) -> V { return &o->jobs_max_keep_seconds; }, 1,
       kMaxKeepSeconds, "Longest time that a detached job may ask for instead of --jobs-keep-seconds"},
      {"jobs-max-kept", "N", [](O o) -> V { return &o->jobs_max_kept; }, 1, kMaxKept,
       "Detached jobs on disk, including those that have ended; more are refused with a retry delay"},
  };
}

std::vector<Option> SecurityOptions() {
  return {
      {"tls-certificate", "FILE", [](O o) -> V { return &o->tls_certificate; }, 0, 0,
       "PEM file with the server's certificate and its chain; read again when it changes", kCommon},
      {"tls-private-key", "FILE", [](O o) -> V { return &o->tls_private_key; }, 0, 0,
       "PEM file with the key of --tls-certificate; read again when it changes", kCommon},
      {"tls-client-ca", "FILE", [](O o) -> V { return &o->tls_client_ca; }, 0, 0,
       "PEM file with authorities; clients must show a certificate that one of them signed. Read again "
       "when it changes",
       kCommon},
      {"identities", "FILE", [](O o) -> V { return &o->identities; }, 0, 0,
       "File of the identities, what each may do and its shares; SIGHUP reads it again. Without it "
       "everyone who can connect may use the server",
       kCommon, kReloadable},
      {"insecure-any-address", "", [](O o) -> V { return &o->insecure_any_address; }, 0, 0,
       "Allow addresses that are not loopback for --listen without TLS and authentication, and for --http"},
  };
}

std::vector<Option> OperationOptions() {
  return {
      {"grace-seconds", "SECONDS", [](O o) -> V { return &o->grace_seconds; }, 0, kMaxSeconds,
       "Time that accepted jobs have to finish after SIGTERM or SIGINT", kCommon},
      {"log-level", "{debug,info,warning,error}", [](O o) -> V { return &o->log_level; }, 0, 0,
       "Least level of the lines to log; SIGHUP reads it again", kCommon, kReloadable},
      {"log-format", "{auto,json,text}", [](O o) -> V { return &o->log_format; }, 0, 0,
       "json: one object per line. text: the same as readable text. auto: text on a terminal, otherwise "
       "json"},
  };
}

}  // namespace

std::string Option::flag() const { return "--" + name; }

std::string Option::environment() const {
  return "SPEXD_" + absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}}));
}

std::string Option::limits() const {
  ServerOptions options;
  const OptionValue at = value(&options);
  if (!NumberOf(at).has_value()) return "";
  return absl::StrCat(LimitText(at, least), " to ", LimitText(at, most));
}

bool Option::is_switch() const {
  ServerOptions options;
  return std::holds_alternative<bool*>(value(&options));
}

bool Option::is_list() const {
  ServerOptions options;
  return std::holds_alternative<std::vector<std::string>*>(value(&options));
}

absl::Status CheckLimits(const Option& option, const std::string& name, const ServerOptions& options) {
  const std::optional<double> number = NumberOf(ValueOf(option, options));
  if (!number.has_value() || (*number >= option.least && *number <= option.most)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is %.15g, must be %s", name, *number, option.limits()));
}

absl::Status SetOption(const Option& option, const std::string& name, const std::vector<std::string>& texts,
                       ServerOptions* options) {
  if (!option.is_list() && texts.size() != 1) {
    return absl::InvalidArgumentError(absl::StrFormat("%s is given %d times", name, texts.size()));
  }
  for (const std::string& text : texts) SPEXD_RETURN_IF_ERROR(CheckText(name, text));
  const std::string text = texts.empty() ? "" : texts[0];
  const absl::Status status = std::visit(
      Overloaded{[&](std::string* value) {
                   *value = text;
                   return absl::OkStatus();
                 },
                 [&](std::vector<std::string>* values) {
                   *values = texts;
                   return absl::OkStatus();
                 },
                 [&](std::vector<int>* devices) -> absl::Status {
                   devices->clear();
                   if (text == "all") return absl::OkStatus();
                   absl::StatusOr<std::vector<int>> list = ParseDeviceList(text);
                   if (!list.ok())
                     return absl::InvalidArgumentError(absl::StrCat(name, ": ", list.status().message()));
                   *devices = *std::move(list);
                   return absl::OkStatus();
                 },
                 [&](int* value) {
                   return SetNumber(
                       name, text, "a whole number, " + option.limits(),
                       [](const std::string& from, int* to) { return absl::SimpleAtoi(from, to); }, value);
                 },
                 [&](int64_t* bytes) { return SetBytes(name, text, option.limits(), bytes); },
                 [&](double* value) {
                   return SetNumber(
                       name, text, "a number, " + option.limits(),
                       [](const std::string& from, double* to) { return absl::SimpleAtod(from, to); }, value);
                 },
                 [&](bool* on) { return SetSwitch(name, text, on); },
                 [&](LogLevel* level) -> absl::Status {
                   const absl::StatusOr<LogLevel> parsed = ParseLogLevel(text);
                   if (!parsed.ok()) return Wrong(name, text, "debug, info, warning or error");
                   *level = *parsed;
                   return absl::OkStatus();
                 },
                 [&](LogFormat* format) -> absl::Status {
                   const absl::StatusOr<LogFormat> parsed = ParseLogFormat(text);
                   if (!parsed.ok()) return Wrong(name, text, "auto, text or json");
                   *format = *parsed;
                   return absl::OkStatus();
                 }},
      option.value(options));
  return status.ok() ? CheckLimits(option, name, *options) : status;
}

std::vector<std::string> OptionTexts(const Option& option, const ServerOptions& options) {
  using Texts = std::vector<std::string>;
  return std::visit(Overloaded{[](std::string* value) { return Texts{*value}; },
                               [](std::vector<std::string>* values) { return *values; },
                               [](std::vector<int>* devices) {
                                 return Texts{devices->empty() ? "all" : absl::StrJoin(*devices, ",")};
                               },
                               [](int* value) { return Texts{absl::StrCat(*value)}; },
                               [](int64_t* bytes) { return Texts{BytesText(*bytes)}; },
                               [](double* value) { return Texts{RealText(*value)}; },
                               [](bool* on) { return Texts{*on ? "true" : "false"}; },
                               [](LogLevel* level) { return Texts{LogLevelName(*level)}; },
                               [](LogFormat* format) { return Texts{LogFormatName(*format)}; }},
                    ValueOf(option, options));
}

std::vector<Option> OptionTable() {
  std::vector<Option> all;
  const auto add = [&all](const char* group, const std::vector<Option>& options) {
    for (const Option& option : options) all.emplace_back(option).group = group;
  };
  add("Listening and connections", ListeningOptions());
  add("Engine and devices", EngineOptions());
  add("Inputs and access", InputOptions());
  add("Jobs and queues", JobOptions());
  add("Memory", MemoryOptions());
  add("Detached jobs", DetachedOptions());
  add("Security", SecurityOptions());
  add("Operation and logging", OperationOptions());
  return all;
}

}  // namespace spexd
