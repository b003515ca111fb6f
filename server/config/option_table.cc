#include "server/config/option_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
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

// The value as a number that has limits; none for other kinds.
std::optional<double> NumberOf(const OptionValue& value) {
  return std::visit(Overloaded{[](int* number) -> std::optional<double> { return *number; },
                               [](int64_t* bytes) -> std::optional<double> { return *bytes; },
                               [](double* number) -> std::optional<double> { return *number; },
                               [](auto*) -> std::optional<double> { return std::nullopt; }},
                    value);
}

OptionValue ValueOf(const Option& option, const ServerOptions& options) {
  return option.value(const_cast<ServerOptions*>(&options));  // only read through it
}

absl::Status Wrong(const std::string& name, const std::string& text, const std::string& expected) {
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is \"%s\", must be %s", name, ForMessage(text), expected));
}

// Values go to messages, and to files of a line each.
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

// The digits that it was given with, or as many as tell it from all others.
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

// Where the server is reached, by whom, and what they may name.
std::vector<Option> AccessOptions() {
  return {
      {"listen", [](O o) -> V { return &o->listen; }, 0, 0,
       "gRPC address: host:port, port 0 for any free one, or unix:path, which a live server keeps"},
      {"http", [](O o) -> V { return &o->http; }, 0, 0,
       "address of metrics, probes and the status page; none: without"},
      {"port-file", [](O o) -> V { return &o->port_file; }, 0, 0,
       "the addresses in use are written here as JSON (grpc, grpc_port, http_port, pid), complete or not at "
       "all"},
      {"insecure-any-address", [](O o) -> V { return &o->insecure_any_address; }, 0, 0,
       "allow addresses that are not loopback without TLS and authentication, and the HTTP port there"},
      {"tls-certificate", [](O o) -> V { return &o->tls_certificate; }, 0, 0,
       "PEM file with the server's certificate and its chain; read again when it changes"},
      {"tls-private-key", [](O o) -> V { return &o->tls_private_key; }, 0, 0,
       "PEM file with the certificate's key; read again when it changes"},
      {"tls-client-ca", [](O o) -> V { return &o->tls_client_ca; }, 0, 0,
       "PEM file; clients must show a certificate that one of its authorities signed; read again when it "
       "changes"},
      {"identities", [](O o) -> V { return &o->identities; }, 0, 0,
       "file that says who may do what, and how much; without it everyone who can connect may use the server",
       true},
      {"allow-root", [](O o) -> V { return &o->allow_roots; }, 0, 0,
       "folder that jobs may name files under; repeatable. Links and .. are followed before the check"},
  };
}

