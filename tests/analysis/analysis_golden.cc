#include "tests/analysis/analysis_golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/products/inputs/fiberflat.h"

namespace spexd::testing {
namespace {

// Returns the elements of a plain float32 or int32 image with any axes.
template <typename T>
std::vector<T> Elements(const FitsFile& file, const char* name) {
  const absl::string_view data = file.Get({name}).value()->data;
  std::vector<T> values(data.size() / sizeof(T));
  for (size_t k = 0; k < values.size(); ++k) {
    uint32_t bits = 0;
    for (size_t b = 0; b < sizeof bits; ++b)
      bits = bits << 8 | static_cast<uint8_t>(data[k * sizeof bits + b]);
    std::memcpy(&values[k], &bits, sizeof bits);
  }
  return values;
}

// Returns the rows [first, first + rows) of a file's spectra.
Spectra SpectraOf(const FitsFile& file, const char* prefix, int64_t first, int64_t rows) {
  const auto hdu = [&](const char* name) { return absl::StrCat(prefix, name); };
  const int64_t bins = file.Get({hdu("FLUX")}).value()->axes[0];
  Spectra spectra;
  const int64_t values = rows * bins, resolution = values * kResolutionDiagonals;
  const auto flux = Elements<float>(file, hdu("FLUX").c_str()),
             ivar = Elements<float>(file, hdu("IVAR").c_str()),
             r = Elements<float>(file, hdu(*prefix == 0 ? "RESOLUTION" : "RES").c_str());
  const auto mask = Elements<uint32_t>(file, hdu("MASK").c_str());
  spectra.flux.AssignFrom({rows, bins}, flux.data() + first * bins);
  spectra.ivar.AssignFrom({rows, bins}, ivar.data() + first * bins);
  spectra.mask.AssignFrom({rows, bins}, mask.data() + first * bins);
  spectra.chi2pix.Assign({rows, bins});
  spectra.resolution.AssignFrom({rows, kResolutionDiagonals, bins},
                                r.data() + first * bins * kResolutionDiagonals);
  EXPECT_LE(values, static_cast<int64_t>(flux.size()));
  EXPECT_LE(resolution, static_cast<int64_t>(r.size()));
  return spectra;
}

}  // namespace

Source OpenGolden(const std::string& folder, const std::string& file) {
  return Source::FromFile(folder + "/analysis/" + file).value();
}

GoldenFrame ReadGoldenFrame(const std::string& folder) {
  GoldenFrame golden;
  golden.frame = ReadFrame(OpenGolden(folder, "frame.fits")).value();
  const std::vector<std::string> types = TextColumn(*golden.frame.origin.fibermap, "OBJTYPE").value();
  for (size_t row = 0; row < types.size(); ++row) {
    (types[row] == "SKY" ? golden.sky_fibres : golden.targets).push_back(static_cast<int>(row));
  }
  golden.spectra = MakeUsable(golden.frame).value();
  const absl::Status flat = ApplyFiberflat(ReadFiberflat(OpenGolden(folder, "fiberflat.fits")).value(),
                                           golden.frame, &golden.spectra);
  EXPECT_TRUE(flat.ok()) << flat;
  return golden;
}

Array<double, 2> GoldenImage(const std::string& folder, const std::string& file, const std::string& hdu) {
  return ReadImageHduDouble(OpenGolden(folder, file), hdu).value();
}

std::vector<double> GoldenColumn(const std::string& folder, const std::string& file, const std::string& hdu,
                                 const std::string& column) {
  return NumberColumn(ReadTableHdu(OpenGolden(folder, file), hdu).value(), column).value();
}

void ExpectGoldenVelocities(const std::string& folder, const std::vector<StarVelocity>& stars,
                            const VelocityTolerances& tolerances) {
  const auto column = [&](const char* name) {
    return GoldenColumn(folder, "golden-products.fits", "VELOCITY", name);
  };
  const std::vector<double> v = column("v"), error = column("verr"), conditional = column("verr_cond"),
                            vsini = column("vsini"), chi2 = column("chi2"), bins = column("nbin"),
                            dchi2 = column("dchi2"), flag = column("flag");
  ASSERT_EQ(stars.size(), v.size());
  int unflagged = 0, evaluations = 0;
  double most = 0, max_chi2 = 0;
  for (size_t k = 0; k < stars.size(); ++k) {
    SCOPED_TRACE(k);
    const StarVelocity& star = stars[k];
    evaluations += star.evaluations;
    EXPECT_EQ(star.bins, bins[k]);
    if (std::abs(dchi2[k] - 9) > 1) {
      EXPECT_EQ((star.flag & kVelocityAmbiguous) != 0, (static_cast<int>(flag[k]) & 2) != 0);
    }
    if (flag[k] != 0) continue;
    ++unflagged;
    most = std::max(most, std::abs(star.v - v[k]) / error[k]);
    max_chi2 = std::max(max_chi2, std::abs(star.chi2 - chi2[k]));
    EXPECT_LT(std::abs(star.v - v[k]), tolerances.velocity * error[k]);
    EXPECT_LT(star.chi2, chi2[k] + tolerances.chi2);
    if ((star.vsini > 0) != (vsini[k] > 0)) continue;
    EXPECT_NEAR(star.error, error[k], tolerances.error * error[k]);
    EXPECT_NEAR(star.conditional_error, conditional[k], tolerances.conditional_error * conditional[k]);
  }
  EXPECT_GE(unflagged, 13);
  std::printf(
      "  %d of %zu stars without a flag: velocities within %.2g errors, chi-square within %.2g, %.0f "
      "evaluations a star\n",
      unflagged, stars.size(), most, max_chi2, 1.0 * evaluations / static_cast<double>(stars.size()));
}

GoldenCoadd ReadGoldenCoadd(const std::string& folder) {
  GoldenCoadd golden;
  const FitsFile input = FitsFile::Parse(OpenGolden(folder, "coadd-input.fits")).value(),
                 products = FitsFile::Parse(OpenGolden(folder, "golden-products.fits")).value();
  const auto& axes = input.Get({"FLUX"}).value()->axes;
  const int64_t exposures = axes[1], targets = axes[2];
  for (int64_t t = 0; t < targets; ++t)
    golden.targets.push_back(SpectraOf(input, "", t * exposures, exposures));
  golden.coadds = SpectraOf(products, "COADD", 0, targets);
  return golden;
}

}  // namespace spexd::testing
