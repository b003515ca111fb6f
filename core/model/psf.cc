#include "core/model/psf.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

absl::Status CheckRange(const char* name, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("PSF: %s is %d, must be %d to %d", name, value, least, most));
}

absl::Status CheckTable(const char* name, const LegendreTable& table, int fibres) {
  if (table.coeff.shape(0) != fibres) {
    return absl::InvalidArgumentError(
        absl::StrFormat("PSF: %s has %d fibres, the PSF %d", name, table.coeff.shape(0), fibres));
  }
  const int64_t coefficients = table.coeff.shape(1);
  if (coefficients < 1 || coefficients > kMaxLegendreCoefficients) {
    return absl::InvalidArgumentError(absl::StrFormat("PSF: %s has %d coefficients, must be 1 to %d", name,
                                                      coefficients, kMaxLegendreCoefficients));
  }
  if (!IsDomain(table.wave_min, table.wave_max)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("PSF: %s has WAVEMIN %g, WAVEMAX %g; both must be within %g Angstrom either way and "
                        "WAVEMIN the lesser",
                        name, table.wave_min, table.wave_max, kMaxWavelength));
  }
  for (int i = 0; i < fibres; ++i) {
    for (double c : table.coeff.Row(i)) {
      if (!std::isfinite(c)) {
        return absl::InvalidArgumentError(
            absl::StrFormat("PSF: %s has a coefficient that is not finite in row %d", name, i));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string NameOf(const GaussHermiteTerm& term) {
  return absl::StrFormat("GH-%d-%d", term.degree_x, term.degree_y);
}

bool IsDomain(double wave_min, double wave_max) {
  return wave_min < wave_max && wave_min >= -kMaxWavelength && wave_max <= kMaxWavelength;
}

// The same operations as EvaluateMany, for one wavelength.
double Evaluate(const LegendreTable& table, int fibre, double wave) {
  const absl::Span<const double> c = table.coeff.Row(fibre);
  const double t = 2 * (wave - table.wave_min) / (table.wave_max - table.wave_min) - 1;
  double b1 = 0, b2 = 0;
  for (int k = static_cast<int>(c.size()) - 1; k > 0; --k) {
    const double rise = (2.0 * k + 1) / (k + 1), fall = (k + 1.0) / (k + 2);
    const double b0 = c[k] + rise * t * b1 - fall * b2;
    b2 = b1;
    b1 = b0;
  }
  return c[0] + t * b1 - 0.5 * b2;
}

void EvaluateMany(const LegendreTable& table, int fibre, absl::Span<const double> wave,
                  absl::Span<double> out) {
  constexpr size_t kBlock = 64;  // the recurrences of a block run side by side
  const absl::Span<const double> c = table.coeff.Row(fibre);
  const double width = table.wave_max - table.wave_min;
  for (size_t begin = 0; begin < wave.size(); begin += kBlock) {
    const size_t count = std::min(kBlock, wave.size() - begin);
    double t[kBlock] = {}, b1[kBlock] = {}, b2[kBlock] = {};
    for (size_t i = 0; i < count; ++i) t[i] = 2 * (wave[begin + i] - table.wave_min) / width - 1;
    for (int k = static_cast<int>(c.size()) - 1; k > 0; --k) {
      const double rise = (2.0 * k + 1) / (k + 1), fall = (k + 1.0) / (k + 2), coefficient = c[k];
      for (size_t i = 0; i < kBlock; ++i) {
        const double b0 = coefficient + rise * t[i] * b1[i] - fall * b2[i];
        b2[i] = b1[i];
        b1[i] = b0;
      }
    }
    for (size_t i = 0; i < count; ++i) out[begin + i] = c[0] + t[i] * b1[i] - 0.5 * b2[i];
  }
}

int64_t PsfBytes(const Psf& psf) {
  int64_t values = 0;
  for (const LegendreTable* table : {&psf.x, &psf.y, &psf.sigma_x, &psf.sigma_y, &psf.tail_amplitude,
                                     &psf.tail_core, &psf.tail_index, &psf.tail_scale_x, &psf.tail_scale_y}) {
    values += table->coeff.size();
  }
  for (const GaussHermiteTerm& term : psf.terms) {
    values += term.amplitude.empty() ? psf.sigma_x.coeff.size() : term.amplitude.coeff.size();
  }
  return static_cast<int64_t>(sizeof(Psf)) + values * static_cast<int64_t>(sizeof(double));
}

absl::Status CheckPsfOutline(const Psf& psf) {
  SPEXD_RETURN_IF_ERROR(CheckRange("NPIX_Y", psf.rows, 1, kMaxCcdSide));
  SPEXD_RETURN_IF_ERROR(CheckRange("NPIX_X", psf.columns, 1, kMaxCcdSide));
  SPEXD_RETURN_IF_ERROR(CheckRange("the number of fibres", psf.fibres, 1, kMaxFibres));
  SPEXD_RETURN_IF_ERROR(CheckRange("HSIZEX", psf.half_x, 1, kMaxHalfSpot));
  SPEXD_RETURN_IF_ERROR(CheckRange("HSIZEY", psf.half_y, 1, kMaxHalfSpot));
  SPEXD_RETURN_IF_ERROR(CheckRange("GHDEGX", psf.max_degree_x, 0, kMaxHermiteDegree));
  SPEXD_RETURN_IF_ERROR(CheckRange("GHDEGY", psf.max_degree_y, 0, kMaxHermiteDegree));
  if (!std::isfinite(psf.psferr) || psf.psferr < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("PSF: PSFERR is %g, must be finite and >= 0", psf.psferr));
  }
  SPEXD_RETURN_IF_ERROR(CheckTable("XTRACE", psf.x, psf.fibres));
  SPEXD_RETURN_IF_ERROR(CheckTable("YTRACE", psf.y, psf.fibres));
  SPEXD_RETURN_IF_ERROR(CheckTable("GHSIGX", psf.sigma_x, psf.fibres));
  SPEXD_RETURN_IF_ERROR(CheckTable("GHSIGY", psf.sigma_y, psf.fibres));
  if (psf.terms.empty()) return absl::InvalidArgumentError("PSF: all GH-i-j are 0, a spot would be empty");
  std::set<std::pair<int, int>> degrees;
  for (const GaussHermiteTerm& term : psf.terms) {
    SPEXD_RETURN_IF_ERROR(CheckRange("the x degree of a GH-i-j row", term.degree_x, 0, psf.max_degree_x));
    SPEXD_RETURN_IF_ERROR(CheckRange("the y degree of a GH-i-j row", term.degree_y, 0, psf.max_degree_y));
    if (!degrees.insert({term.degree_x, term.degree_y}).second) {
      return absl::InvalidArgumentError(absl::StrCat("PSF: ", NameOf(term), " is given twice"));
    }
  }
  if (psf.tail_amplitude.empty()) return absl::OkStatus();
  SPEXD_RETURN_IF_ERROR(CheckTable("TAILAMP", psf.tail_amplitude, psf.fibres));
  SPEXD_RETURN_IF_ERROR(CheckTable("TAILCORE", psf.tail_core, psf.fibres));
  SPEXD_RETURN_IF_ERROR(CheckTable("TAILINDE", psf.tail_index, psf.fibres));
  SPEXD_RETURN_IF_ERROR(CheckTable("TAILXSCA", psf.tail_scale_x, psf.fibres));
  return CheckTable("TAILYSCA", psf.tail_scale_y, psf.fibres);
}

absl::Status CheckPsf(const Psf& psf) {
  SPEXD_RETURN_IF_ERROR(CheckPsfOutline(psf));
  for (const GaussHermiteTerm& term : psf.terms) {
    SPEXD_RETURN_IF_ERROR(CheckTable(NameOf(term).c_str(), term.amplitude, psf.fibres));
  }
  return absl::OkStatus();
}

}  // namespace spexd
