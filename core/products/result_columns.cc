#include "core/products/result_columns.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace spexd {
namespace {

// The value, or NaN if a star has none.
double ValueAt(const std::vector<double>& values, size_t k) {
  return k < values.size() ? values[k] : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

void VelocityColumns::AddVelocity(NumberTable* table) const {
  table->Add(
      "VRAD", stars, [](const StarVelocity& star) { return star.v; }, unit);
  table->Add(
      "VRAD_ERR", stars, [](const StarVelocity& star) { return star.error; }, unit);
  table->Add(
      "VRAD_ERR_COND", stars, [](const StarVelocity& star) { return star.conditional_error; }, unit);
}

void VelocityColumns::AddRotation(NumberTable* table) const {
  table->Add(
      "VSINI", stars, [](const StarVelocity& star) { return star.vsini; }, unit);
}

void VelocityColumns::AddParameters(const std::vector<std::string>& parameters, NumberTable* table) const {
  for (size_t k = 0; k < parameters.size(); ++k) {
    const std::string name = absl::AsciiStrToUpper(parameters[k]);
    const std::string of_parameter = name == "TEFF" ? "K" : "";
    table->Add(
        name, stars, [k](const StarVelocity& star) { return ValueAt(star.parameters, k); }, of_parameter);
    table->Add(
        absl::StrCat(name, "_ERR"), stars,
        [k](const StarVelocity& star) { return ValueAt(star.parameter_errors, k); }, of_parameter);
  }
}

void VelocityColumns::AddChiSquares(const char* bins, NumberTable* table) const {
  table->Add("CHISQ_TOT", stars, [](const StarVelocity& star) { return star.chi2; });
  table->Add("CHISQ_C_TOT", stars, [](const StarVelocity& star) { return star.continuum_chi2; });
  table->Add(bins, stars, [](const StarVelocity& star) { return int64_t{star.bins}; });
}

void VelocityColumns::AddAmbiguity(NumberTable* table) const {
  table->Add("DCHI2", stars, [](const StarVelocity& star) { return star.dchi2; });
  table->Add(
      "V2", stars, [](const StarVelocity& star) { return star.v2; }, unit);
}

void VelocityColumns::AddWarning(NumberTable* table) const {
  table->Add("RVS_WARN", stars, [](const StarVelocity& star) { return int64_t{star.flag}; });
}

void AddLineColumns(const std::vector<LineRedshift>& lines, NumberTable* table) {
  const auto add = [&](const char* name, const auto& value) { table->Add(name, lines, value); };
  add("Z", [](const LineRedshift& line) { return line.z; });
  add("ZERR", [](const LineRedshift& line) { return line.error; });
  add("ZWARN", [](const LineRedshift& line) { return int64_t{line.warning}; });
  add("DCHI2", [](const LineRedshift& line) { return line.dchi2; });
  add("SNR", [](const LineRedshift& line) { return std::sqrt(line.dchi2); });
  add("GAP", [](const LineRedshift& line) { return line.gap; });
  add("Z2", [](const LineRedshift& line) { return line.z2; });
  add("NLINES", [](const LineRedshift& line) { return int64_t{line.lines}; });
}

void WriteLineNames(FitsBuilder* fits) {
  std::vector<double> waves, ratios;
  std::vector<int64_t> numbers;
  const std::vector<LineGroup>& groups = EmissionLines();
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const Line& line : groups[g].lines) {
      waves.push_back(line.wave);
      ratios.push_back(line.ratio);
      numbers.push_back(static_cast<int64_t>(g));
    }
  }
  NumberTable table(static_cast<int64_t>(waves.size()));
  table.Add("WAVE", waves, "Angstrom");
  table.Add("RATIO", ratios);
  table.Add("GROUP", numbers);
  table.Write("LINES", fits);
  for (size_t g = 0; g < groups.size(); ++g) {
    fits->Text(absl::StrCat("GROUP", g).c_str(), groups[g].name, "");
  }
}

}  // namespace spexd
