#include "core/products/sky_pca.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/analysis/one_blas_thread.h"
#include "core/analysis/sky/sky.h"
#include "core/analysis/usable_spectra.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/output_file.h"
#include "core/products/analyse.h"
#include "core/products/number_table.h"
#include "core/products/same_grid.h"

namespace spexd {
namespace {

struct SkyResiduals {
  Array<double, 2> flux, ivar;  // [sky fibre, bin]
};

absl::StatusOr<SkyResiduals> ResidualsOf(const Frame& frame, const SkyPcaSums::Residuals& how) {
  SPEXD_ASSIGN_OR_RETURN(const FibreKinds kinds, FibreKindsOf(frame));
  SPEXD_ASSIGN_OR_RETURN(UsableSpectra spectra, MakeUsable(frame));
  if (how.fiberflat.has_value()) SPEXD_RETURN_IF_ERROR(ApplyFiberflat(*how.fiberflat, frame, &spectra));
  SPEXD_ASSIGN_OR_RETURN(const Sky sky, FitSky(spectra, kinds.good_sky, {.threads = how.threads}));
  const int64_t bins = spectra.bins();
  SkyResiduals residuals;
  residuals.flux.Assign({static_cast<int64_t>(sky.sky_fibres.size()), bins});
  residuals.ivar.Assign(residuals.flux.shape());
  for (int64_t k = 0; k < residuals.flux.shape(0); ++k) {
    const int64_t row = sky.sky_fibres[static_cast<size_t>(k)];
    for (int64_t j = 0; j < bins; ++j) {
      const double ivar = spectra.ivar(row, j), of_model = sky.statistical_ivar(row, j);
      // The sky was fitted to these fibres, so their residuals are smaller than their errors by what the fit
      // took up.
      const bool good = ivar > 0 && of_model > ivar && (sky.mask(row, j) & kMaskBadSky) == 0;
      residuals.flux(k, j) = good ? spectra.flux(row, j) - sky.model(row, j) : 0;
      residuals.ivar(k, j) = good ? 1 / (1 / ivar - 1 / of_model) : 0;
    }
  }
  return residuals;
}

// The rms of each component over the spectra.
std::vector<double> AmplitudesOf(const Array<float, 2>& snapshots, const PrincipalComponents& components) {
  const int64_t spectra = snapshots.shape(0), bins = components.vectors.shape(1);
  std::vector<double> amplitudes;
  for (int64_t k = 0; k < components.vectors.shape(0); ++k) {
    double squares = 0;
    for (int64_t i = 0; i < spectra; ++i) {
      double amplitude = 0;
      for (int64_t j = 0; j < bins; ++j)
        amplitude += (snapshots(i, j) - components.mean[j]) * components.vectors(k, j);
      squares += amplitude * amplitude;
    }
    amplitudes.push_back(spectra > 0 ? std::sqrt(squares / static_cast<double>(spectra))
                                     : std::numeric_limits<double>::quiet_NaN());
  }
  return amplitudes;
}

}  // namespace

absl::Status SkyPcaSums::Add(const Frame& frame, const std::string& name, const Residuals& how) {
  if (sums_.has_value()) SPEXD_RETURN_IF_ERROR(CheckSameGrid(name, frame.grid, grid_));
  const absl::StatusOr<SkyResiduals> residuals = ResidualsOf(frame, how);
  if (!residuals.ok()) {
    return absl::Status(residuals.status().code(), absl::StrCat(name, ": ", residuals.status().message()));
  }
  if (!sums_.has_value()) {
    grid_ = frame.grid;
    sums_.emplace(grid_.count, options_);
  }
  const OneBlasThread one_thread;
  SPEXD_RETURN_IF_ERROR(sums_->Add(residuals->flux, residuals->ivar).status());
  const Array<double, 2> snapshots = SnapshotsOf(residuals->flux, residuals->ivar, options_.clip);
  Kept& kept = series_.emplace_back(Kept{name, Array<float, 2>(snapshots.shape())});
  std::copy(snapshots.flat().begin(), snapshots.flat().end(), kept.snapshots.flat().begin());
  return absl::OkStatus();
}

absl::StatusOr<SkyPca> SkyPcaSums::Solve(int count) const {
  if (!sums_.has_value()) return absl::InvalidArgumentError("components: there are no frames");
  const OneBlasThread one_thread;
  SkyPca pca;
  pca.grid = grid_;
  pca.options = options_;
  SPEXD_ASSIGN_OR_RETURN(pca.components, sums_->Solve(count));
  std::vector<int64_t> spectra;
  for (const Kept& kept : series_) {
    spectra.push_back(kept.snapshots.shape(0));
    pca.frames.push_back({kept.name, spectra.back(), AmplitudesOf(kept.snapshots, pca.components)});
  }
  pca.noise_edge = LargestNoiseVariance(grid_.count, spectra, options_.forget);
  return pca;
}

absl::Status WriteSkyPca(const SkyPca& pca, const std::string& path) {
  const int64_t count = pca.components.vectors.shape(0), bins = pca.grid.count;
  const auto frames = static_cast<int64_t>(pca.frames.size());
  FitsBuilder fits(8 * (count + 2) * bins + 8 * (count + 1) * frames + (1 << 20));
  fits.BeginImage("EIGENVECTORS", DOUBLE_IMG, {count, bins});
  fits.Text("BUNIT", "sigma", "of length 1, in residuals over their errors");
  fits.Number("NSPECTRA", pca.components.snapshots, "weight of the sky spectra in the sums");
  fits.Number("NOISEVAR", pca.noise_edge, "largest variance of noise alone");
  fits.Number("FORGET", pca.options.forget, "factor of the sums for each frame");
  fits.Number("CLIP", pca.options.clip, "residuals are clipped here, sigma");
  for (int64_t f = 0; f < frames; ++f) {
    const std::string name = std::filesystem::path(pca.frames[static_cast<size_t>(f)].name).filename();
    fits.Text(absl::StrCat("FRAM", f).c_str(), name, "");
  }
  fits.Pixels(absl::MakeConstSpan(pca.components.vectors.flat()));
  fits.BeginImage("MEAN", DOUBLE_IMG, {bins});
  fits.Pixels(absl::MakeConstSpan(pca.components.mean));
  fits.BeginImage("WAVELENGTH", DOUBLE_IMG, {bins});
  fits.Text("BUNIT", "Angstrom", "vacuum");
  fits.Pixels(absl::MakeConstSpan(pca.grid.Values()));
  Array<double, 2> amplitudes({frames, count});
  std::vector<int64_t> spectra;
  for (int64_t f = 0; f < frames; ++f) {
    const SkyPca::FrameSeries& series = pca.frames[static_cast<size_t>(f)];
    std::copy(series.amplitudes.begin(), series.amplitudes.end(), amplitudes.Row(f).begin());
    spectra.push_back(series.spectra);
  }
  fits.BeginImage("AMPLITUDE", DOUBLE_IMG, {frames, count});
  fits.Text("BUNIT", "sigma", "rms over the sky spectra of a frame");
  fits.Pixels(absl::MakeConstSpan(amplitudes.flat()));
  NumberTable components(count);
  components.Add("VARIANCE", pca.components.values);
  components.Write("COMPONENTS", &fits);
  NumberTable table(frames);
  table.Add("SPECTRA", spectra);
  table.Write("FRAMES", &fits);
  SPEXD_ASSIGN_OR_RETURN(const std::string bytes, fits.Bytes());
  return WriteFileAtomically(path, bytes);
}

}  // namespace spexd
