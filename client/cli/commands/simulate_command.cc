#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/commands/commands.h"
#include "client/cli/terminal/exit_code.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"
#include "core/fits/true_source_writer.h"
#include "core/fits/writers.h"
#include "core/model/wavelength_grid.h"
#include "core/plan/grid_plan.h"
#include "core/products/template_file.h"
#include "core/simulate/instrument.h"
#include "core/simulate/simulator.h"
#include "core/traces/shifts/reference.h"

namespace spexd::cli {
namespace {

struct SimulateCommandOptions {
  SimulatorOptions simulator;
  std::string psf, camera, folder = ".";
  bool rice = false, gzip = false, no_noise = false;
  int exposures = 1;
  std::string stars, wavelength, arc;
  std::optional<int> sky_fibres, emitters;

  bool HasField() const { return !stars.empty() || sky_fibres.has_value() || emitters.has_value(); }
};

// The paths of the files to write. REQUIRES: the simulator's options are complete.
class Paths {
 public:
  // The paths of files that all exposures share.
  explicit Paths(const SimulateCommandOptions& options)
      : folder_(options.folder), tail_(absl::StrFormat("%c0.fits", *options.simulator.camera)) {}
  // The paths of an exposure's files, with its number if there are several.
  Paths(const SimulateCommandOptions& options, int exposure) : Paths(options) {
    if (options.exposures == 1) return;
    tail_ = absl::StrFormat("%c0-%08d.fits", *options.simulator.camera, kFirstExposureId + exposure);
  }
  std::string Of(absl::string_view kind) const { return folder_ / absl::StrCat(kind, "-", tail_); }

 private:
  std::filesystem::path folder_;
  std::string tail_;
};

absl::StatusOr<std::shared_ptr<const Psf>> LoadPsf(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadPsf(source));
  return std::make_shared<const Psf>(std::move(psf));
}

absl::StatusOr<Field> FieldOf(const SimulateCommandOptions& options) {
  Field field{nullptr, options.sky_fibres.value_or(-1), options.emitters.value_or(-1)};
  if (!options.stars.empty()) {
    SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(options.stars));
    SPEXD_ASSIGN_OR_RETURN(TemplateLibrary library, ReadTemplates(source));
    field.stars = std::make_shared<const TemplateLibrary>(std::move(library));
  }
  return field;
}

constexpr size_t kMaxLampLines = 5000;
constexpr double kBrightestLine = 20000;  // electrons

absl::StatusOr<std::vector<LampLine>> ReadLamps(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source file, Source::FromFile(path));
  SPEXD_ASSIGN_OR_RETURN(const ReferenceSpectrum lines, ParseReferenceSpectrum(path, file.bytes()));
  const double brightest = *std::max_element(lines.flux.begin(), lines.flux.end());
  if (lines.wave.size() > kMaxLampLines || !(brightest > 0)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--arc %s: has %d samples, the brightest %g; must have at most %d, and one with light", path,
        lines.wave.size(), brightest, kMaxLampLines));
  }
  std::vector<LampLine> lamps;
  for (size_t k = 0; k < lines.wave.size(); ++k)
    lamps.push_back({lines.wave[k], kBrightestLine / brightest * lines.flux[k]});
  return lamps;
}

// Writes files and prints their names.
class Writer {
 public:
  template <typename Write>
  absl::Status operator()(const std::string& path, const Write& write) {
    SPEXD_RETURN_IF_ERROR(write(path));
    written_.push_back(path);
    return absl::OkStatus();
  }
  void Print() const {
    for (const std::string& path : written_) std::printf("Wrote %s\n", path.c_str());
  }

 private:
  std::vector<std::string> written_;
};

