#include "core/model/psf_traces/lost_fibres.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace spexd {
namespace {

// All tables of the PSF that have coefficients for its fibres.
std::vector<LegendreTable*> TablesOf(Psf* psf) {
  std::vector<LegendreTable*> tables = std::visit([](auto& model) { return model.Tables(); }, psf->spots);
  tables.insert(tables.begin(), {&psf->traces.x, &psf->traces.y});
  std::erase_if(tables, [psf](const LegendreTable* table) {
    return table->empty() || table->coeff.shape(0) != psf->fibres;
  });
  return tables;
}

// The whole fibre nearest to `fibre` in a direction, or none.
std::optional<int> Nearest(const std::vector<bool>& lost, int fibre, int direction) {
  const int fibres = static_cast<int>(lost.size());
  for (int k = fibre + direction; k >= 0 && k < fibres; k += direction) {
    if (!lost[static_cast<size_t>(k)]) return k;
  }
  return std::nullopt;
}

// The two whole fibres on whose straight line a lost one lies: one on each side, or both on one side; the
// same fibre twice if there is only one.
std::pair<int, int> Neighbours(const std::vector<bool>& lost, int fibre) {
  const std::optional<int> below = Nearest(lost, fibre, -1), above = Nearest(lost, fibre, 1);
  if (below.has_value() && above.has_value()) return {*below, *above};
  const int near = below.has_value() ? *below : *above;
  return {near, Nearest(lost, near, below.has_value() ? -1 : 1).value_or(near)};
}

}  // namespace

void EmptyLostFibres(Psf* psf) {
  const std::vector<LegendreTable*> tables = TablesOf(psf);
  std::vector<bool> lost(static_cast<size_t>(std::max(psf->fibres, 0)), false);
  for (const LegendreTable* table : tables) {
    for (int fibre = 0; fibre < psf->fibres; ++fibre) {
      const absl::Span<const double> row = table->coeff.Row(fibre);
      if (!std::all_of(row.begin(), row.end(), [](double c) { return std::isfinite(c); }))
        lost[static_cast<size_t>(fibre)] = true;
    }
  }
  const auto count = std::count(lost.begin(), lost.end(), true);
  if (count == 0 || count == psf->fibres) return;
  for (LegendreTable* table : tables) PlaceLostFibres(lost, table);
  for (int fibre = 0; fibre < psf->fibres; ++fibre) {
    if (!lost[static_cast<size_t>(fibre)]) continue;
    std::visit([fibre](auto& model) { model.EmptyFibre(fibre); }, psf->spots);
  }
}

std::vector<bool> LostFibres(const Psf& psf) {
  std::vector<bool> lost(static_cast<size_t>(psf.fibres));
  for (int fibre = 0; fibre < psf.fibres; ++fibre) {
    lost[static_cast<size_t>(fibre)] =
        std::visit([fibre](const auto& model) { return model.IsEmptyFibre(fibre); }, psf.spots);
  }
  if (std::find(lost.begin(), lost.end(), false) == lost.end()) lost.assign(lost.size(), false);
  return lost;
}

void PlaceLostFibres(const std::vector<bool>& lost, LegendreTable* table) {
  for (int fibre = 0; fibre < static_cast<int>(lost.size()); ++fibre) {
    if (!lost[static_cast<size_t>(fibre)]) continue;
    const auto [a, b] = Neighbours(lost, fibre);
    const double part = a == b ? 0 : static_cast<double>(fibre - a) / (b - a);
    for (int64_t k = 0; k < table->coeff.shape(1); ++k) {
      const double from = table->coeff(a, k);
      table->coeff(fibre, k) = from + part * (table->coeff(b, k) - from);
    }
  }
}

}  // namespace spexd
