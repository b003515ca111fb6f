#include "core/simulate/instrument.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/simulate/random.h"

namespace spexd {
namespace {

constexpr std::array<Camera, 3> kCameras = {
    {{'b', 4096, 4096, 4755, 0.586}, {'r', 4128, 4114, 6645, 0.533}, {'z', 4128, 4114, 8670, 0.609}}};

constexpr double kFibrePitch = 7.28;    // columns between neighbours
constexpr double kBundlePitch = 192.2;  // columns between the first fibres of neighbouring bundles
constexpr int kSideMargin = 24;         // least number of columns beside the outermost trace
constexpr double kEndMargin = 10;       // number of rows beyond the ends of a trace
constexpr int kDegree = 6;              // GHDEGX, GHDEGY

// Typical values of GH-i-j, [i][j].
constexpr double kHermite[kDegree + 1][kDegree + 1] = {
    {1.0, -0.005, 0.034, -0.008, 0.009, -0.0003, 0.0064},
    {0.003, 0.02, -0.002, 0.002, 0.0002, -0.0001, 0.0001},
    {0.004, -0.008, -0.004, 0.002, 0.0134, 0.0001, -0.0004},
    {0.004, -0.003, 0.001, 0.0001, 0.0001, -0.0001, 0.0001},
    {0.005, 0.0015, 0.0138, -0.0004, 0.0013, -0.0001, 0.0004},
    {0.0005, -0.0007, -0.0002, 0.0001, 0.0001, 0.0001, 0.0001},
    {0.0055, 0.0002, -0.0003, -0.0001, 0.0004, 0.0001, 0.0001}};

double Span(int fibres) {
  const int last = fibres - 1;
  return last / kSimulatedBundle * kBundlePitch + last % kSimulatedBundle * kFibrePitch;
}

absl::Status CheckRange(const char* name, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("simulator: %s is %d, must be %d to %d", name, value, least, most));
}

LegendreTable MakeTable(const Psf& psf, int64_t coefficients) {
  LegendreTable table;
  table.coeff.Assign({psf.fibres, coefficients});
  table.wave_min = psf.wave_min;
  table.wave_max = psf.wave_max;
  return table;
}

// Makes smooth functions of the fibre's position (0 to 1) around `mean`. They are flatter for a CCD that is a
// fraction of the camera's.
LegendreTable Vary(const Psf& psf, double mean, std::initializer_list<double> amplitudes, double fraction,
                   Random& random) {
  LegendreTable table = MakeTable(psf, static_cast<int64_t>(amplitudes.size()));
  double scale = 1;
  int64_t k = 0;
  for (const double amplitude : amplitudes) {
    const double phase = random.Uniform(0, 2 * std::numbers::pi), cycles = random.Uniform(0.5, 2);
    for (int i = 0; i < psf.fibres; ++i) {
      const double position = static_cast<double>(i) / kMaxSimulatedFibres;
      const double wave = std::sin(phase + 2 * std::numbers::pi * cycles * position);
      table.coeff(i, k) = (k == 0 ? mean : 0) + scale * amplitude * wave;
    }
    scale *= fraction;
    ++k;
  }
  return table;
}

void MakeTraces(Psf& psf, double fraction, Random& random) {
  psf.traces.x = MakeTable(psf, 7);
  psf.traces.y = MakeTable(psf, 7);
  const double left = 0.5 * (psf.columns - 1 - Span(psf.fibres));
  const double f2 = fraction * fraction, f3 = f2 * fraction;
  for (int i = 0; i < psf.fibres; ++i) {
    const double position = static_cast<double>(i) / kMaxSimulatedFibres;
    const double side = 2 * position - 1;
    psf.traces.x.coeff(i, 0) = left + Span(i + 1) + random.Uniform(-0.15, 0.15);
    psf.traces.x.coeff(i, 1) = 5.8 * side * fraction;
    psf.traces.x.coeff(i, 2) = 2.9 * side * f2;
    psf.traces.x.coeff(i, 3) = 0.1 * side * f3;
    // Rows bend by 40 rows over a full slit; the dispersion changes a little along the CCD.
    const double bow = (40 * side * side - 20) * fraction;
    const double curve = 61 * f2, twist = 3.5 * f3;
    psf.traces.y.coeff(i, 0) = 0.5 * (psf.rows - 1) - curve + bow;
    psf.traces.y.coeff(i, 1) = 0.5 * (psf.rows - 1) - kEndMargin - twist;
    psf.traces.y.coeff(i, 2) = curve;
    psf.traces.y.coeff(i, 3) = twist;
  }
}

const Camera* KnownCamera(char name) {
  const auto camera = std::ranges::find(kCameras, name, &Camera::name);
  return camera == kCameras.end() ? nullptr : &*camera;
}

// The CAMERA that a PSF states, "" if none. Some files have it padded and in quotation marks.
std::string CameraOf(const Psf* psf) {
  constexpr char kAround[] = " '";
  const std::string text = psf == nullptr ? "" : psf->camera;
  const size_t first = text.find_first_not_of(kAround), last = text.find_last_not_of(kAround);
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

absl::Status TakeGeometry(const Psf& psf, SimulatorOptions* options) {
  if (!IsComplete(psf))
    return absl::InvalidArgumentError(
        "simulator: the PSF is an outline, it lacks what its spots are made of");
  SPEXD_RETURN_IF_ERROR(CheckPsf(psf));
  SPEXD_RETURN_IF_ERROR(CheckRange("the PSF's NPIX_Y", psf.rows, kMinSimulatedSide, kMaxSimulatedSide));
  SPEXD_RETURN_IF_ERROR(CheckRange("the PSF's NPIX_X", psf.columns, kMinSimulatedSide, kMaxSimulatedSide));
  for (const auto& [name, trace] : {std::pair("XTRACE", &psf.traces.x), std::pair("YTRACE", &psf.traces.y)})
    SPEXD_RETURN_IF_ERROR(CheckValues(name, *trace, {trace->wave_min, trace->wave_max}));
  const std::string stated = CameraOf(&psf);
  const char letter = stated.empty() ? '\0' : absl::ascii_tolower(stated.front());
  const Camera* const camera = KnownCamera(letter);
  if (camera != nullptr && options->camera.value_or(letter) != letter) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "simulator: camera is '%c', but CAMERA of the PSF is '%s'", *options->camera, stated));
  }
  if (!options->camera.has_value()) options->camera = camera == nullptr ? 'r' : letter;
  options->fibres = psf.fibres;
  options->rows = psf.rows;
  options->columns = psf.columns;
  return absl::OkStatus();
}

