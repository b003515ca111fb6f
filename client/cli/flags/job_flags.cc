#include "client/cli/flags/job_flags.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/model/wavelength_grid.h"

namespace spexd::cli {
namespace {

// Flags of the pipeline's extractors that ask for what is not done here: an error says why, in the words of
// spexd.desispec (python/spexd/desispec/_arguments.py).
void RefuseFlag(CLI::App* command, const std::string& flag, const std::string& why) {
  command
      ->add_flag_function(
          flag, [flag, why](int64_t) { throw CLI::ValidationError(flag, why); }, "Refused: " + why)
      ->group("Compatibility");
}

void AddCompatibilityFlags(CLI::App* command, JobFlags* flags) {
  JobFlags& f = *flags;
  const char* group = "Compatibility";
  const std::string patches = "Accepted, without effect: there are no patches here";
  command->add_option("--nsubbundles", f.nsubbundles, patches)->group(group);
  command->add_option("--nwavestep", f.nwavestep, patches)->group(group);
  command->add_option("--pixpad-frac", f.pixpad_frac, patches)->group(group);
  command->add_option("--wavepad-frac", f.wavepad_frac, patches)->group(group);
  command->add_option("--wavepad", f.wavepad, patches)->group(group);
  const std::string ranks = "Accepted, without effect: one process uses all processors";
  command->add_option("--ranks-per-bundle", f.ranks_per_bundle, ranks)->group(group);
  command->add_flag("--mpi", f.mpi, ranks + "; refused in one of several ranks")->group(group);
  command->add_flag("--async-io", f.async_io, "Accepted, without effect: files are read side by side anyway")
      ->group(group);
  RefuseFlag(command, "--use-specter",
             "it asks for the algorithm of specter, which spexd does not have; leave the flag out");
  RefuseFlag(command, "--decorrelate-fibers",
             "it asks to decorrelate fibres, which spexd does not do; leave the flag out");
}

}  // namespace

void AddExtractionFlags(CLI::App* command, JobFlags* flags) {
  JobFlags& f = *flags;
  const char* group = "Extraction";
  command->add_option("-f,--fibermap", f.fibermap, "File with the FIBERMAP, instead of the input's own")
      ->group("Files");
  command
      ->add_option("-w,--wavelength", f.wavelength,
                   "wmin,wmax,dw in Angstrom; default: the PSF's range at 0.8")
      ->group(group);
  command->add_option("-s,--specmin", f.specmin, "First fibre")->capture_default_str()->group(group);
  command->add_option("-n,--nspec", f.nspec, "Number of fibres; default: to the last")->group(group);
  command->add_option("-r,--regularize", f.regularize, "Weight of a flux = 0 prior on every bin")
      ->capture_default_str()
      ->group(group);
  command->add_option("--bundlesize", f.bundlesize, "Fibres per bundle")->capture_default_str()->group(group);
  command->add_option("--psferr", f.psferr, "Fractional PSF model error for chi2pix; default: the PSF's")
      ->group(group);
  command->add_flag("--barycentric-correction", f.barycentric_correction, "Solve on the barycentric grid")
      ->group(group);
  command->add_flag("--no-scores", f.no_scores, "Write no SCORES")->group(group);
}

void AddInputFlags(CLI::App* command, JobFlags* flags) {
  command->add_option("-i,--input", flags->input, "Preprocessed frame (.fits, .fits.gz)")
      ->required()
      ->group("Files");
  command->add_option("-p,--psf", flags->psf, "PSF file; on a server also sha256:HASH of a loaded one")
      ->required()
      ->group("Files");
}

void AddJobFlags(CLI::App* command, const std::string& where, JobFlags* flags) {
  JobFlags& f = *flags;
  AddExtractionFlags(command, flags);
  AddCompatibilityFlags(command, flags);
  command->add_flag("--upload", f.upload, "Send the files' bytes instead of their paths")->group(where);
  command->add_option("--priority", f.priority, "On a server: -10 to 10, jobs of higher priority go first")
      ->capture_default_str()
      ->check(CLI::Range(-client::kMaxPriority, client::kMaxPriority))
      ->group(where);
  command->add_option("--timeout", f.timeout, "Give up after so many seconds")
      ->check(CLI::Range(0.001, 1e7))
      ->group(where);
}

std::vector<std::string> IdleFlags(const JobFlags& flags, bool on_server) {
  std::vector<std::string> names;
  if (flags.nsubbundles) names.push_back("--nsubbundles");
  if (flags.nwavestep) names.push_back("--nwavestep");
  if (flags.pixpad_frac) names.push_back("--pixpad-frac");
  if (flags.wavepad_frac) names.push_back("--wavepad-frac");
  if (flags.wavepad) names.push_back("--wavepad");
  if (flags.ranks_per_bundle) names.push_back("--ranks-per-bundle");
  if (flags.mpi) names.push_back("--mpi");
  if (flags.async_io) names.push_back("--async-io");
  return names;
}

absl::Status CheckRanks(const JobFlags& flags) {
  if (!flags.mpi) return absl::OkStatus();
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* value = std::getenv(name);
    int ranks = 0;
    if (value == nullptr || !absl::SimpleAtoi(value, &ranks) || ranks <= 1) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "--mpi: %s is %d, and each rank would extract the whole frame; start one process, which "
        "uses all processors",
        name, ranks));
  }
  return absl::OkStatus();
}

absl::StatusOr<client::Job> MakeJob(const JobFlags& flags, bool model) {
  SPEXD_RETURN_IF_ERROR(CheckRanks(flags));
  client::Job job;
  job.image = flags.input;
  job.psf = flags.psf;
  job.fibermap = flags.fibermap;
  job.priority = flags.priority;
  JobSpec& spec = job.spec;
  if (!flags.wavelength.empty()) {
    SPEXD_ASSIGN_OR_RETURN(spec.grid, ParseWavelengthGrid(flags.wavelength));
  }
  spec.first_fibre = flags.specmin;
  spec.fibre_count = flags.nspec;
  spec.bundle_size = flags.bundlesize;
  spec.psferr = flags.psferr;
  spec.regularize = flags.regularize;
  spec.barycentric_correction = flags.barycentric_correction;
  spec.scores = !flags.no_scores;
  spec.model = model;
  if (flags.timeout.has_value()) {
    job.deadline = std::chrono::system_clock::now() +
                   std::chrono::milliseconds(static_cast<int64_t>(1000 * *flags.timeout));
  }
  return job;
}

}  // namespace spexd::cli
