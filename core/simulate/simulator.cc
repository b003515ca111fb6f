#include "core/simulate/simulator.h"

#include <thread>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/base/status_macros.h"
#include "core/simulate/detector.h"
#include "core/simulate/field.h"
#include "core/simulate/instrument.h"
#include "core/simulate/random.h"
#include "core/simulate/renderer.h"
#include "core/simulate/sky_and_targets.h"
#include "core/simulate/truth_grid.h"

namespace spexd {
namespace {

constexpr double kExposure = 1000;  // seconds
constexpr double kMjd = 58899.35;
constexpr double kBetweenExposures = 1100 / 86400.0;  // days between the starts of exposures
constexpr int kNight = 20200219, kTile = 80605;
constexpr double kPetalRadius = 400;       // mm
constexpr double kRa = 179.6, kDec = 0.1;  // centre of the field, degrees

int64_t TargetId(int fibre) { return int64_t{39627000000000000} + int64_t{kFirstExposureId} * 1000 + fibre; }

std::string Card(const std::string& keyword, const std::string& value, const std::string& comment) {
  return absl::StrFormat("%-80s", absl::StrFormat("%-8s= %20s / %s", keyword, value, comment)).substr(0, 80);
}
std::string Text(const std::string& value) {
  return absl::StrFormat("%-20s", absl::StrFormat("'%-8s'", absl::StrReplaceAll(value, {{"'", "''"}})));
}
std::string Number(double value) { return absl::StrFormat("%#.10G", value); }

std::vector<std::string> MakeCards(const SimulatorOptions& options) {
  const bool arc = !options.lamps.empty();
  return {
      Card("CAMERA", Text(StatedCamera(options)), "camera and spectrograph"),
      Card("EXPTIME", Number(kExposure), "[s] exposure time"),
      Card("FLAVOR", Text(arc ? "arc" : "science"), "kind of exposure"),
      Card("OBSTYPE", Text(arc ? "ARC" : "SCIENCE"), "kind of exposure"),
      Card("PROGRAM", Text(arc ? "calib" : "dark"), "observing program"),
      Card("NIGHT", absl::StrFormat("%d", kNight), "local date of the evening"),
      Card("EXPID", absl::StrFormat("%d", kFirstExposureId + options.exposure), "exposure number"),
      Card("TILEID", absl::StrFormat("%d", kTile), "tile number"),
      Card("SPECTRO", "0", "spectrograph number"),
      Card("RDNOISE", Number(options.read_noise), "[electron] read noise"),
      Card("TARGTRA", Number(kRa), "[deg] right ascension of the field"),
      Card("TARGTDEC", Number(kDec), "[deg] declination of the field"),
      Card("MJD-OBS", Number(kMjd + kBetweenExposures * options.exposure), "[d] start of the exposure, UTC"),
      Card("SIMSEED", absl::StrFormat("%d", options.seed), "seed of the simulation"),
  };
}

// Makes the fibermap. `sources`: those of the field; empty for the plain scene.
std::vector<FibermapRow> MakeFibermap(const SimulatorOptions& options, int fibre_min,
                                      const std::vector<TrueSource>& sources) {
  std::vector<FibermapRow> rows(options.fibres);
  Random random(options.seed, 4);
  for (int i = 0; i < options.fibres; ++i) {
    rows[i].target_id = TargetId(fibre_min + i);
    rows[i].fibre = fibre_min + i;
    const bool sky = sources.empty() ? KindOf(i) == TargetKind::kSky : sources[i].kind == SourceKind::kSky;
    rows[i].object_type = sky ? "SKY" : "TGT";
    rows[i].target_ra = kRa + random.Uniform(-0.5, 0.5);
    rows[i].target_dec = kDec + random.Uniform(-0.5, 0.5);
    rows[i].tile_id = kTile;
    rows[i].exposure_seconds = kExposure;
    // The field is mapped onto a square of the focal plane.
    rows[i].focal_x = kPetalRadius * (rows[i].target_ra - kRa);
    rows[i].focal_y = kPetalRadius * (rows[i].target_dec - kDec);
  }
  return rows;
}

}  // namespace

absl::StatusOr<Psf> SimulatePsf(const SimulatorOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(const SimulatorOptions complete, CompleteOptions(options));
  return PsfOf(complete);
}

absl::StatusOr<Simulation> Simulate(const SimulatorOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(const SimulatorOptions complete, CompleteOptions(options));
  Simulation simulation;
  Psf& psf = simulation.psf = PsfOf(complete);
  const int threads = static_cast<int>(std::thread::hardware_concurrency());
  SPEXD_ASSIGN_OR_RETURN(
      const WavelengthGrid grid,
      MakeTruthGrid(psf, complete.field.has_value() ? TruthOf::kSources : TruthOf::kScene));
  if (complete.field.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(std::tie(simulation.truth, simulation.sources),
                           MakeFieldTruth(complete, grid, threads));
    for (int i = 0; i < psf.fibres; ++i) simulation.sources.fibres[i].target_id = TargetId(psf.fibre_min + i);
  } else if (!complete.lamps.empty()) {
    SPEXD_ASSIGN_OR_RETURN(simulation.truth, MakeLampTruth(psf.fibres, grid, complete.lamps));
  } else {
    simulation.truth = MakeTruth(psf.fibres, grid, complete.seed);
  }
  SPEXD_ASSIGN_OR_RETURN(const auto expected, RenderTruth(psf, simulation.truth, threads));
  Expose(complete, psf, expected, simulation.preproc);
  simulation.preproc.fibermap = MakeFibermap(complete, psf.fibre_min, simulation.sources.fibres);
  simulation.preproc.extra_cards = MakeCards(complete);
  return simulation;
}

}  // namespace spexd
