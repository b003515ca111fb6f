#include "core/products/inputs/fiberflat.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/images/image_hdu.h"
#include "core/products/inputs/input_outline.h"

namespace spexd {
namespace {

constexpr int64_t kSpectrographFibres = 500;

absl::StatusOr<std::vector<double>> ReadWave(const Hdu& hdu) {
  SPEXD_ASSIGN_OR_RETURN(const auto values, (ReadImage<double, 2>(hdu)));
  std::vector<double> wave(values.flat().begin(), values.flat().end());
  // The comparison is written so that NaN fails.
  for (size_t k = 0; k < wave.size(); ++k) {
    if (!(std::isfinite(wave[k]) && (k == 0 || wave[k] > wave[k - 1])))
      return hdu.Error(
          absl::StrFormat("wavelength %d is %g: they must be finite and increasing", k, wave[k]));
  }
  return wave;
}

absl::StatusOr<std::vector<int64_t>> ReadFibres(const Hdu* fibermap, int64_t rows) {
  std::vector<int64_t> fibres(static_cast<size_t>(rows));
  std::iota(fibres.begin(), fibres.end(), int64_t{0});
  if (fibermap == nullptr) return fibres;
  SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(*fibermap));
  const Column* const column = view.Find("FIBER");
  if (column == nullptr) return fibres;
  std::unordered_map<int64_t, int64_t> seen;
  for (int64_t row = 0; row < rows; ++row) {
    SPEXD_ASSIGN_OR_RETURN(fibres[static_cast<size_t>(row)], view.Integer(row, *column));
    const auto [before, fresh] = seen.emplace(fibres[static_cast<size_t>(row)], row);
    if (!fresh)
      return fibermap->Error(absl::StrFormat("rows %d and %d both have FIBER %d, must be different fibres",
                                             before->second, row, before->first));
  }
  return fibres;
}

bool IsUsableFlat(double value) { return value > 0 && std::isfinite(value); }

absl::Status Error(const Fiberflat& fiberflat, const std::string& text) {
  return absl::InvalidArgumentError(
      absl::StrCat("fiberflat", fiberflat.name.empty() ? "" : " ", fiberflat.name, ": ", text));
}

// A list such as "15, 16, 17"; only the first numbers of a long one.
std::string Listed(const std::vector<int64_t>& numbers) {
  constexpr size_t kMax = 10;
  const auto first = absl::MakeConstSpan(numbers).subspan(0, kMax);
  return absl::StrCat(absl::StrJoin(first, ", "),
                      numbers.size() > kMax ? absl::StrFormat(", ... (%d in all)", numbers.size()) : "");
}

absl::StatusOr<std::vector<int64_t>> FibresOf(const Frame& frame) {
  if (frame.origin.fibermap.has_value() && HasColumn(*frame.origin.fibermap, "FIBER"))
    return IntegerColumn(*frame.origin.fibermap, "FIBER");
  std::vector<int64_t> fibres(static_cast<size_t>(frame.spectra.flux.shape(0)));
  std::iota(fibres.begin(), fibres.end(), int64_t{frame.fibres.first});
  return fibres;
}

// The number to subtract from a FIBER to get its number in the fiberflat.
int64_t FirstFibre(const Fiberflat& fiberflat, const std::vector<int64_t>& fibres, const Frame& frame) {
  const auto [low, high] = std::minmax_element(fibres.begin(), fibres.end());
  const int64_t spectrograph = *low / kSpectrographFibres;
  const auto counted = [](int64_t fibre) { return fibre >= 0 && fibre < kSpectrographFibres; };
  if (*low < 0 || *high / kSpectrographFibres != spectrograph ||
      !std::all_of(fiberflat.fibres.begin(), fiberflat.fibres.end(), counted))
    return 0;
  const std::string camera = FindString(frame.origin.image_cards, "CAMERA").value_or("");
  const bool another = !camera.empty() && !fiberflat.camera.empty() && camera != fiberflat.camera;
  return another ? 0 : spectrograph * kSpectrographFibres;
}

// The fiberflat's row of each spectrum.
absl::StatusOr<std::vector<int64_t>> RowsOf(const Fiberflat& fiberflat, const Frame& frame) {
  const int64_t spectra = frame.spectra.flux.shape(0), rows = fiberflat.values.shape(0);
  if (fiberflat.fibres.empty()) {
    if (rows != spectra)
      return Error(fiberflat,
                   absl::StrFormat("has %d rows, must have one for each of the %d fibres", rows, spectra));
    std::vector<int64_t> same(static_cast<size_t>(rows));
    std::iota(same.begin(), same.end(), int64_t{0});
    return same;
  }
  SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> fibres, FibresOf(frame));
  if (static_cast<int64_t>(fibres.size()) != spectra || fibres.empty())
    return Error(fiberflat,
                 absl::StrFormat("the frame's FIBERMAP has %d rows for %d spectra", fibres.size(), spectra));
  std::unordered_map<int64_t, int64_t> row_of;
  for (int64_t row = 0; row < rows; ++row) row_of[fiberflat.fibres[static_cast<size_t>(row)]] = row;
  const int64_t first = FirstFibre(fiberflat, fibres, frame);
  std::vector<int64_t> found, missing;
  for (const int64_t fibre : fibres) {
    const auto at = row_of.find(fibre - first);
    if (at == row_of.end()) {
      missing.push_back(fibre);
    } else {
      found.push_back(at->second);
    }
  }
  if (missing.empty()) return found;
  const auto [low, high] = std::minmax_element(fiberflat.fibres.begin(), fiberflat.fibres.end());
  return Error(fiberflat, absl::StrFormat(
                              "has no row for FIBER %s of the frame; its rows are FIBER %d to %d. Choose the "
                              "fiberflat of these fibres, or extract only fibres that it has (-s, -n)",
                              Listed(missing), *low, *high));
}

