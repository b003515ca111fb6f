// Seconds for one bundle on one core, stage by stage beside the floor, and how threads scale.
//
//   bundle_bench --psf psf.fits --image preproc.fits      a real or simulated frame
//   bundle_bench                                          simulates one of 50 fibres
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/extract/cpu_engine.h"
#include "core/fits/readers.h"
#include "core/plan/grid_plan.h"
#include "core/simulate/simulator.h"
#include "tests/bench/floor.h"
#include "tests/bench/machine_peak.h"

namespace spexd::bench {
namespace {

struct Inputs {
  std::shared_ptr<const Psf> psf;
  std::shared_ptr<const Image> image;
};

absl::StatusOr<Inputs> ReadInputs(const std::string& psf_path, const std::string& image_path) {
  Inputs inputs;
  if (psf_path.empty() || image_path.empty()) {
    auto simulation = Simulate({.fibres = 50});
    if (!simulation.ok()) return simulation.status();
    auto image = std::make_shared<Image>();
    image->pixels = simulation->preproc.pixels;
    image->ivar = simulation->preproc.ivar;
    for (int64_t k = 0; k < image->pixels.size(); ++k) {
      if (IsUsable(image->pixels.flat()[k], image->ivar.flat()[k], simulation->preproc.mask.flat()[k]))
        continue;
      image->pixels.flat()[k] = image->ivar.flat()[k] = 0;
    }
    inputs.image = std::move(image);
    inputs.psf = std::make_shared<Psf>(std::move(simulation->psf));
    return inputs;
  }
  auto psf_source = Source::FromFile(psf_path);
  if (!psf_source.ok()) return psf_source.status();
  auto psf = ReadPsf(*psf_source);
  if (!psf.ok()) return psf.status();
  auto image_source = Source::FromFile(image_path);
  if (!image_source.ok()) return image_source.status();
  auto preproc = ReadPreproc(*image_source);
  if (!preproc.ok()) return preproc.status();
  inputs.psf = std::make_shared<Psf>(*std::move(psf));
  inputs.image = std::make_shared<Image>(std::move(preproc->image));
  return inputs;
}

struct Timing {
  double seconds = 0;
  StageTimes stages;
};

// The median of `repeats` runs over the fibres, after one to warm up.
absl::StatusOr<Timing> Time(Engine* engine, const Inputs& inputs, const WavelengthGrid& grid,
                            FibreRange fibres, int repeats) {
  auto prepared = engine->Prepare(inputs.psf, grid, 25);
  if (!prepared.ok()) return prepared.status();
  ExtractRequest request;
  request.prepared = *prepared;
  request.image = inputs.image;
  request.fibres = fibres;
  std::vector<Timing> runs;
  for (int repeat = 0; repeat <= repeats; ++repeat) {
    const absl::Time start = absl::Now();
    const auto stages = engine->Extract(request, [](BundleResult) { return absl::OkStatus(); });
    if (!stages.ok()) return stages.status();
    if (repeat > 0) runs.push_back({absl::ToDoubleSeconds(absl::Now() - start), *stages});
  }
  std::sort(runs.begin(), runs.end(), [](const Timing& a, const Timing& b) { return a.seconds < b.seconds; });
  return runs[runs.size() / 2];
}

void PrintStages(const Timing& timing, const std::array<Floor, kStageCount>& floor, double peak_flops,
                 double peak_bytes) {
  std::printf("| stage | ms | GFLOP | MB | floor ms | ratio |\n|---|---|---|---|---|---|\n");
  double total_floor = 0, total = 0;
  for (Stage stage : kAllStages) {
    const Floor& f = floor[static_cast<size_t>(stage)];
    const double least = std::max(f.flops / peak_flops, f.bytes / peak_bytes), seconds = timing.stages[stage];
    total_floor += least;
    total += seconds;
    std::printf("| %s | %.1f | %.3f | %.0f | %.1f | %.1f |\n", StageName(stage), 1e3 * seconds,
                1e-9 * f.flops, 1e-6 * f.bytes, 1e3 * least, seconds / least);
  }
  std::printf("| all | %.1f | | | %.1f | %.1f |\n", 1e3 * total, 1e3 * total_floor, total / total_floor);
}

absl::Status Run(const std::string& psf, const std::string& image, const std::string& wavelength, int bundle,
                 int repeats, const std::vector<int>& threads) {
  const auto grid = ParseWavelengthGrid(wavelength);
  if (!grid.ok()) return grid.status();
  const auto inputs = ReadInputs(psf, image);
  if (!inputs.ok()) return inputs.status();
  const FibreRange fibres = FibresOfBundle(bundle, 25, inputs->psf->fibres);
  if (fibres.empty()) return absl::InvalidArgumentError("no such bundle");
  const double peak_flops = PeakFlops(), peak_bytes = PeakBytes();

  const auto single = MakeCpuEngine({.threads = 1});
  const auto timing = Time(single.get(), *inputs, *grid, fibres, repeats);
  if (!timing.ok()) return timing.status();
  std::printf("Bundle %d, %d fibres x %d bins, %s; peaks of this core: %.1f GFLOP/s, %.1f GB/s\n\n", bundle,
              fibres.count, grid->count, single->Info().device.c_str(), 1e-9 * peak_flops, 1e-9 * peak_bytes);
  const int pad = PadBins(*inputs->psf, *grid);
  PrintStages(*timing,
              FloorOfBundle(*inputs->psf, MakeBundlePlan(*inputs->psf, Padded(*grid, pad), pad, fibres)),
              peak_flops, peak_bytes);
  std::printf("\n%.3f s a bundle on one core, median of %d\n\n", timing->seconds, repeats);

  const FibreRange all = {0, inputs->psf->fibres};
  double one = 0;
  std::printf("| threads | s for %d fibres | against one |\n|---|---|---|\n", all.count);
  for (int count : threads) {
    const auto engine = MakeCpuEngine({.threads = count});
    const auto frame = Time(engine.get(), *inputs, *grid, all, std::max(1, repeats / 3));
    if (!frame.ok()) return frame.status();
    if (count == 1) one = frame->seconds;
    // Against one thread only where that was measured.
    const std::string ratio = one > 0 ? absl::StrFormat("%.2f", one / frame->seconds) : "";
    std::printf("| %d | %.2f | %s |\n", count, frame->seconds, ratio.c_str());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace spexd::bench

int main(int argc, char** argv) {
  CLI::App app("Times the extraction of a bundle, stage by stage.");
  std::string psf, image, wavelength = "5760,7620,0.8";
  int bundle = 0, repeats = 5;
  std::vector<int> threads = {1, 2};
  app.add_option("--psf", psf, "PSF file; none: simulated");
  app.add_option("--image", image, "preproc file; none: simulated");
  app.add_option("-w,--wavelength", wavelength, "wmin,wmax,dw");
  app.add_option("--bundle", bundle, "bundle to time");
  app.add_option("--repeats", repeats, "runs to take the median of")->check(CLI::Range(1, 1000));
  app.add_option("--threads", threads, "thread counts for the whole frame");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = spexd::bench::Run(psf, image, wavelength, bundle, repeats, threads);
  if (!status.ok()) std::fprintf(stderr, "bundle_bench: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
