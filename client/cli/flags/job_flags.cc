#include "client/cli/flags/job_flags.h"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/terminal/real_range.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/frame/job_options.h"
#include "core/model/wavelength_grid.h"

namespace spexd::cli {
namespace {

// Adds a flag of the pipeline's extractors that asks for something spexd does not do. The error says why, in
// the words of spexd.desispec (python/spexd/desispec/_arguments.py).
void RefuseFlag(CLI::App* command, const std::string& flag, const std::string& why) {
  command
      ->add_flag_function(
          flag, [flag, why](int64_t) { throw CLI::ValidationError(flag, why); }, "Refused: " + why)
      ->group("Compatibility");
}

void AddCompatibilityFlags(CLI::App* command, JobFlags* flags) {
  JobFlags& f = *flags;
  const char* group = "Compatibility";
  const std::string patches = "Accepted, without effect: spexd does not work in patches";
  command->add_option("--nsubbundles", f.nsubbundles, patches)->group(group);
  command->add_option("--nwavestep", f.nwavestep, patches)->group(group);
  command->add_option("--pixpad-frac", f.pixpad_frac, patches)->group(group);
  command->add_option("--wavepad-frac", f.wavepad_frac, patches)->group(group);
  command->add_option("--wavepad", f.wavepad, patches)->group(group);
  const std::string ranks = "Accepted, without effect: one process uses all processors";
  command->add_option("--ranks-per-bundle", f.ranks_per_bundle, ranks)->group(group);
  command->add_flag("--mpi", f.mpi, ranks + "; refused in one of several ranks")->group(group);
  command->add_flag("--async-io", f.async_io, "Accepted, without effect: files are always read in parallel")
      ->group(group);
  RefuseFlag(command, "--use-specter",
             "it asks for the algorithm of specter, which spexd does not have; leave the flag out");
  RefuseFlag(command, "--decorrelate-fibers",
             "it asks to decorrelate fibres, which spexd does not do; leave the flag out");
}

CLI::Option* AddFlag(CLI::App* command, const std::string& flags, const JobOption& option, bool* value) {
  if (!option.negated) return command->add_flag(flags, *value, option.help);
  return command->add_flag_callback(
      flags, [value] { *value = false; }, option.help);
}

// Refuses a text that is not a number within the option's limits. Whole numbers are decimal: 010 is 10.
template <typename T>
CLI::Validator LimitsOf(const JobOption& option) {
  const auto read = [&option](std::string& text) -> std::string {
    constexpr bool kWhole = std::is_integral_v<T>;
    double number = 0;
    if (!absl::SimpleAtod(text, &number) || (kWhole && number != std::trunc(number))) {
      return absl::StrFormat("%s is %s, must be a %snumber from %.15g to %.15g", option.name,
                             ForMessage(text), kWhole ? "whole " : "", option.min, option.max);
    }
    const absl::Status good = option.Check(number);
    if (kWhole && good.ok()) text = absl::StrCat(static_cast<T>(number));
    return std::string(good.message());
  };
  return CLI::Validator(read, "");
}

template <typename T>
CLI::Option* AddFlag(CLI::App* command, const std::string& flags, const JobOption& option, T* number) {
  return command->add_option(flags, *number, option.help)
      ->capture_default_str()
      ->transform(LimitsOf<T>(option));
}

template <typename T>
CLI::Option* AddFlag(CLI::App* command, const std::string& flags, const JobOption& option,
                     std::optional<T>* number) {
  return command->add_option(flags, *number, option.help)->transform(LimitsOf<T>(option));
}

// Adds an option whose value `parse` makes from a text.
template <typename Parse, typename T>
CLI::Option* AddParsed(CLI::App* command, const std::string& flags, const JobOption& option, Parse parse,
                       T* value) {
  const auto take = [flag = option.flag, parse, value](const std::string& text) {
    auto parsed = parse(text);
    if (!parsed.ok()) throw CLI::ValidationError(flag, std::string(parsed.status().message()));
    *value = *parsed;
  };
  return command->add_option_function<std::string>(flags, take, option.help);
}

CLI::Option* AddFlag(CLI::App* command, const std::string& flags, const JobOption& option,
                     std::optional<WavelengthGrid>* grid) {
  return AddParsed(command, flags, option, ParseWavelengthGrid, grid)->type_name("WMIN,WMAX,DW");
}

CLI::Option* AddFlag(CLI::App* command, const std::string& flags, const JobOption& option, TraceAxes* axes) {
  return AddParsed(command, flags, option, ParseTraceAxes, axes)
      ->type_name("{off,auto,x,xy}")
      ->default_str(kTraceAxesNames[static_cast<int>(*axes)]);
}

CLI::Option* AddFlag(CLI::App* command, const std::string& flags, const JobOption& option,
                     TraceDegrees* degrees) {
  return AddParsed(command, flags, option, ParseTraceDegrees, degrees)->type_name("XF,XW,YF,YW");
}

bool IsForServer(const JobOption& option) { return option.for_server_only; }
bool IsOfTheFrame(const JobOption& option) { return !option.for_server_only; }
bool IsOfTraces(const JobOption& option) {
  return absl::StartsWith(option.name, "trace_") || absl::string_view(option.name) == "bundle_size";
}

// Adds the flags of the chosen options of a job.
void AddOptionFlags(CLI::App* command, const std::string& group, bool (*is_chosen)(const JobOption&),
                    JobSpec* spec) {
  for (const JobOption& option : kJobOptions) {
    if (*option.flag == '\0' || !is_chosen(option)) continue;
    const std::string flags =
        *option.short_flag == '\0' ? option.flag : absl::StrCat(option.short_flag, ",", option.flag);
    std::visit([&](auto member) { return AddFlag(command, flags, option, &(spec->*member)); }, option.value)
        ->group(group);
  }
}

void AddTraceReference(CLI::App* command, const std::string& where, JobFlags* flags) {
  command
      ->add_option("--trace-reference", flags->trace_reference,
                   "Text file of wavelengths in vacuum (Angstrom) and light, against which shifts along the "
                   "traces are measured. Default: they are measured only between fibres" +
                       where)
      ->type_name("FILE")
      ->group("Files");
}

}  // namespace

absl::Status SetOption(const JobOption& option, const std::string& text, JobSpec* spec) {
  if (const auto* const member = std::get_if<bool JobSpec::*>(&option.value)) {
    if (text != "true" && text != "false") {
      return absl::InvalidArgumentError(
          absl::StrCat(option.name, " is ", ForMessage(text), ", must be true or false"));
    }
    spec->** member = text == "true";
    return absl::OkStatus();
  }
  CLI::App app;
  std::visit([&](auto member) { AddFlag(&app, option.flag, option, &(spec->*member)); }, option.value);
  try {
    std::vector<std::string> arguments = {absl::StrCat(option.flag, "=", text)};
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(error.what());
  }
  return absl::OkStatus();
}

void AddTraceFlags(CLI::App* command, JobFlags* flags) {
  AddTraceReference(command, "", flags);
  AddOptionFlags(command, "Traces", IsOfTraces, &flags->spec);
}

void AddExtractionFlags(CLI::App* command, JobFlags* flags) {
  command->add_option("-f,--fibermap", flags->fibermap, "File with the HDU FIBERMAP. Default: the input file")
      ->type_name("FILE")
      ->group("Files");
  AddTraceReference(command, ". On a server also sha256:HASH of a loaded file", flags);
  AddOptionFlags(command, "Extraction", IsOfTheFrame, &flags->spec);
}

void AddInputFlags(CLI::App* command, JobFlags* flags) {
  command->add_option("-i,--input", flags->input, "Preprocessed frame (.fits, .fits.gz)")
      ->type_name("FILE")
      ->required()
      ->group("Files");
  command->add_option("-p,--psf", flags->psf, "PSF file, or on a server sha256:HASH of a loaded PSF")
      ->type_name("FILE")
      ->required()
      ->group("Files");
}

void AddServerJobFlags(CLI::App* command, const std::string& where, JobFlags* flags) {
  command->add_flag("--upload", flags->upload, "Send the files' bytes instead of their paths")->group(where);
  AddOptionFlags(command, where, IsForServer, &flags->spec);
}

void AddJobFlags(CLI::App* command, const std::string& where, JobFlags* flags) {
  AddExtractionFlags(command, flags);
  AddCompatibilityFlags(command, flags);
  AddServerJobFlags(command, where, flags);
  command->add_option("--timeout", flags->timeout, "Time after which spex gives up")
      ->type_name("SECONDS")
      ->check(RealRange(0.001, 1e7))
      ->group(where);
}

std::vector<std::string> IdleFlags(const JobFlags& flags) {
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
  job.trace_reference = flags.trace_reference;
  job.spec = flags.spec;
  job.spec.model = model;
  SPEXD_RETURN_IF_ERROR(CheckJobOptions(job.spec, !job.trace_reference.empty()));
  if (flags.timeout.has_value()) {
    job.deadline = std::chrono::system_clock::now() +
                   std::chrono::milliseconds(static_cast<int64_t>(1000 * *flags.timeout));
  }
  return job;
}

}  // namespace spexd::cli
