#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "core/base/status_macros.h"
#include "core/fits/writers.h"
#include "core/simulate/simulator.h"

namespace spexd::cli {
namespace {

struct Options {
  SimulatorOptions simulator;
  std::string camera = "r";
  std::string folder = ".";
  bool rice = false, gzip = false, no_noise = false, no_hole = false;
};

absl::Status Simulate(Options options) {
  options.simulator.camera = options.camera[0];
  options.simulator.noise = !options.no_noise;
  options.simulator.hole = !options.no_hole;
  const std::filesystem::path folder = options.folder;
  const std::string tail = absl::StrCat(options.camera, "0.fits");
  const std::string psf = folder / absl::StrCat("psf-", tail);
  const std::string preproc = folder / absl::StrCat("preproc-", tail, options.gzip ? ".gz" : "");
  const std::string truth = folder / absl::StrCat("truth-", tail);
  std::error_code error;
  std::filesystem::create_directories(folder, error);  // a failure shows as the file that cannot be made
  SPEXD_RETURN_IF_ERROR(CheckWritable(psf));
  SPEXD_ASSIGN_OR_RETURN(const Simulation simulation, spexd::Simulate(options.simulator));
  SPEXD_RETURN_IF_ERROR(WritePsf(simulation.psf, psf));
  SPEXD_RETURN_IF_ERROR(WriteTruth(simulation.truth, truth));
  SPEXD_RETURN_IF_ERROR(WritePreproc(simulation.preproc, preproc, options.rice));
  std::printf("Simulated %d fibres on %d x %d pixels, seed %llu\n", simulation.psf.fibres,
              simulation.psf.rows, simulation.psf.columns,
              static_cast<unsigned long long>(options.simulator.seed));
  for (const std::string& path : {psf, preproc, truth}) std::printf("Wrote %s\n", path.c_str());
  return absl::OkStatus();
}

int RunSimulate(const Options& options) {
  const absl::Status status = Simulate(options);
  if (status.ok()) return kOk;
  const int code = Fail(status);
  return code == kServer ? kInternal : code;
}

}  // namespace

void AddSimulate(CLI::App* app, Action* action) {
  auto options = std::make_shared<Options>();
  Options& o = *options;
  CLI::App* command =
      app->add_subcommand("simulate", "Simulate a PSF, a frame seen through it and its true spectra");
  command->add_option("--camera", o.camera, "b, r or z")
      ->capture_default_str()
      ->check(CLI::IsMember({"b", "r", "z"}));
  command->add_option("--fibres", o.simulator.fibres, "Number of fibres")->capture_default_str();
  command->add_option("--rows", o.simulator.rows, "CCD rows; 0: the camera's")->capture_default_str();
  command->add_option("--columns", o.simulator.columns, "CCD columns; 0: as many as the fibres need")
      ->capture_default_str();
  command->add_option("--seed", o.simulator.seed, "Random seed")->capture_default_str();
  command->add_option("--cosmic-rays", o.simulator.cosmic_rays, "Number of cosmic rays; -1: by area")
      ->capture_default_str();
  command->add_option("--dead-columns", o.simulator.dead_columns, "Number of dead columns; -1: by size")
      ->capture_default_str();
  command->add_flag("--no-hole", o.no_hole, "No saturated hole");
  command->add_flag("--no-noise", o.no_noise, "No noise");
  command->add_option("--out-dir", o.folder, "Folder for psf-, preproc- and truth-<camera>0.fits")
      ->capture_default_str();
  command->add_flag("--rice", o.rice, "Rice-compress IMAGE and IVAR");
  command->add_flag("--gz", o.gzip, "Write preproc-<camera>0.fits.gz");
  command->callback([options, action] { *action = [options] { return RunSimulate(*options); }; });
}

}  // namespace spexd::cli
