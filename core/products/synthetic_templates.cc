#include "core/products/synthetic_templates.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/analysis/velocity_units.h"
#include "core/base/array.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/products/make_templates.h"

namespace spexd {
namespace {

constexpr double kTemperatures[] = {4000, 4750, 5500, 6250, 7000};  // K
constexpr double kGravities[] = {1, 3, 5};                          // log10 of cm/s^2
constexpr double kMetallicities[] = {-2, -0.75, 0.5};               // log10 of the ratio to the Sun's
// The star for which the strengths of lines are given.
constexpr double kMiddleTemperature = 5500, kMiddleGravity = 3;

constexpr double kDeepest = 0.9;         // part of the light that the strongest lines absorb
constexpr double kGaussianReach = 6;     // sigmas
constexpr double kLorentzianReach = 40;  // half widths at half maximum
constexpr double kMetalSigma = 12, kHydrogenSigma = 25;  // km/s, for rotation and turbulence
constexpr double kSecondRadiation = 1.438776877e8;       // Angstrom K
constexpr double kPlanckWave = 5500;                     // Angstrom, where the continuum is 1

constexpr uint64_t kForestSeed = 20261129;
constexpr double kForestFirst = 2900, kForestLast = 11200;  // Angstrom

// The dependence of lines on parameters: powers of TEFF / 5500 K, and exponentials of LOGG - 3 and FEH.
struct Dependence {
  double by_teff = 0, by_logg = 0, by_feh = 0;
};

// A kind of line, as optical depth: a Gaussian core, and wings of a Lorentz profile whose strength is a part
// of the core's.
struct LineKind {
  double sigma = kMetalSigma;  // km/s
  Dependence strength;
  double wings = 0;  // part of the strength
  double width = 0;  // half width at half maximum, km/s
  Dependence widening;
};

struct SyntheticLine {
  double wave = 0;      // Angstrom in vacuum
  double strength = 0;  // optical depth in the middle, for the star above with the Sun's metals
  LineKind kind;
};

// Wings of hydrogen grow with temperature (Stark effect), those of neutral metals with gravity (collisions).
constexpr LineKind kHydrogen = {kHydrogenSigma, {4.5, 0.02, 0}, 0.8, 120, {2.5, 0.1, 0}};
constexpr LineKind kIonizedCalcium = {kMetalSigma, {-2, -0.05, 0.8}, 0.12, 200, {-1, 0.05, 0.3}};
constexpr LineKind kCalciumTriplet = {kMetalSigma, {-0.5, -0.15, 0.7}, 0.15, 70, {0, -0.1, 0.2}};
constexpr LineKind kNeutral = {kMetalSigma, {-4.5, 0.05, 1}, 0.12, 60, {-1, 0.2, 0.3}};
constexpr LineKind kIron = {kMetalSigma, {-3.5, -0.05, 1.1}, 0.05, 30, {-1, 0.2, 0.2}};

struct LinesOfKind {
  LineKind kind;
  std::vector<std::pair<double, double>> lines;  // wavelength and strength
};

// The known lines. Wavelengths are from the tables of NIST, in vacuum; strengths were set by eye.
std::vector<LinesOfKind> KnownLines() {
  return {
      {kHydrogen,  // Balmer and Paschen lines
       {{6564.61, 0.45}, {4862.69, 0.5},  {4341.69, 0.5},  {4102.90, 0.5},  {3971.20, 0.45},
        {3890.15, 0.4},  {3836.48, 0.35}, {3798.98, 0.3},  {3771.70, 0.25}, {3751.22, 0.2},
        {9548.59, 0.15}, {9231.54, 0.14}, {9017.38, 0.13}, {8865.21, 0.12}, {8752.87, 0.11},
        {8667.40, 0.1},  {8600.75, 0.09}, {8547.73, 0.08}, {8504.82, 0.07}, {8469.58, 0.06}}},
      {kIonizedCalcium, {{3934.77, 30}, {3969.59, 22}}},
      {kCalciumTriplet, {{8500.35, 2.5}, {8544.44, 4}, {8664.52, 3.3}}},
      // Mg b and another line of magnesium, sodium D and the lines at 8190, calcium, potassium.
      {kNeutral,
       {{5168.76, 4},
        {5174.12, 6},
        {5185.04, 7},
        {8809.18, 0.8},
        {5891.58, 5},
        {5897.55, 4},
        {8185.51, 0.6},
        {8197.07, 0.8},
        {4227.92, 7},
        {6104.41, 0.7},
        {6123.91, 1.2},
        {6163.88, 1.4},
        {7667.02, 1.2},
        {7701.08, 1}}},
      {kIron, {{3720.99, 5},   {3738.19, 5},   {3750.56, 5},   {3821.51, 4},   {3861.00, 4},   {4046.95, 4},
               {4064.74, 3},   {4072.89, 2.5}, {4145.04, 2},   {4272.96, 2.5}, {4309.11, 2.5}, {4326.98, 2.5},
               {4384.78, 3},   {4405.99, 2},   {4921.87, 1.2}, {4958.98, 1.3}, {5228.65, 1.3}, {5271.01, 1.8},
               {5329.52, 1.6}, {5372.98, 1.4}, {5407.27, 1.3}, {5431.21, 1.3}, {5448.43, 1.3}, {5617.20, 0.9},
               {6067.16, 0.5}, {6138.32, 0.7}, {6193.27, 0.7}, {6232.44, 0.7}, {6395.37, 0.7}, {6413.42, 0.6},
               {6432.63, 0.6}, {6496.77, 0.8}, {6679.83, 0.6}, {7413.19, 0.4}, {7447.80, 0.5}, {7497.13, 0.5},
               {7513.09, 0.6}, {8329.35, 0.7}, {8390.08, 0.8}, {8470.74, 0.6}, {8516.41, 0.6}, {8691.01, 0.9},
               {8826.64, 0.8}}}};
}

// Random numbers that are the same with every standard library. The standard defines generators to the bit,
// but not distributions.
class ForestDice {
 public:
  double Uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(generator_() >> 12) + 0.5) * 0x1p-52;
  }