absl::Status CheckWave(const Fiberflat& fiberflat, const WavelengthGrid& grid) {
  const int64_t bins = fiberflat.values.shape(1);
  if (fiberflat.wave.empty()) {
    if (bins == grid.count) return absl::OkStatus();
    return Error(fiberflat,
                 absl::StrFormat("has %d wavelengths, must have the %d of the frame, %g to %g Angstrom", bins,
                                 grid.count, grid.first, grid.last()));
  }
  // The comparison of numpy's allclose with its defaults.
  const auto close = [](double a, double b) { return std::abs(a - b) <= 1e-8 + 1e-5 * std::abs(b); };
  bool same = bins == grid.count;
  for (int64_t j = 0; same && j < bins; ++j)
    same = close(grid.Wave(j), fiberflat.wave[static_cast<size_t>(j)]);
  if (same) return absl::OkStatus();
  return Error(fiberflat,
               absl::StrFormat(
                   "its WAVELENGTH is %g to %g Angstrom in %d bins, that of the frame %g to %g in %d. "
                   "Choose a fiberflat on the frame's grid, or extract the frame on that of the "
                   "fiberflat (-w)",
                   fiberflat.wave.front(), fiberflat.wave.back(), bins, grid.first, grid.last(), grid.count));
}

// One row of a fiberflat at the bins of a frame.
class FlatRow {
 public:
  // `factor`: barycentric wavelengths are those on the detector times this.
  FlatRow(const Fiberflat& fiberflat, const std::vector<double>& wave, double factor)
      : fiberflat_(fiberflat),
        wave_(fiberflat.wave.empty() ? wave : fiberflat.wave),
        factor_(factor),
        values_(wave.size()),
        ivar_(wave.size()) {}

  void Take(int64_t row) {
    const auto values = fiberflat_.values.Row(row);
    std::vector<size_t> usable;
    for (size_t j = 0; j < values_.size(); ++j) {
      const float ivar = fiberflat_.ivar.size() == 0 ? std::numeric_limits<float>::infinity()
                                                     : fiberflat_.ivar(row, static_cast<int64_t>(j));
      ivar_[j] = IsUsableFlat(values[j]) && ivar > 0 ? ivar : 0;
      values_[j] = values[j];
      if (ivar_[j] > 0) usable.push_back(j);
    }
    if (factor_ != 1) Interpolate(values, usable);
  }
  double value(size_t j) const { return values_[j]; }
  double ivar(size_t j) const { return ivar_[j]; }  // 0 if there is no value

