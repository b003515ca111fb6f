#include "core/model/spots/gauss_hermite.h"

#include <algorithm>
#include <set>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/model/spots/gauss_hermite_formula.h"

namespace spexd {
namespace {

template <typename Table>
struct Named {
  std::string name;
  Table* table;
};

// All tables of the spots with their names. Terms may lack their coefficients.
template <typename Spots,
          typename Table = std::conditional_t<std::is_const_v<Spots>, const LegendreTable, LegendreTable>>
std::vector<Named<Table>> NamedTables(Spots& spots) {
  std::vector<Named<Table>> tables;
  for (size_t k = 0; k < spots.cores.size(); ++k) {
    auto& core = spots.cores[k];
    tables.push_back({k == 0 ? "GHSIGX" : "GHSIGX2", &core.sigma_x});
    tables.push_back({k == 0 ? "GHSIGY" : "GHSIGY2", &core.sigma_y});
    for (auto& term : core.terms) tables.push_back({NameOf(term, static_cast<int>(k)), &term.amplitude});
  }
  if (!spots.cutoff.empty()) tables.push_back({"GHNSIG", &spots.cutoff});
  if (spots.has_tail()) {
    tables.push_back({"TAILAMP", &spots.tail_amplitude});
    tables.push_back({"TAILCORE", &spots.tail_core});
    tables.push_back({"TAILINDE", &spots.tail_index});
    tables.push_back({"TAILXSCA", &spots.tail_scale_x});
    tables.push_back({"TAILYSCA", &spots.tail_scale_y});
  }
  return tables;
}

bool IsTerm(const Named<const LegendreTable>& table) { return table.name.find('-') != std::string::npos; }

absl::Status CheckRange(const std::string& name, int value, int least, int most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("PSF: %s is %d, must be %d to %d", name, value, least, most));
}

absl::Status CheckDegrees(const GaussHermiteSpots& spots, int index) {
  const GaussHermiteCore& core = spots.cores[static_cast<size_t>(index)];
  const int most = spots.cores.size() > 1 ? kMaxTwoCoreDegree : kMaxHermiteDegree;
  const char* const suffix = index == 0 ? "" : "2";
  SPEXD_RETURN_IF_ERROR(CheckRange(absl::StrCat("GHDEGX", suffix), core.max_degree_x, 0, most));
  SPEXD_RETURN_IF_ERROR(CheckRange(absl::StrCat("GHDEGY", suffix), core.max_degree_y, 0, most));
  std::set<std::pair<int, int>> degrees;
  for (const GaussHermiteTerm& term : core.terms) {
    SPEXD_RETURN_IF_ERROR(CheckRange(absl::StrCat("the x degree of a GH", suffix, "-i-j row"), term.degree_x,
                                     0, core.max_degree_x));
    SPEXD_RETURN_IF_ERROR(CheckRange(absl::StrCat("the y degree of a GH", suffix, "-i-j row"), term.degree_y,
                                     0, core.max_degree_y));
    if (!degrees.insert({term.degree_x, term.degree_y}).second) {
      return absl::InvalidArgumentError(absl::StrCat("PSF: ", NameOf(term, index), " is given twice"));
    }
  }
  return absl::OkStatus();
}

// Adds a core to the pixels. Those beyond the cutoff get nothing; null: there is no cutoff. Returns whether
// the core has positive widths.
bool AddCore(const GaussHermiteCore& core, const Stamp& stamp, int fibre, double wave, double dx, double dy,
             const double* cutoff, absl::Span<double> values) {
  const int nx = stamp.x.size, ny = stamp.y.size, half_x = stamp.x.middle, half_y = stamp.y.middle;
  const double sigma_x = Evaluate(core.sigma_x, fibre, wave), sigma_y = Evaluate(core.sigma_y, fibre, wave);
  if (!(sigma_x > 0) || !(sigma_y > 0)) return false;
  std::vector<double> gx((core.max_degree_x + 1) * nx), gy((core.max_degree_y + 1) * ny);
  PixelIntegrals(core.max_degree_x, stamp.x, dx, sigma_x, gx.data(), nx);
  PixelIntegrals(core.max_degree_y, stamp.y, dy, sigma_y, gy.data(), ny);
  std::vector<double> h((core.max_degree_x + 1) * ny, 0.0);  // sum_b c_ab g_b(row)
  for (const GaussHermiteTerm& term : core.terms) {
    const double amplitude = Evaluate(term.amplitude, fibre, wave);
    for (int row = 0; row < ny; ++row)
      h[term.degree_x * ny + row] += amplitude * gy[term.degree_y * ny + row];
  }
  for (int row = 0; row < ny; ++row) {
    for (int a = 0; a <= core.max_degree_x; ++a) {
      for (int column = 0; column < nx; ++column) {
        if (cutoff &&
            !IsWithinCutoff(column - half_x - dx, row - half_y - dy, 1 / sigma_x, 1 / sigma_y, *cutoff)) {
          continue;
        }
        values[row * nx + column] += h[a * ny + row] * gx[a * nx + column];
      }
    }
  }
  return true;
}

}  // namespace

std::string NameOf(const GaussHermiteTerm& term, int core) {
  return absl::StrFormat("GH%s-%d-%d", core == 0 ? "" : "2", term.degree_x, term.degree_y);
}