 private:
  std::mt19937_64 generator_{kForestSeed};
};

// Adds weak lines of metals, which are denser in the blue.
void AddForest(std::vector<SyntheticLine>* lines) {
  ForestDice dice;
  for (double wave = kForestFirst; wave < kForestLast;) {
    SyntheticLine line;
    line.wave = wave;
    line.strength = std::exp(dice.Uniform(std::log(0.02), std::log(1.2)));
    line.kind.strength = {dice.Uniform(-7, -1), dice.Uniform(-0.2, 0.2), dice.Uniform(0.8, 1.6)};
    lines->push_back(line);
    wave -= 1.5 * (wave / 4000) * (wave / 4000) * std::log(dice.Uniform(0, 1));
  }
}

std::vector<SyntheticLine> AllLines() {
  std::vector<SyntheticLine> lines;
  for (const LinesOfKind& known : KnownLines()) {
    for (const auto& [wave, strength] : known.lines) lines.push_back({wave, strength, known.kind});
  }
  AddForest(&lines);
  return lines;
}

struct StarParameters {
  double teff, logg, feh;

  double Factor(const Dependence& by) const {
    return std::exp(by.by_teff * std::log(teff / kMiddleTemperature) + by.by_logg * (logg - kMiddleGravity) +
                    by.by_feh * feh);
  }
};

// Adds a profile around a wavelength to optical depths. `unit`: the scale of the profile, km/s. `reach`: the
// length of the profile on each side, in units.
template <typename Profile>
void AddProfile(const TemplateGrid& grid, double wave, double unit, double reach, const Profile& profile,
                std::vector<double>* depth) {
  const double samples = unit / kLightSpeed / grid.step;
  const double middle = (std::log(wave) - grid.first) / grid.step;
  const double first = std::max(0.0, std::ceil(middle - reach * samples)),
               last = std::min(grid.samples - 1.0, std::floor(middle + reach * samples));
  for (double k = first; k <= last; ++k) (*depth)[static_cast<size_t>(k)] += profile((k - middle) / samples);
}