// Writes an exposure's files; with the first exposure, also the shared ones. `grid`: that of the fiberflat;
// nullopt: none is written.
absl::Status WriteExposure(const SimulateCommandOptions& options, const Simulation& simulation,
                           const std::optional<WavelengthGrid>& grid) {
  const bool first = options.simulator.exposure == 0, field = !simulation.sources.fibres.empty();
  const Paths paths(options, options.simulator.exposure), common(options);
  const std::string preproc = absl::StrCat(paths.Of("preproc"), options.gzip ? ".gz" : "");
  Writer write;
  if (first && options.psf.empty()) {
    SPEXD_RETURN_IF_ERROR(
        write(common.Of("psf"), [&](const std::string& path) { return WritePsf(simulation.psf, path); }));
  }
  SPEXD_RETURN_IF_ERROR(write(preproc, [&](const std::string& path) {
    return WritePreproc(simulation.preproc, path, options.rice);
  }));
  SPEXD_RETURN_IF_ERROR(
      write(paths.Of("truth"), [&](const std::string& path) { return WriteTruth(simulation.truth, path); }));
  if (field) {
    SPEXD_RETURN_IF_ERROR(write(paths.Of("sources"), [&](const std::string& path) {
      return WriteTrueSources(simulation.sources, path);
    }));
  }
  if (field && first && grid.has_value()) {
    SPEXD_RETURN_IF_ERROR(write(common.Of("fiberflat"), [&](const std::string& path) {
      return WriteTrueFiberflat(simulation.sources, *grid, StatedCamera(options.simulator), path);
    }));
  }
  if (first) {
    std::printf("Simulated %d fibres on %d x %d pixels, seed %llu\n", simulation.psf.fibres,
                simulation.psf.rows, simulation.psf.columns,
                static_cast<unsigned long long>(options.simulator.seed));
  }
  write.Print();
  return absl::OkStatus();
}

absl::Status Simulate(SimulateCommandOptions options) {
  if (!options.camera.empty()) options.simulator.camera = options.camera[0];
  if (!options.psf.empty()) {
    SPEXD_ASSIGN_OR_RETURN(options.simulator.psf, LoadPsf(options.psf));
  }
  options.simulator.noise = !options.no_noise;
  std::optional<WavelengthGrid> grid;
  if (options.HasField()) {
    SPEXD_ASSIGN_OR_RETURN(options.simulator.field, FieldOf(options));
  } else if (!options.wavelength.empty()) {
    return absl::InvalidArgumentError("--wavelength is of the fiberflat of --stars and --emitters");
  }
  if (!options.wavelength.empty()) {
    SPEXD_ASSIGN_OR_RETURN(grid, ParseWavelengthGrid(options.wavelength));
  }
  if (!options.arc.empty()) {
    SPEXD_ASSIGN_OR_RETURN(options.simulator.lamps, ReadLamps(options.arc));
  }
  SPEXD_ASSIGN_OR_RETURN(options.simulator, CompleteOptions(options.simulator));
  std::error_code error;  // ignored: creating the files then fails
  std::filesystem::create_directories(options.folder, error);
  SPEXD_RETURN_IF_ERROR(CheckWritable(Paths(options, 0).Of("truth")));
  for (int exposure = 0; exposure < options.exposures; ++exposure) {
    options.simulator.exposure = exposure;
    SPEXD_ASSIGN_OR_RETURN(const Simulation simulation, spexd::Simulate(options.simulator));
    if (grid.has_value()) SPEXD_RETURN_IF_ERROR(CheckGrid(simulation.psf, *grid));
    SPEXD_RETURN_IF_ERROR(WriteExposure(options, simulation, grid));
  }
  return absl::OkStatus();
}

int RunSimulate(const SimulateCommandOptions& options) {
  const absl::Status status = Simulate(options);
  if (status.ok()) return kOk;
  const int code = Fail(status);
  return code == kServer ? kInternal : code;
}

}  // namespace

