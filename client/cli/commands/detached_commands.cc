// spex submit, watch, jobs and cancel: detached jobs.
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/every_server.h"
#include "client/cli/flags/analysis_flags.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/flags/server_flags.h"
#include "client/cli/products/product_results.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/frame_output.h"
#include "client/cli/terminal/interrupt.h"
#include "client/cli/terminal/job_table.h"
#include "client/cli/terminal/message_json.h"
#include "client/cli/terminal/real_range.h"
#include "client/cli/terminal/terminal_text.h"
#include "client/connection/grpc_connection.h"
#include "client/detached_client.h"
#include "client/job_watch.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"

namespace spexd::cli {
namespace {

constexpr char kServerHelp[] =
    "Servers, separated by commas: host:port, unix:/path, or dns:///name:port for all addresses of a name, "
    "each of which is a server";
constexpr double kMaxSeconds = 4294967295;

struct DetachedCommandOptions {
  client::ServerAddress server{.address = "127.0.0.1:50051"};
  // submit
  JobFlags job;
  bool model = false;
  client::JobProducts asked;
  std::string request_id;
  int64_t keep = 0, deadline = 0;
  // watch
  std::string job_id;
  FrameOutput output;
  ProductPaths products;
  std::optional<double> watch_timeout;
  // jobs and cancel
  std::vector<std::string> states;
  double timeout = 10;
  bool json = false, quiet = false;
};

std::chrono::milliseconds Milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds));
}

client::Connection::Deadline After(double seconds) { return client::Clock::now() + Milliseconds(seconds); }

// Prints an error and returns the exit code of a command that was not interrupted here.
int FailDetached(const absl::Status& status) {
  const int code = Fail(status);
  return code == kInterrupted ? kUsage : code;  // the job was cancelled, so a retry does not help
}

// Returns the exit code for the status of a job or product. Where other commands exit with kServer, it is
// another code, because a retry does not help.
int CodeOfTheJobs(const absl::Status& status, int code) {
  if (code != kServer) return code;
  return absl::IsUnavailable(status) ? kInternal : kUsage;
}

int FailWatch(const absl::Status& status) {
  const int code = FailDetached(status);
  return client::IsTheJobsOwn(status) ? CodeOfTheJobs(status, code) : code;
}

absl::StatusOr<client::Submitted> Submit(const DetachedCommandOptions& options, JobObserver* progress,
                                         std::stop_token stop) {
  SPEXD_ASSIGN_OR_RETURN(client::Job job, MakeJob(options.job, options.model));
  job.products = options.asked;
  SPEXD_RETURN_IF_ERROR(CheckAskedProducts(job.products));
  SPEXD_ASSIGN_OR_RETURN(const auto directory, client::OpenDirectory(options.server));
  const client::SubmitOptions submit = {options.request_id, std::chrono::seconds(options.keep),
                                        options.job.upload, std::chrono::seconds(options.deadline)};
  return client::DetachedClient(directory->source()).Submit(job, submit, progress, std::move(stop));
}

int RunSubmit(const DetachedCommandOptions& options) {
  std::stop_source stop;
  const InterruptGuard interrupt(stop);
  const std::vector<std::string> idle = IdleFlags(options.job);
  if (!idle.empty() && !options.quiet) {
    std::fprintf(stderr, "spex: without effect here: %s\n", absl::StrJoin(idle, ", ").c_str());
  }
  Progress progress(options.quiet ? ProgressStyle::kNone : ProgressStyle::kLines, options.job.input);
  const auto submitted = Submit(options, &progress, stop.get_token());
  if (!submitted.ok() && stop.stop_requested()) {
    std::fprintf(stderr, "spex: interrupted: %s\n", ForTerminal(submitted.status().message()).c_str());
    return kInterrupted;
  }
  if (!submitted.ok()) return FailDetached(submitted.status());
  if (submitted->existed && !options.quiet) {
    std::fprintf(stderr, "spex: this request id has a job already, on %s\n",
                 ForTerminal(submitted->server).c_str());
  }
  std::printf("%s\n", ForTerminal(submitted->job_id).c_str());
  return kOk;
}