void AddSyntheticLine(const TemplateGrid& grid, const SyntheticLine& line, const StarParameters& star,
                      std::vector<double>* depth) {
  const LineKind& kind = line.kind;
  const double strength = line.strength * star.Factor(kind.strength);
  AddProfile(
      grid, line.wave, kind.sigma, kGaussianReach,
      [strength](double x) { return strength * std::exp(-0.5 * x * x); }, depth);
  if (!(kind.wings > 0)) return;
  AddProfile(
      grid, line.wave, kind.width * star.Factor(kind.widening), kLorentzianReach,
      [wings = strength * kind.wings](double x) {
        const double end = x / kLorentzianReach, smooth = 1 - end * end;  // the wings end without a step
        return wings * smooth * smooth / (1 + x * x);
      },
      depth);
}

// A black body, scaled to 1 at kPlanckWave.
double Continuum(double wave, double teff) {
  return std::pow(kPlanckWave / wave, 5) * std::expm1(kSecondRadiation / (kPlanckWave * teff)) /
         std::expm1(kSecondRadiation / (wave * teff));
}

absl::Status CheckSynthetic(const SyntheticTemplates& request) {
  if (!(request.first >= kMinSyntheticWave && request.last > request.first &&
        request.last <= kMaxSyntheticWave)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "synthetic templates: the range is %g to %g Angstrom, must ascend within %g to %g, where they have "
        "lines",
        request.first, request.last, kMinSyntheticWave, kMaxSyntheticWave));
  }
  if (request.step >= kMinSyntheticStep && request.step <= 10) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "synthetic templates: the step is %g km/s, must be %g to 10", request.step, kMinSyntheticStep));
}

}  // namespace

absl::StatusOr<TemplateLibrary> MakeSyntheticTemplates(const SyntheticTemplates& request) {
  SPEXD_RETURN_IF_ERROR(CheckSynthetic(request));
  SPEXD_ASSIGN_OR_RETURN(const TemplateGrid grid,
                         MakeTemplateGrid(request.first, request.last, request.step));
  std::vector<std::vector<double>> nodes;
  for (const double teff : kTemperatures) {
    for (const double logg : kGravities) {
      for (const double feh : kMetallicities) nodes.push_back({teff, logg, feh});
    }
  }
  const std::vector<SyntheticLine> lines = AllLines();
  Array<float, 2> flux({static_cast<int64_t>(nodes.size()), grid.samples});
  SPEXD_RETURN_IF_ERROR(
      ParallelFor(static_cast<int64_t>(nodes.size()), request.threads, [&](int64_t row) -> absl::Status {
        const std::vector<double>& node = nodes[static_cast<size_t>(row)];
        const StarParameters star = {node[0], node[1], node[2]};
        std::vector<double> depth(static_cast<size_t>(grid.samples), 0);
        for (const SyntheticLine& line : lines) AddSyntheticLine(grid, line, star, &depth);
        for (int k = 0; k < grid.samples; ++k) {
          // Minnaert's formula: strong lines saturate above the light of their cores.
          const double part = depth[static_cast<size_t>(k)] / (1 + depth[static_cast<size_t>(k)] / kDeepest);
          flux(row, k) = static_cast<float>(Continuum(grid.Wave(k), star.teff) * (1 - part));
        }
        return absl::OkStatus();
      }));
  return MakeTemplateLibrary(grid.first, grid.step, {"TEFF", "LOGG", "FEH"}, nodes, flux);
}

TemplateRemarks SyntheticRemarks() {
  return {"SYNTHETIC",
          {"Synthetic: black bodies with lines from a formula, to try programs with;",
           "not for velocities of real stars."}};
}

}  // namespace spexd