absl::Status MakeGeometry(SimulatorOptions* options) {
  options->camera = options->camera.value_or('r');
  SPEXD_ASSIGN_OR_RETURN(const Camera camera, FindCamera(*options->camera));
  SPEXD_RETURN_IF_ERROR(CheckRange("the number of fibres", options->fibres, 1, kMaxSimulatedFibres));
  const int needed =
      std::max(kMinSimulatedSide, static_cast<int>(std::ceil(Span(options->fibres))) + 2 * kSideMargin);
  if (options->rows == 0) options->rows = camera.rows;
  if (options->columns == 0)
    options->columns = options->fibres == kMaxSimulatedFibres ? camera.columns : needed;
  SPEXD_RETURN_IF_ERROR(
      CheckRange("the number of rows", options->rows, kMinSimulatedSide, kMaxSimulatedSide));
  return CheckRange("the number of columns", options->columns, needed, kMaxSimulatedSide);
}

absl::Status CompleteField(int fibres, Field* field) {
  if (field->sky_fibres < 0) field->sky_fibres = std::max(1, fibres / 10);
  SPEXD_RETURN_IF_ERROR(CheckRange("the number of sky fibres", field->sky_fibres, 1, fibres));
  const int targets = fibres - field->sky_fibres;
  if (field->emitters < 0) field->emitters = field->stars == nullptr ? targets : targets / 4;
  SPEXD_RETURN_IF_ERROR(CheckRange("the number of emitters", field->emitters, 0, targets));
  if (field->stars != nullptr || field->emitters == targets) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "simulator: %d of %d fibres are sky, %d emitters: the others are stars, which need templates",
      field->sky_fibres, fibres, field->emitters));
}

}  // namespace