void AddSimulate(CLI::App* app, Action* action) {
  auto options = std::make_shared<SimulateCommandOptions>();
  SimulateCommandOptions& o = *options;
  CLI::App* command =
      app->add_subcommand("simulate", "Simulate a PSF, a frame seen through it, and its true spectra");
  command->add_option("--camera", o.camera, "Camera to simulate. Default: that of --psf, otherwise r")
      ->check(CLI::IsMember({"b", "r", "z"}));
  CLI::Option* psf = command
                         ->add_option("-p,--psf", o.psf,
                                      "PSF of any instrument, through which the frame is seen; it determines "
                                      "fibres, CCD and wavelengths. Default: a simulated PSF")
                         ->type_name("FILE");
  command->add_option("--fibres", o.simulator.fibres, "Number of fibres")->capture_default_str();
  command->add_option("--rows", o.simulator.rows, "Number of CCD rows. 0: as in the camera")
      ->capture_default_str();
  command
      ->add_option("--columns", o.simulator.columns, "Number of CCD columns. 0: as many as the fibres need")
      ->capture_default_str();
  for (const char* other : {"--fibres", "--rows", "--columns"}) psf->excludes(command->get_option(other));
  command->add_option("--seed", o.simulator.seed, "Random seed")->capture_default_str();
  command
      ->add_option("--cosmic-rays", o.simulator.cosmic_rays,
                   "Number of cosmic rays. -1: by the area of the CCD")
      ->capture_default_str();
  command
      ->add_option("--dead-columns", o.simulator.dead_columns,
                   "Number of dead columns. -1: by the size of the CCD")
      ->capture_default_str();
  command->add_option("--holes", o.simulator.holes, "Number of saturated holes of 60 x 18 pixels")
      ->capture_default_str();
  command->add_flag("--no-noise", o.no_noise, "Simulate no noise");
  command
      ->add_option("--out-dir", o.folder,
                   "Folder to write psf-, preproc- and truth-<camera>0.fits to; no psf- with --psf")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_flag(
      "--rice", o.rice,
      "Compress the frame with Rice: IMAGE and READNOISE are quantised, IVAR and MASK stay exact");
  command->add_flag("--gz", o.gzip, "Compress the frame with gzip: preproc-<camera>0.fits.gz");
  const char* const group = "Sources";
  command
      ->add_option("--stars", o.stars,
                   "Library of templates; simulates stars from it instead of the plain scene. "
                   "sources-<camera>0.fits lists their velocities, rotations and parameters")
      ->type_name("FILE")
      ->group(group);
  command
      ->add_option("--emitters", o.emitters,
                   "Number of galaxies with emission lines. Default: with --stars a quarter of the targets, "
                   "otherwise all")
      ->check(CLI::Range(0, kMaxFibres))
      ->group(group);
  command->add_option("--sky-fibres", o.sky_fibres, "Number of sky fibres. Default: a tenth of all")
      ->check(CLI::Range(1, kMaxFibres))
      ->group(group);
  CLI::Option* arc =
      command
          ->add_option("--arc", o.arc,
                       "Text file of lines, wavelength in vacuum and light, such as "
                       "share/spexd/references/arc-lamps.dat; simulates an arc instead of the plain scene")
          ->type_name("FILE")
          ->group(group);
  for (const char* other : {"--stars", "--emitters", "--sky-fibres"})
    arc->excludes(command->get_option(other));
  command
      ->add_option("--exposures", o.exposures,
                   "Number of frames of the same sources, each with other noise and throughputs; file names "
                   "contain the exposure's number")
      ->capture_default_str()
      ->check(CLI::Range(1, kMaxSimulatedExposures))
      ->group(group);
  command
      ->add_option("-w,--wavelength", o.wavelength,
                   "Wavelength grid: first, last and step in Angstrom. Also write fiberflat-<camera>0.fits, "
                   "for spectra on this grid")
      ->type_name("WMIN,WMAX,DW")
      ->group(group);
  command->callback([options, action] { *action = [options] { return RunSimulate(*options); }; });
}

}  // namespace spexd::cli