// Writes the products that the flags name. Sets `safe` to whether every product that was made was also
// written; if not, the server must keep the results. A product that could not be made needs no other watch.
int WriteWatched(const DetachedCommandOptions& options, const client::WatchedJob& watched, bool* safe) {
  if (!options.products.any()) return kOk;
  const auto written = CatchExceptions([&]() -> absl::StatusOr<std::vector<ProductResult>> {
    return WriteProducts(watched.outcome.frame, options.products, *watched.outcome.products, AvailableCpus());
  });
  const absl::Status error = written.ok() ? PrintProducts(*written, options.output.quiet) : written.status();
  *safe = written.ok() && AreSafe(*written);
  if (error.ok()) return kOk;
  const int code = Fail(error);
  return *safe ? CodeOfTheJobs(error, code) : CodeOfWriteError(error);
}

// Writes the results and lets the server remove them.
int TakeResults(const DetachedCommandOptions& options, client::DetachedClient* client,
                const client::WatchedJob& watched, std::chrono::steady_clock::time_point start,
                std::stop_token stop) {
  if (!options.output.model.empty() && watched.outcome.model.size() == 0) {
    return Fail(absl::InvalidArgumentError(absl::StrCat(
        "--model: job ", options.job_id, " was submitted without --model; nothing was written")));
  }
  if (absl::Status status = CheckWereAsked(options.products, watched.outcome.products); !status.ok()) {
    return Fail(absl::InvalidArgumentError(
        absl::StrCat("job ", options.job_id, ": ", status.message(), "; nothing was written")));
  }
  const int code = Deliver(options.output, watched.outcome, AvailableCpus(), start);
  if (code != kOk && code != kDifferent) return code;
  bool safe = true;
  const int of_products = WriteWatched(options, watched, &safe);
  if (!safe) return of_products;
  if (absl::Status status = client->Acknowledge(watched, std::move(stop)); !status.ok()) {
    std::fprintf(stderr, "spex: the server keeps the results for its time to live: %s\n",
                 ForTerminal(status.message()).c_str());
  }
  return of_products != kOk ? of_products : code;
}

int RunWatch(const DetachedCommandOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  std::stop_source stop;
  const InterruptGuard interrupt(stop);
  absl::Status outputs = CheckOutputs(options.output, {});
  if (outputs.ok())
    outputs = CheckProductFiles(options.products, {options.output.frame, options.output.model});
  if (!outputs.ok()) {
    Fail(outputs);
    return kUsage;
  }
  const auto directory = client::OpenDirectory(options.server);
  if (!directory.ok()) return Fail(directory.status());
  client::DetachedClient client((*directory)->source());
  Progress progress(StyleOf(options.output), options.job_id);
  client::Connection::Deadline deadline;
  if (options.watch_timeout.has_value()) deadline = After(*options.watch_timeout);
  const auto watched = client.Watch(options.job_id, &progress, deadline, stop.get_token());
  progress.End();
  if (stop.stop_requested()) {
    std::fprintf(stderr, "spex: interrupted; nothing was written, the job goes on\n");
    return kInterrupted;
  }
  if (!watched.ok()) return FailWatch(watched.status());
  return TakeResults(options, &client, *watched, start, stop.get_token());
}

absl::StatusOr<std::string> ListJobs(const DetachedCommandOptions& options, client::Connection* server) {
  v1::ListJobsRequest request;
  for (const std::string& state : options.states) request.add_states(*StateOfName(state));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<v1::JobRecord> jobs,
                         client::ListAllJobs(server, request, After(options.timeout), {}));
  if (!options.json) return FormatJobs(server->address(), jobs, client::Clock::now());
  v1::ListJobsResponse all;
  for (const v1::JobRecord& job : jobs) *all.add_jobs() = job;
  return ToJson(server->address(), all);
}

int RunJobs(const DetachedCommandOptions& options) {
  return AskEveryServer(options.server, options.json,
                        [&options](client::Connection* server) { return ListJobs(options, server); });
}

absl::StatusOr<v1::JobRecord> Cancel(const DetachedCommandOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(const auto directory, client::OpenDirectory(options.server));
  client::DetachedClient client(directory->source());
  SPEXD_ASSIGN_OR_RETURN(const client::FoundJob found,
                         client.Find(options.job_id, Milliseconds(options.timeout), std::nullopt, {}));
  return found.server->CancelJob(options.job_id, After(options.timeout));
}

