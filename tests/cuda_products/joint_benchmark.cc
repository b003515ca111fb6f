// cuda_products_benchmark [STARS [REPEATS [CPU_STARS]]]: measures the time of velocities from the arms B, R
// and Z of DESI together, and from each arm alone, on device 0 and on one processor, for stars of the
// synthetic library (500 stars, 11 repeats, 20 stars on the processor). It prints medians after one call that
// is not counted. Spectra are on the host, so times include their copies, 215 MB for 500 stars.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "core/analysis/analyser/analyser.h"
#include "core/analysis/velocity/star_model.h"
#include "core/base/machine/cpus.h"
#include "core/products/synthetic_templates.h"
#include "cuda/loader/load_cuda_module.h"

namespace spexd::testing {
namespace {

struct ArmGrid {
  const char* name;
  WavelengthGrid grid;
};
const ArmGrid kArms[] = {{"B", {3600, 0.8, 2751}}, {"R", {5760, 0.8, 2326}}, {"Z", {7520, 0.8, 2881}}};

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Returns the stars' spectra in an arm, with S/N 3 to 30 per bin.
Spectra Observed(const TemplateLibrary& library, const WavelengthGrid& grid, int stars, unsigned seed) {
  const BinnedTemplates templates =
      BinnedTemplates::Make(library, grid.Values(), 1000, std::nullopt, {AvailableCpus()}).value();
  Spectra spectra;
  const int64_t bins = grid.count;
  spectra.flux.Assign({stars, bins});
  spectra.ivar.Assign({stars, bins});
  spectra.mask.Assign({stars, bins});
  spectra.resolution.Assign({stars, kResolutionDiagonals, bins});
  std::mt19937 of_stars(20261129), of_noise(seed);
  std::uniform_real_distribution<double> uniform;
  std::normal_distribution<double> normal;
  for (int i = 0; i < stars; ++i) {
    std::vector<double> x = {-300 + 600 * uniform(of_stars)};
    for (const std::vector<double>& axis : library.axes)
      x.push_back(axis.front() + (axis.back() - axis.front()) * uniform(of_stars));
    x.push_back(i % 5 == 0 ? std::pow(60 * uniform(of_stars), 2) : 0);
    const double snr = 3 * std::pow(10, uniform(of_stars)), sigma = 0.75 + 0.1 * uniform(of_stars);
    double sum = 0;
    for (int k = 0; k < kResolutionDiagonals; ++k) sum += std::exp(-0.5 * std::pow((k - 5) / sigma, 2));
    for (int k = 0; k < kResolutionDiagonals; ++k) {
      const double value = std::exp(-0.5 * std::pow((k - 5) / sigma, 2)) / sum;
      for (float& element : spectra.resolution.Row(i, k)) element = static_cast<float>(value);
    }
    const std::vector<double> light = EvaluateStarLight(library, templates, x);
    std::vector<double> seen(light.size());
    ResolutionMatrix(spectra.resolution, i).Multiply(light.data(), seen.data());
    for (int64_t j = 0; j < bins; ++j) {
      spectra.flux(i, j) = static_cast<float>(seen[static_cast<size_t>(j)] + normal(of_noise) / snr);
      spectra.ivar(i, j) = static_cast<float>(snr * snr);
    }
  }
  return spectra;
}

// Returns the number of evaluations of the models of all stars.
double EvaluationsOf(const std::vector<StarVelocity>& stars) {
  double evaluations = 0;
  for (const StarVelocity& star : stars) evaluations += star.evaluations;
  return evaluations;
}
double EvaluationsOf(const std::vector<LineRedshift>&) { return 0; }

// Prints the median time of the repeats of `fit`, and the evaluations per star. `begin` is not timed.
template <typename Begin, typename Fit>
bool Report(const char* what, int stars, int repeats, const Begin& begin, const Fit& fit) {
  std::vector<double> times;
  double evaluations = 0;
  for (int k = 0; k <= repeats; ++k) {
    begin();
    const auto start = std::chrono::steady_clock::now();
    const auto made = fit();
    if (k > 0 || repeats == 0) times.push_back(MillisecondsSince(start));
    if (!made.ok()) {
      std::printf("%s: %s\n", what, std::string(made.status().message()).c_str());
      return false;
    }
    evaluations = EvaluationsOf(*made) / stars;
  }
  std::ranges::sort(times);
  std::printf("%-32s %9.2f ms, %7.3f ms a star, %.0f evaluations a star\n", what, times[times.size() / 2],
              times[times.size() / 2] / stars, evaluations);
  return true;
}

std::vector<std::vector<int>> Targets(int stars) {
  std::vector<std::vector<int>> targets;
  for (int i = 0; i < stars; ++i) targets.push_back({i});
  return targets;
}

int Run(int stars, int repeats, int cpu_stars) {
  const TemplateLibrary library = MakeSyntheticTemplates({.threads = AvailableCpus()}).value();
  std::vector<Spectra> spectra;
  for (const ArmGrid& arm : kArms)
    spectra.push_back(Observed(library, arm.grid, std::max(stars, cpu_stars), 1 + spectra.size()));
  std::vector<UsableSpectra> arms;
  for (size_t a = 0; a < spectra.size(); ++a)
    arms.push_back(MakeUsable(kArms[a].name, spectra[a], kArms[a].grid.Values()).value());
  bool ok = true;
  const absl::StatusOr<std::unique_ptr<Analyser>> analyser = LoadCudaAnalyser({});
  if (!analyser.ok()) std::printf("no device: %s\n", std::string(analyser.status().message()).c_str());
  const int threads = std::min(AvailableCpus(), 8);
  for (size_t a = 0; analyser.ok() && a <= arms.size(); ++a) {
    const bool joint = a == arms.size();
    const std::vector<UsableSpectra> of = joint ? arms : std::vector<UsableSpectra>{arms[a]};
    const std::string what = std::string("device, ") + (joint ? "jointly," : kArms[a].name);
    const VelocityOptions options = {.threads = threads};
    std::unique_ptr<JointAnalysis> analysis;
    const auto begin = [&] { analysis = (*analyser)->BeginJoint(of); };
    const auto fit = [&] { return analysis->FitVelocities(Targets(stars), library, options); };
    ok &= Report((what + " from the host").c_str(), stars, repeats, begin, fit);
    ok &= Report((what + " resident").c_str(), stars, repeats, [] {}, fit);
    const auto find = [&] { return analysis->FindLineRedshifts(Targets(stars), {.threads = threads}); };
    ok &= Report((what + " redshifts").c_str(), stars, repeats, [] {}, find);
  }
  if (cpu_stars == 0) return ok ? 0 : 1;
  for (size_t a = 0; a <= arms.size(); ++a) {
    const bool joint = a == arms.size();
    const std::vector<UsableSpectra> of = joint ? arms : std::vector<UsableSpectra>{arms[a]};
    const std::string what = std::string("one processor, ") + (joint ? "jointly" : kArms[a].name);
    ok &= Report(
        what.c_str(), cpu_stars, 1, [] {},
        [&] { return FitVelocities(of, Targets(cpu_stars), library, {}); });
    ok &= Report((what + ", redshifts").c_str(), cpu_stars, 1, [] {},
                 [&] { return FindLineRedshifts(of, Targets(cpu_stars), {}); });
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace spexd::testing

int main(int argc, char** argv) {
  const auto argument = [&](int k, int otherwise) { return argc > k ? std::atoi(argv[k]) : otherwise; };
  return spexd::testing::Run(argument(1, 500), argument(2, 11), argument(3, 20));
}