 private:
  // Interpolates linearly between usable bins, and constantly beyond them. The wavelengths move by less than
  // a bin or so, so errors are not moved, as in desispec.
  void Interpolate(absl::Span<const double> values, const std::vector<size_t>& usable) {
    size_t next = 0;  // position in `usable` of the first bin above the wavelength
    for (size_t j = 0; j < values_.size() && !usable.empty(); ++j) {
      const double wave = wave_[j] / factor_;
      while (next < usable.size() && wave_[usable[next]] <= wave) ++next;
      if (next == 0 || next == usable.size()) {
        values_[j] = values[next == 0 ? usable.front() : usable.back()];
        continue;
      }
      const size_t below = usable[next - 1], above = usable[next];
      const double part = (wave - wave_[below]) / (wave_[above] - wave_[below]);
      values_[j] = values[below] + part * (values[above] - values[below]);
    }
  }

  const Fiberflat& fiberflat_;
  const std::vector<double>& wave_;
  const double factor_;
  std::vector<double> values_, ivar_;
};

}  // namespace

int64_t Fiberflat::bytes() const {
  return values.size() * static_cast<int64_t>(sizeof(double)) +
         ivar.size() * static_cast<int64_t>(sizeof(float)) +
         static_cast<int64_t>(wave.size() * sizeof(double) + fibres.size() * sizeof(int64_t));
}

absl::StatusOr<Fiberflat> ReadFiberflat(const Source& source, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* const hdu, file.Get({"FIBERFLAT"}));
  SPEXD_RETURN_IF_ERROR(FiberflatOutline(file, stop).status());
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(*hdu));
  SPEXD_RETURN_IF_ERROR(
      hdu->TakeMemory(layout.axes[0] * kBytesOfFiberflatBin + layout.axes[1] * kBytesOfFiberflatRow));
  Fiberflat flat;
  SPEXD_ASSIGN_OR_RETURN(flat.values, (ReadImage<double, 2>(*hdu, {.stop = stop})));
  if (const Hdu* const ivar = file.Find({"IVAR"})) {
    SPEXD_ASSIGN_OR_RETURN(flat.ivar, (ReadImage<float, 2>(*ivar, {.stop = stop})));
  } else {
    SPEXD_RETURN_IF_ERROR(hdu->TakeMemory(layout.pixels * static_cast<int64_t>(sizeof(float))));
    flat.ivar.Assign(flat.values.shape(), std::numeric_limits<float>::infinity());
  }
  Array<uint32_t, 2> mask;
  if (const Hdu* const hdu_mask = file.Find({"MASK"})) {
    SPEXD_ASSIGN_OR_RETURN(mask, (ReadImage<uint32_t, 2>(*hdu_mask, {.stop = stop})));
  }
  for (int64_t k = 0; k < flat.values.size(); ++k) {
    float& ivar = flat.ivar.flat()[k];
    const bool masked = mask.size() > 0 && mask.flat()[k] != 0;
    if (masked || !(ivar > 0) || !IsUsableFlat(flat.values.flat()[k])) ivar = 0;
  }
  if (const Hdu* const wave = file.Find({"WAVELENGTH"})) {
    SPEXD_ASSIGN_OR_RETURN(flat.wave, ReadWave(*wave));
  }
  SPEXD_ASSIGN_OR_RETURN(flat.fibres, ReadFibres(file.Find({"FIBERMAP"}), layout.axes[1]));
  flat.camera = hdu->String("CAMERA").value_or("");
  return flat;
}

absl::Status ApplyFiberflat(const Fiberflat& fiberflat, const Frame& frame, UsableSpectra* spectra) {
  SPEXD_RETURN_IF_ERROR(CheckWave(fiberflat, frame.grid));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> rows, RowsOf(fiberflat, frame));
  spectra->changed = true;
  FlatRow flat(fiberflat, spectra->wave, frame.origin.heliocentric_factor.value_or(1));
  for (int64_t i = 0; i < spectra->fibres(); ++i) {
    flat.Take(rows[static_cast<size_t>(i)]);
    for (int64_t j = 0; j < spectra->bins(); ++j) {
      double &flux = spectra->flux(i, j), &ivar = spectra->ivar(i, j);
      const double value = flat.value(static_cast<size_t>(j)), own = flat.ivar(static_cast<size_t>(j));
      const double square = value * value;
      const double divided = flux / value,
                   divided_ivar = ivar * square / (1 + ivar * flux * flux / (own * square));
      if (own > 0 && std::isfinite(divided) && std::isfinite(divided_ivar)) {
        flux = divided;
        ivar = divided_ivar;
      } else {
        flux = ivar = 0;
        spectra->mask(i, j) |= kMaskBadFiberflat;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace spexd