int RunCancel(const DetachedCommandOptions& options) {
  const absl::StatusOr<v1::JobRecord> record = Cancel(options);
  if (!record.ok()) return Fail(record.status());
  std::printf("%s %s\n", options.job_id.c_str(), StateName(record->state()).c_str());
  return kOk;
}

void AddTimeout(CLI::App* command, DetachedCommandOptions* options) {
  command->add_option("--timeout", options->timeout, "Time to wait for the answer of each server")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(RealRange(0.001, 1e7));
}

}  // namespace

void AddSubmit(CLI::App* app, Action* action) {
  auto options = std::make_shared<DetachedCommandOptions>();
  DetachedCommandOptions& o = *options;
  CLI::App* command = app->add_subcommand(
      "submit", "Submit a detached job, which the server runs without a client; prints the job's id");
  AddInputFlags(command, &o.job);
  AddJobFlags(command, "Server", &o.job);
  command->add_flag("-m,--model", o.model, "Also compute the model image, for spex watch --model")
      ->group("Extraction");
  AddAskedProducts(command, &o.asked);
  AddServerFlags(command, kServerHelp, "Server", &o.server);
  command
      ->add_option("--request-id", o.request_id,
                   "Name of the job, 1 to 128 characters. On one server the same name gives the same job "
                   "again; of several servers it determines which is tried first. Default: random")
      ->type_name("NAME")
      ->group("Server");
  command
      ->add_option("--keep", o.keep, "Time for which the server keeps the results. 0: the server's default")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(0.0, kMaxSeconds))
      ->group("Server");
  command
      ->add_option("--deadline", o.deadline,
                   "Time from the submission after which a job that waits or runs is ended. 0: no deadline")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(0.0, kMaxSeconds))
      ->group("Server");
  command->add_flag("-q,--quiet", o.quiet, "Print only the id and errors")->group("Messages");
  command->callback([options, action] { *action = [options] { return RunSubmit(*options); }; });
}

void AddWatch(CLI::App* app, Action* action) {
  auto options = std::make_shared<DetachedCommandOptions>();
  DetachedCommandOptions& o = *options;
  o.output.wants_scores = false;  // the job may have been submitted without scores
  CLI::App* command = app->add_subcommand(
      "watch", "Wait for a detached job, write its frame, and let the server remove the results");
  command->add_option("job", o.job_id, "Id of the job")->type_name("ID")->required();
  AddOutputFlags(command, &o.output);
  AddProductFiles(command, &o.products);
  AddServerFlags(command, kServerHelp, "Server", &o.server);
  command->add_option("--timeout", o.watch_timeout, "Time after which spex gives up; the job continues")
      ->type_name("SECONDS")
      ->check(RealRange(0.001, 1e7))
      ->group("Server");
  command->callback([options, action] { *action = [options] { return RunWatch(*options); }; });
}

void AddJobs(CLI::App* app, Action* action) {
  auto options = std::make_shared<DetachedCommandOptions>();
  CLI::App* command = app->add_subcommand("jobs", "List the detached jobs of servers, newest first");
  AddServerFlags(command, kServerHelp, "Server", &options->server);
  command
      ->add_option("--state", options->states,
                   "List only jobs in these states; may be repeated, or separated by commas")
      ->delimiter(',')
      ->check(CLI::IsMember({"queued", "running", "done", "failed", "cancelled"}));
  command->add_flag("--json", options->json, "Print JSON: an array with an object for each server");
  AddTimeout(command, options.get());
  command->callback([options, action] { *action = [options] { return RunJobs(*options); }; });
}

void AddCancel(CLI::App* app, Action* action) {
  auto options = std::make_shared<DetachedCommandOptions>();
  CLI::App* command = app->add_subcommand("cancel", "Cancel a detached job; prints its id and state");
  command->add_option("job", options->job_id, "Id of the job")->type_name("ID")->required();
  AddServerFlags(command, kServerHelp, "Server", &options->server);
  AddTimeout(command, options.get());
  command->callback([options, action] { *action = [options] { return RunCancel(*options); }; });
}

}  // namespace spexd::cli
