#include "tests/analysis/joint/made_up_spectra.h"

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

}  // namespace spexd::testing
