#include "tests/analysis/joint/made_up_spectra.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/types/span.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"

namespace spexd::testing {

RawTable TableOf(const NumberTable& table, const std::string& name) {
  FitsBuilder fits(0);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  table.Write(name.c_str(), &fits);
  return ReadTableHdu(Source::FromBytes("table.fits", fits.Bytes().value()).value(), name).value();
}

SpectraArm ArmOf(const std::string& name, double first, int rows, int bins) {
  SpectraArm arm{name, {first, 0.8, bins}, {}};
  arm.spectra.flux.Assign({rows, bins}, 2);
  arm.spectra.ivar.Assign({rows, bins}, 4);
  arm.spectra.mask.Assign({rows, bins});
  arm.spectra.resolution.Assign({rows, kResolutionDiagonals, bins});
  for (int row = 0; row < rows; ++row)
    for (int bin = 0; bin < bins; ++bin) arm.spectra.resolution(row, kResolutionHalfWidth, bin) = 1;
  return arm;
}

TargetSpectra SpectraOf(const std::vector<int64_t>& targets) {
  const int rows = static_cast<int>(targets.size());
  TargetSpectra spectra;
  spectra.name = "coadd-made-up.fits";
  spectra.arms = {ArmOf("B", 4500, rows, 100), ArmOf("R", 6000, rows, 100), ArmOf("Z", 8500, rows, 100)};
  NumberTable fibermap(rows);
  fibermap.Add("TARGETID", targets);
  spectra.fibermap = TableOf(fibermap, "FIBERMAP");
  return spectra;
}

std::string FileOf(const TargetSpectra& spectra, const std::vector<std::string>& without) {
  FitsBuilder fits(0);
  const auto has = [&without](const std::string& hdu) {
    return std::find(without.begin(), without.end(), hdu) == without.end();
  };
  const auto image = [&](const std::string& hdu, int bitpix, const auto& values) {
    if (!has(hdu)) return;
    fits.BeginImage(hdu, bitpix, {values.shape().begin(), values.shape().end()});
    fits.Pixels(absl::MakeConstSpan(values.data(), static_cast<size_t>(values.size())));
  };
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  fits.Cards(spectra.cards);
  if (has("FIBERMAP")) fits.AddRawTable(spectra.fibermap);
  for (const SpectraArm& arm : spectra.arms) {
    if (has(arm.name + "_WAVELENGTH")) {
      const std::vector<double> wave = arm.grid.Values();
      fits.BeginImage(arm.name + "_WAVELENGTH", DOUBLE_IMG, {arm.grid.count});
      fits.Pixels(absl::MakeConstSpan(wave));
    }
    image(arm.name + "_FLUX", FLOAT_IMG, arm.spectra.flux);
    image(arm.name + "_IVAR", FLOAT_IMG, arm.spectra.ivar);
    image(arm.name + "_MASK", ULONG_IMG, arm.spectra.mask);
    image(arm.name + "_RESOLUTION", FLOAT_IMG, arm.spectra.resolution);
  }
  if (spectra.scores.has_value()) fits.AddRawTable(*spectra.scores);
  if (spectra.exposures.has_value()) fits.AddRawTable(*spectra.exposures);
  return fits.Bytes().value();
}

TargetSpectra HalvesOf(const Frame& frame) {
  const Spectra& from = frame.spectra;
  const int rows = static_cast<int>(from.flux.shape(0)), bins = frame.grid.count / 2;
  std::vector<int64_t> targets(static_cast<size_t>(rows));
  std::iota(targets.begin(), targets.end(), int64_t{100});
  TargetSpectra spectra = SpectraOf(targets);
  spectra.arms.clear();
  for (const char* const name : {"B", "R"}) {
    const int first = spectra.arms.empty() ? 0 : bins;
    SpectraArm arm = ArmOf(name, frame.grid.Wave(first), rows, bins);
    arm.grid.step = frame.grid.step;
    for (int row = 0; row < rows; ++row) {
      std::copy_n(&from.flux(row, first), bins, &arm.spectra.flux(row, 0));
      std::copy_n(&from.ivar(row, first), bins, &arm.spectra.ivar(row, 0));
      for (int k = 0; k < kResolutionDiagonals; ++k)
        std::copy_n(&from.resolution(row, k, first), bins, &arm.spectra.resolution(row, k, 0));
    }
    spectra.arms.push_back(std::move(arm));
  }
  return spectra;
}

}  // namespace spexd::testing