// How it works, and its limits.
std::vector<Option> WorkOptions() {
  return {
      {"device", [](O o) -> V { return &o->engine.device; }, 0, 0,
       "cpu; cuda: no start without it; auto: CUDA, or the CPU if CUDA is not available"},
      {"devices", [](O o) -> V { return &o->engine.devices; }, 0, 0,
       "CUDA devices as CUDA counts them, such as 0,2"},
      {"device-memory-bytes", [](O o) -> V { return &o->engine.device_memory_bytes; }, 0, kMaxBytes,
       "memory of each CUDA device, taken at the start; 0: nine tenths of what is free"},
      {"jobs-per-device", [](O o) -> V { return &o->engine.jobs_per_device; }, 1, kMaxJobsPerDevice,
       "jobs that compute on a CUDA device at once"},
      {"threads", [](O o) -> V { return &o->engine.threads; }, 0, kMaxEngineThreads,
       "threads of the CPU engine, of reading files and of products, each; 0: all processors"},
      {"max-running-jobs", [](O o) -> V { return &o->max_running_jobs; }, 0, kMaxRunningJobs,
       "jobs that have a slot at once: some read while others compute; 0: 2 on the CPU, with CUDA twice as "
       "many as compute at once"},
      {"max-queued-jobs", [](O o) -> V { return &o->max_queued_jobs; }, 0, 2000,
       "jobs that wait; more are refused with a delay"},
      {"max-queued-bytes", [](O o) -> V { return &o->max_queued_bytes; }, 0, kMaxBytes,
       "inputs of jobs that wait; 0: as --max-upload-total-bytes"},
      {"max-queued-seconds", [](O o) -> V { return &o->max_queued_seconds; }, 0, kMaxQueuedSeconds,
       "device-seconds that jobs that wait are estimated to take; 0: --max-job-seconds for each device"},
      {"max-upload-bytes", [](O o) -> V { return &o->max_upload_bytes; }, 1, kMaxBytes,
       "one input, sent, read and inflated"},
      {"max-upload-total-bytes", [](O o) -> V { return &o->max_upload_total_bytes; }, 1, kMaxBytes,
       "all uploads in flight; with --identities, one identity may hold no more of it than it leaves free"},
      {"max-result-bytes", [](O o) -> V { return &o->max_result_bytes; }, 1, kMaxBytes,
       "all results that wait to be sent"},
      {"max-input-bytes", [](O o) -> V { return &o->max_input_bytes; }, 0, kMaxBytes,
       "all files that running jobs read and inflate at once, and as many again of what they decode to; "
       "0: an eighth of the memory each, at least 1 GiB"},
      {"max-product-bytes", [](O o) -> V { return &o->max_product_bytes; }, 1, kMaxBytes,
       "all frames that products are made of, and what is made of them; a product that needs more fails"},
      {"product-device-bytes", [](O o) -> V { return &o->product_device_bytes; }, 0, kMaxBytes,
       "memory of each CUDA device, beside --device-memory-bytes, for products: a quarter for spectra that "
       "wait there, the rest for making them. Where it does not suffice, processors make them; 0: always"},
      {"psf-cache-bytes", [](O o) -> V { return &o->psf_cache_bytes; }, 0, kMaxBytes,
       "warm PSFs and grids, trace references, fiberflats and templates; 0: 1 GiB and, with CUDA, the memory "
       "of its devices, where the engine keeps the least recently used out"},
      {"preload-psf", [](O o) -> V { return &o->preload_psfs; }, 0, 0,
       "PSF that is loaded before the server is ready: PATH, or PATH,first,last,step or "
       "PATH,first,last,step,bundle size to prepare it on that grid too; repeatable, below any folder"},
      {"pin-preloaded", [](O o) -> V { return &o->pin_preloaded; }, 0, 0,
       "keep preloaded PSFs, however long they go unused"},
      {"max-workspace-bytes", [](O o) -> V { return &o->engine.max_workspace_bytes; }, 0, kMaxBytes,
       "the CPU engine's workspaces; 0: half of the memory (the machine's, or a container's limit)"},
      {"grace-seconds", [](O o) -> V { return &o->grace_seconds; }, 0, kMaxSeconds,
       "time that accepted jobs get after SIGTERM"},
      {"stall-seconds", [](O o) -> V { return &o->stall_seconds; }, 1, kMaxSeconds,
       "a client that neither sends nor receives for this time is disconnected"},
      {"header-seconds", [](O o) -> V { return &o->header_seconds; }, 0.1, kMaxSeconds,
       "a stream that sends no header within this time is ended"},
      {"input-seconds", [](O o) -> V { return &o->input_seconds; }, 0.1, kMaxSeconds,
       "a stream whose input is not complete this long after its header is ended"},
      {"max-job-seconds", [](O o) -> V { return &o->max_job_seconds; }, 0.1, 10 * kMaxSeconds,
       "a job that takes longer, from the start of its call, is ended; of a detached job, each run"},
      {"keepalive-seconds", [](O o) -> V { return &o->keepalive_seconds; }, 1, kMaxSeconds,
       "a connection on which nothing arrived for this time is pinged"},
      {"keepalive-timeout-seconds", [](O o) -> V { return &o->keepalive_timeout_seconds; }, 1, kMaxSeconds,
       "a connection that does not answer a ping within this time is closed, and its calls are cancelled"},
      {"max-streams", [](O o) -> V { return &o->max_streams; }, 1, kMaxStreams,
       "calls of Extract, LoadPsf and Jobs that are open; more are refused with a delay"},
      {"max-streams-per-peer", [](O o) -> V { return &o->max_streams_per_peer; }, 1, kMaxStreams,
       "of them from one address"},
      {"max-streams-per-connection", [](O o) -> V { return &o->max_streams_per_connection; }, 1, kMaxStreams,
       "of them on one connection"},
      {"max-connections", [](O o) -> V { return &o->max_connections; }, 0, kMaxStreams,
       "connections to the gRPC port; 0: 16384. Never more than its part of the file descriptors; the log's "
       "line started has what applies"},
      {"max-connections-per-peer", [](O o) -> V { return &o->max_connections_per_peer; }, 0, kMaxStreams,
       "of them from one address or, on a Unix socket, of one user; 0: half of all"},
      {"log-level", [](O o) -> V { return &o->log_level; }, 0, 0, "debug, info, warning or error", true},
      {"log-format", [](O o) -> V { return &o->log_format; }, 0, 0,
       "json: an object per line; text: the same as readable text; auto: text on a terminal, else json"},
  };
}

// Detached jobs.
std::vector<Option> JobsOptions() {
  return {
      {"jobs-dir", [](O o) -> V { return &o->jobs_dir; }, 0, 0,
       "folder of detached jobs, of this server alone, created if it does not exist; without it none are "
       "accepted"},
      {"jobs-disk-bytes", [](O o) -> V { return &o->jobs_disk_bytes; }, 1, kMaxBytes,
       "inputs and results of detached jobs on disk; a job that would exceed it is refused with a delay"},
      {"jobs-max-kept", [](O o) -> V { return &o->jobs_max_kept; }, 1, kMaxKept,
       "detached jobs that are kept, those that have ended too; more are refused with a delay"},
      {"jobs-keep-seconds", [](O o) -> V { return &o->jobs_keep_seconds; }, 1, kMaxKeepSeconds,
       "a detached job and its results are removed this long after its end, unless it asks otherwise"},
      {"jobs-max-keep-seconds", [](O o) -> V { return &o->jobs_max_keep_seconds; }, 1, kMaxKeepSeconds,
       "the longest time that a job may ask for"},
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
  std::vector<Option> all = AccessOptions();
  std::vector<Option> work = WorkOptions();
  std::move(work.begin(), work.end(), std::back_inserter(all));
  std::vector<Option> jobs = JobsOptions();
  std::move(jobs.begin(), jobs.end(), std::back_inserter(all));
  return all;
}

}  // namespace spexd
