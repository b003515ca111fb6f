// The flags that describe a job, of all commands that bring one.
#ifndef SPEXD_CLIENT_CLI_FLAGS_JOB_FLAGS_H_
#define SPEXD_CLIENT_CLI_FLAGS_JOB_FLAGS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/job.h"
#include "core/frame/job_options.h"

namespace spexd::cli {

struct JobFlags {
  std::string input, psf, fibermap;
  std::string trace_reference;  // "": none
  JobSpec spec;                 // but for its model
  std::optional<double> nsubbundles, nwavestep, pixpad_frac, wavepad_frac, wavepad, ranks_per_bundle;
  bool mpi = false, async_io = false;
  bool upload = false;
  std::optional<double> timeout;
};

// Sets an option from a text, as its flag does; one that is on or off is "true" or "false". InvalidArgument
// names the option, the text and what it must be.
absl::Status SetOption(const JobOption& option, const std::string& text, JobSpec* spec);

// Adds --input and --psf for one frame.
void AddInputFlags(CLI::App* command, JobFlags* flags);

// Adds --fibermap, --trace-reference and the group Extraction.
void AddExtractionFlags(CLI::App* command, JobFlags* flags);

// Adds of those what the measurement of trace shifts depends on: --trace-reference, --bundlesize and those of
// trace shifts themselves.
void AddTraceFlags(CLI::App* command, JobFlags* flags);

// Adds --upload and --priority, which only servers heed, in the group `where`.
void AddServerJobFlags(CLI::App* command, const std::string& where, JobFlags* flags);

// Adds those of an extraction, the group Compatibility, those that only servers heed, and --timeout in the
// group `where`.
void AddJobFlags(CLI::App* command, const std::string& where, JobFlags* flags);

// Those given that only steered how the pipeline's extractors work: their patches and ranks. `on_server`: the
// job is extracted there, where --verbose has no effect either.
std::vector<std::string> IdleFlags(const JobFlags& flags, bool on_server);

// InvalidArgument for --mpi in one of several ranks.
absl::Status CheckRanks(const JobFlags& flags);

// The job, with its deadline counted from now. InvalidArgument as CheckRanks and CheckJobOptions.
absl::StatusOr<client::Job> MakeJob(const JobFlags& flags, bool model);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_JOB_FLAGS_H_
