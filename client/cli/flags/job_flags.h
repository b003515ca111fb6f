// The flags that describe a job, for all commands that run or submit one.
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
  JobSpec spec;                 // without its field `model`
  std::optional<double> nsubbundles, nwavestep, pixpad_frac, wavepad_frac, wavepad, ranks_per_bundle;
  bool mpi = false, async_io = false;
  bool upload = false;
  std::optional<double> timeout;
};

// Sets an option from a text, as its flag does. The text of a switch is "true" or "false". InvalidArgument
// names the option, the text and what it must be.
absl::Status SetOption(const JobOption& option, const std::string& text, JobSpec* spec);

// Adds --input and --psf for one frame.
void AddInputFlags(CLI::App* command, JobFlags* flags);

// Adds --fibermap, --trace-reference and the group Extraction.
void AddExtractionFlags(CLI::App* command, JobFlags* flags);

// Adds only the flags on which the measurement of trace shifts depends: --trace-reference, --bundlesize and
// the flags of trace shifts.
void AddTraceFlags(CLI::App* command, JobFlags* flags);

// Adds --upload and --priority, which have an effect only on servers, in the group `where`.
void AddServerJobFlags(CLI::App* command, const std::string& where, JobFlags* flags);

// Adds the flags of AddExtractionFlags, the group Compatibility, and in the group `where` the flags of
// AddServerJobFlags and --timeout.
void AddJobFlags(CLI::App* command, const std::string& where, JobFlags* flags);

// Returns the given flags that have no effect here: those of the patches and ranks of the pipeline.
std::vector<std::string> IdleFlags(const JobFlags& flags);

// Returns InvalidArgument for --mpi in one of several MPI ranks.
absl::Status CheckRanks(const JobFlags& flags);

// Makes the job; its deadline counts from now. Errors: as CheckRanks and CheckJobOptions.
absl::StatusOr<client::Job> MakeJob(const JobFlags& flags, bool model);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_JOB_FLAGS_H_