absl::StatusOr<Camera> FindCamera(char name) {
  const Camera* const camera = KnownCamera(name);
  if (camera != nullptr) return *camera;
  return absl::InvalidArgumentError(absl::StrFormat("simulator: camera is '%c', must be b, r or z", name));
}

absl::StatusOr<SimulatorOptions> CompleteOptions(const SimulatorOptions& options) {
  SimulatorOptions complete = options;
  SPEXD_RETURN_IF_ERROR(options.psf == nullptr ? MakeGeometry(&complete)
                                               : TakeGeometry(*options.psf, &complete));
  SPEXD_ASSIGN_OR_RETURN(const Camera camera, FindCamera(*complete.camera));
  if (!std::isfinite(options.read_noise) || options.read_noise <= 0 || options.read_noise > 1000) {
    return absl::InvalidArgumentError(
        absl::StrFormat("simulator: read_noise is %g electrons, must be greater than 0 and at most 1000",
                        options.read_noise));
  }
  SPEXD_RETURN_IF_ERROR(CheckRange("the exposure", options.exposure, 0, kMaxSimulatedExposures - 1));
  if (complete.field.has_value()) SPEXD_RETURN_IF_ERROR(CompleteField(complete.fibres, &*complete.field));
  const double fraction =
      static_cast<double>(complete.rows) * complete.columns / camera.rows / camera.columns;
  if (options.cosmic_rays < 0) complete.cosmic_rays = static_cast<int>(std::ceil(2500 * fraction));
  if (options.dead_columns < 0)
    complete.dead_columns = std::max(1, static_cast<int>(std::lround(3 * fraction)));
  SPEXD_RETURN_IF_ERROR(CheckRange("the number of cosmic rays", complete.cosmic_rays, 0, 1000000));
  SPEXD_RETURN_IF_ERROR(CheckRange("the number of holes", complete.holes, 0, 10000));
  SPEXD_RETURN_IF_ERROR(CheckRange("the number of dead columns", complete.dead_columns, 0, complete.columns));
  return complete;
}

std::string StatedCamera(const SimulatorOptions& options) {
  const std::string stated = CameraOf(options.psf.get());
  return stated.empty() ? std::string{*options.camera, '0'} : stated;
}

Psf PsfOf(const SimulatorOptions& options) {
  if (options.psf != nullptr) return *options.psf;
  const Camera& camera = *KnownCamera(*options.camera);
  Psf psf;
  psf.rows = options.rows;
  psf.columns = options.columns;
  psf.fibres = options.fibres;
  GaussHermiteSpots& spots = GaussHermite(psf);
  spots.stamp = {CentredAxis(8), CentredAxis(5)};
  GaussHermiteCore& core = spots.core();
  core.max_degree_x = core.max_degree_y = kDegree;
  const double half = 0.5 * camera.dispersion * (options.rows - 1 - 2 * kEndMargin);
  // Rounded to tenths, as a header shows them.
  psf.wave_min = std::round(10 * (camera.middle - half)) / 10;
  psf.wave_max = std::round(10 * (camera.middle + half)) / 10;

  Random random(options.seed, 1);
  const double fraction = std::min(1.0, static_cast<double>(options.rows) / camera.rows);
  MakeTraces(psf, fraction, random);
  core.sigma_x = Vary(psf, 1.05, {0.02, 0.04, 0.02, 0.01}, fraction, random);
  core.sigma_y = Vary(psf, 1.11, {0.015, 0.06, 0.015, 0.01}, fraction, random);
  for (int a = 0; a <= kDegree; ++a) {
    for (int b = 0; b <= kDegree; ++b) {
      const double mean = kHermite[a][b];
      const double spread = a + b == 0 ? 0 : 0.3 * std::abs(mean) + 0.02 * std::exp(-(a + b));
      GaussHermiteTerm term;
      term.degree_x = a;
      term.degree_y = b;
      term.amplitude = Vary(psf, mean, {spread, spread, 0.5 * spread, 0.25 * spread}, fraction, random);
      core.terms.push_back(std::move(term));
    }
  }
  return psf;
}

}  // namespace spexd