int64_t GaussHermiteSpots::Bytes() const {
  int64_t values = 0;
  for (const auto& each : NamedTables(*this)) {
    values += each.table->empty() ? core().sigma_x.coeff.size() : each.table->coeff.size();
  }
  return values * static_cast<int64_t>(sizeof(double));
}

bool GaussHermiteSpots::IsComplete() const {
  return std::ranges::none_of(NamedTables(*this),
                              [](const auto& each) { return IsTerm(each) && each.table->empty(); });
}

WaveRange GaussHermiteSpots::Domain() const { return {core().sigma_x.wave_min, core().sigma_x.wave_max}; }

absl::Status GaussHermiteSpots::CheckOutline(int fibres) const {
  SPEXD_RETURN_IF_ERROR(CheckRange("HSIZEX", stamp.x.middle, 1, kMaxHalfSpot));
  SPEXD_RETURN_IF_ERROR(CheckRange("HSIZEY", stamp.y.middle, 1, kMaxHalfSpot));
  SPEXD_RETURN_IF_ERROR(CheckRange("the number of cores", static_cast<int>(cores.size()), 1, 2));
  bool has_terms = false;
  for (int k = 0; k < static_cast<int>(cores.size()); ++k) {
    SPEXD_RETURN_IF_ERROR(CheckDegrees(*this, k));
    has_terms |= !cores[static_cast<size_t>(k)].terms.empty();
  }
  if (!has_terms) return absl::InvalidArgumentError("PSF: all GH-i-j are 0, a spot would be empty");
  if (!cutoff.empty() && cores.size() < 2) {
    return absl::InvalidArgumentError("PSF: GHNSIG ends a core that has no second one beside it");
  }
  for (const auto& each : NamedTables(*this)) {
    if (!IsTerm(each)) SPEXD_RETURN_IF_ERROR(CheckTable(each.name, *each.table, fibres));
  }
  return absl::OkStatus();
}

absl::Status GaussHermiteSpots::Check(int fibres) const {
  SPEXD_RETURN_IF_ERROR(CheckOutline(fibres));
  for (const auto& each : NamedTables(*this)) {
    if (IsTerm(each)) SPEXD_RETURN_IF_ERROR(CheckTable(each.name, *each.table, fibres));
  }
  return absl::OkStatus();
}

absl::Status GaussHermiteSpots::CheckOn(WaveRange range) const {
  for (const auto& each : NamedTables(*this)) {
    if (!each.table->empty()) SPEXD_RETURN_IF_ERROR(CheckValues(each.name, *each.table, range));
  }
  return absl::OkStatus();
}

double GaussHermiteSpots::Flops() const {
  // Operations for an erf and an exp at a pixel's edge, and for a pixel of the tail.
  constexpr double kEdge = 40, kTailPixel = 30;
  const double pixels = stamp.pixels();
  double flops = 2 * pixels + (has_tail() ? kTailPixel * pixels : 0);
  for (const GaussHermiteCore& core : cores) {
    const double terms = static_cast<double>(core.terms.size());
    flops += (terms + 2) * static_cast<double>(core.sigma_x.coeff.shape(1)) * 4 +
             (stamp.x.size + stamp.y.size + 2) * kEdge + 2 * terms * stamp.y.size +
             2.0 * (core.max_degree_x + 1) * pixels;
  }
  return flops;
}

double GaussHermiteSpots::SigmaY(int fibre, double wave) const {
  return spexd::Evaluate(core().sigma_y, fibre, wave);
}

void GaussHermiteSpots::Evaluate(int fibre, double wave, const SpotPosition& x, const SpotPosition& y,
                                 absl::Span<double> values) const {
  std::ranges::fill(values, 0.0);
  const auto at = [&](const LegendreTable& table) { return spexd::Evaluate(table, fibre, wave); };
  for (size_t k = 0; k < cores.size(); ++k) {
    const bool ends = k == 0 && !cutoff.empty();
    const double end = ends ? at(cutoff) : 0;
    if (!AddCore(cores[k], stamp, fibre, wave, x.offset, y.offset, ends ? &end : nullptr, values)) {
      std::ranges::fill(values, 0.0);
      return;
    }
  }
  if (!has_tail()) return;
  const double amplitude = at(tail_amplitude), tail = at(tail_core), index = at(tail_index);
  const double scale_x = at(tail_scale_x), scale_y = at(tail_scale_y);
  for (int row = 0; row < stamp.y.size; ++row) {
    const double v = (row - stamp.y.middle - y.offset) * scale_y;
    for (int column = 0; column < stamp.x.size; ++column) {
      const double u = (column - stamp.x.middle - x.offset) * scale_x;
      values[row * stamp.x.size + column] += TailValue(amplitude, tail, index, u * u + v * v);
    }
  }
}

std::vector<LegendreTable*> GaussHermiteSpots::Tables() {
  std::vector<LegendreTable*> tables;
  for (const auto& each : NamedTables(*this)) tables.push_back(each.table);
  return tables;
}

void GaussHermiteSpots::EmptyFibre(int fibre) {
  for (LegendreTable* width : {&core().sigma_x, &core().sigma_y})
    std::ranges::fill(width->coeff.Row(fibre), 0.0);
}

bool GaussHermiteSpots::IsEmptyFibre(int fibre) const {
  const auto is_zero = [fibre](const LegendreTable& width) {
    return std::ranges::all_of(width.coeff.Row(fibre), [](double c) { return c == 0; });
  };
  return is_zero(core().sigma_x) && is_zero(core().sigma_y);
}

}  // namespace spexd
