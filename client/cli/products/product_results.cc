#include "client/cli/products/product_results.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/base/median.h"
#include "core/base/threads/parallel.h"
#include "core/fits/writers.h"
#include "core/products/product_files.h"

namespace spexd::cli {
namespace {

using nlohmann::json;

// Returns the median over bins of the common sky, in electrons per Angstrom.
double SkyLevel(const Sky& sky) {
  std::vector<double> levels = sky.deconvolved;
  return Median(levels);
}

template <typename Results, typename IsGood>
int64_t CountGood(const Results& results, const IsGood& is_good) {
  return std::count_if(results.begin(), results.end(), is_good);
}

class ProductWriter {
 public:
  ProductWriter(const Frame& frame, const NamedProducts& made, int threads)
      : frame_(frame), made_(made), products_(made.products), threads_(threads) {}

  ProductResult Write(const std::string& name, const std::string& path) const {
    ProductResult result = {.name = name, .path = path, .what = {}, .numbers = {}, .made = {}, .written = {}};
    if (name == "sky") WriteSkyTo(&result);
    if (name == "sframe") WriteSframeTo(&result);
    if (name == "velocities") WriteVelocitiesTo(&result);
    if (name == "redshifts") WriteRedshiftsTo(&result);
    return result;
  }

 private:
  void WriteSkyTo(ProductResult* result) const {
    result->made = products_.sky.status();
    if (!result->made.ok()) return;
    const Sky& sky = *products_.sky;
    result->what = absl::StrCat("sky of ", sky.sky_fibres.size(), " fibres, ", sky.rejected,
                                " bins rejected in ", sky.rounds, " rounds");
    result->numbers = {{"fibres", sky.sky_fibres.size()},
                       {"rejected_bins", sky.rejected},
                       {"rounds", sky.rounds},
                       {"level", SkyLevel(sky)}};
    result->written = spexd::WriteSky(frame_, sky, result->path, threads_);
  }
  void WriteSframeTo(ProductResult* result) const {
    result->made = products_.sky.status();
    if (!result->made.ok()) return;
    result->what = "spectra without the sky";
    result->numbers = json::object();
    result->written = WriteFrame(SkySubtracted(frame_, *products_.sky), result->path, threads_);
  }
  void WriteVelocitiesTo(ProductResult* result) const {
    result->made = products_.velocities.status();
    if (!result->made.ok()) return;
    const auto good =
        CountGood(*products_.velocities, [](const StarVelocity& star) { return star.flag == 0; });
    result->what =
        absl::StrCat("velocities of ", products_.targets.size(), " targets, ", good, " without a warning");
    result->numbers = {{"targets", products_.targets.size()}, {"good", good}};
    result->written = spexd::WriteVelocities(frame_, products_.targets, *products_.velocities,
                                             made_.parameters, VelocityOptions(), result->path, threads_);
  }
  void WriteRedshiftsTo(ProductResult* result) const {
    result->made = products_.lines.status();
    if (!result->made.ok()) return;
    const auto accepted =
        CountGood(*products_.lines, [](const LineRedshift& line) { return line.warning == 0; });
    result->what =
        absl::StrCat("redshifts of ", products_.targets.size(), " targets, ", accepted, " accepted");
    result->numbers = {{"targets", products_.targets.size()}, {"accepted", accepted}};
    result->written = WriteLines(frame_, products_.targets, *products_.lines, result->path);
  }

  const Frame& frame_;
  const NamedProducts& made_;
  const FrameProducts& products_;
  const int threads_;
};

}  // namespace

std::vector<ProductResult> WriteProducts(const Frame& frame, const ProductPaths& paths,
                                         const NamedProducts& made, int threads) {
  const ProductWriter writer(frame, made, threads);
  const std::vector<std::pair<std::string, std::string>> named = paths.Named();
  std::vector<ProductResult> results(named.size());
  const int files = static_cast<int>(named.size());  // a thread for each, since they mostly wait for the disk
  const absl::Status status = ParallelFor(files, files, [&](int64_t k) {
    const auto& [name, path] = named[static_cast<size_t>(k)];
    results[static_cast<size_t>(k)] = writer.Write(name, path);
    return absl::OkStatus();
  });
  return status.ok() ? results : FailedProducts(paths, status);
}

std::vector<ProductResult> FailedProducts(const ProductPaths& paths, const absl::Status& error) {
  std::vector<ProductResult> results;
  for (const auto& [name, path] : paths.Named()) {
    results.push_back({.name = name, .path = path, .what = {}, .numbers = {}, .made = error, .written = {}});
  }
  return results;
}

absl::Status PrintProducts(const std::vector<ProductResult>& results, bool quiet) {
  absl::Status first;
  for (const ProductResult& result : results) {
    const absl::Status& error = result.error();
    if (error.ok()) {
      if (!quiet) std::printf("%s: %s\n", ForTerminal(result.path).c_str(), ForTerminal(result.what).c_str());
    } else if (first.ok()) {
      first = error;
    } else if (error != first) {
      std::fprintf(stderr, "spex: %s\n", ForTerminal(error.message()).c_str());
    }
  }
  return first;
}

bool AreSafe(const std::vector<ProductResult>& results) {
  return std::all_of(results.begin(), results.end(),
                     [](const ProductResult& result) { return result.written.ok(); });
}

}  // namespace spexd::cli
