#include "tests/analysis/truth/scores.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>

#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/velocity/velocity.h"
#include "core/analysis/velocity_units.h"
#include "core/fits/hdu/table_file.h"

namespace spexd::testing {
namespace {

constexpr int kBadFit =
    kVelocityNoStar | kVelocityAtEdge | kVelocityUncertain | kVelocityNoData | kVelocityAmbiguous;
static_assert(kBadFit == 167);

// Returns the truth's rows of this kind, by the rows of the other table that have their targets.
std::map<size_t, size_t> RowsOfKind(const RawTable& truth, const std::string& kind, const RawTable& found) {
  const std::vector<std::string> kinds = TextColumn(truth, "OBJTYPE").value();
  const std::vector<int64_t> sources = IntegerColumn(truth, "TARGETID").value(),
                             targets = IntegerColumn(found, "TARGETID").value();
  std::map<int64_t, size_t> of_source;
  for (size_t row = 0; row < sources.size(); ++row) {
    if (kinds[row] == kind) of_source[sources[row]] = row;
  }
  std::map<size_t, size_t> rows;
  for (size_t row = 0; row < targets.size(); ++row) {
    const auto source = of_source.find(targets[row]);
    if (source != of_source.end()) rows[row] = source->second;
  }
  return rows;
}

}  // namespace

void VelocityScore::Add(const RawTable& truth, const RawTable& found) {
  const std::vector<double> velocities = NumberColumn(truth, "VRAD").value(),
                            v = NumberColumn(found, "VRAD").value(),
                            error = NumberColumn(found, "VRAD_ERR").value(),
                            dchi2 = NumberColumn(found, "DCHI2").value();
  const std::vector<int64_t> warning = IntegerColumn(found, "RVS_WARN").value();
  for (const auto& [row, source] : RowsOfKind(truth, "STAR", found)) {
    ++stars;
    errors.push_back(std::numeric_limits<double>::quiet_NaN());
    if (!(dchi2[row] > kSafeDchi2)) continue;
    const double off = v[row] - velocities[source];
    errors.back() = error[row];
    pulls.push_back(off / error[row]);
    astray += (warning[row] & kBadFit) == 0 && std::abs(off) > std::max(50.0, 5 * error[row]);
  }
}

void RedshiftScore::Add(const RawTable& truth, const RawTable& found) {
  const std::vector<double> redshifts = NumberColumn(truth, "Z").value(),
                            z = NumberColumn(found, "Z").value(), gap = NumberColumn(found, "GAP").value();
  const std::vector<int64_t> warning = IntegerColumn(found, "ZWARN").value();
  for (const auto& [row, source] : RowsOfKind(truth, "GALAXY", found)) {
    ++emitters;
    const bool off =
        std::abs(std::log((1 + z[row]) / (1 + redshifts[source]))) * kLightSpeed > kWrongRedshift;
    const bool is_accepted = warning[row] == 0, is_secure = is_accepted && gap[row] > kSecureGap;
    accepted += is_accepted;
    wrong += off && is_accepted;
    secure += is_secure;
    wrong_secure += off && is_secure;
  }
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double Rms(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

double RobustSigma(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double last = static_cast<double>(values.size() - 1);
  const auto at = [&](double part) { return values[static_cast<size_t>(std::lround(part * last))]; };
  return 0.5 * (at(0.8413) - at(0.1587));
}

}  // namespace spexd::testing
