#include "proto/analysis_header.h"

#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/frame/job_options.h"
#include "core/products/joint/row_selection.h"
#include "proto/job_header.h"

namespace spexd {
namespace {

constexpr int kMaxSources = 16, kMaxRanges = 100, kMaxArms = 16;
constexpr size_t kMaxJobId = 200;
constexpr uint32_t kMaxCoefficients = 21;

absl::Status Refused(const std::string& text) { return absl::InvalidArgumentError(text); }

absl::Status CheckFields(const v1::AnalysisHeader& header) {
  SPEXD_RETURN_IF_ERROR(CheckFieldsAreKnown("header", header));
  SPEXD_RETURN_IF_ERROR(CheckFieldsAreKnown("rows", header.rows()));
  SPEXD_RETURN_IF_ERROR(CheckFieldsAreKnown("exclude", header.exclude()));
  for (const v1::SpectraSource& source : header.spectra())
    SPEXD_RETURN_IF_ERROR(CheckFieldsAreKnown("spectra", source));
  return absl::OkStatus();
}

absl::Status CheckSpectra(const v1::AnalysisHeader& header) {
  if (header.spectra_size() < 1 || header.spectra_size() > kMaxSources) {
    return Refused(absl::StrFormat("spectra: there are %d sources, must be 1 to %d", header.spectra_size(),
                                   kMaxSources));
  }
  for (int k = 0; k < header.spectra_size(); ++k) {
    const v1::SpectraSource& source = header.spectra(k);
    if (!source.has_job_id() || (!source.job_id().empty() && source.job_id().size() <= kMaxJobId)) continue;
    return Refused(absl::StrFormat("spectra[%d]: a job's id of %d characters, must have 1 to %d", k,
                                   source.job_id().size(), kMaxJobId));
  }
  if (header.has_redrock() && header.spectra_size() > 1) {
    return Refused(
        absl::StrFormat("redrock: is of one file of targets' spectra, and there are %d sources; leave it out",
                        header.spectra_size()));
  }
  return absl::OkStatus();
}

absl::Status CheckProducts(const v1::AnalysisHeader& header) {
  if (!header.has_templates() && !header.lines())
    return Refused("templates, lines: no product is asked for; give templates, or ask for lines");
  if (header.models() && !header.has_templates())
    return Refused("models: are those of velocities; give templates, or leave models out");
  if (header.has_coefficients() && (header.coefficients() < 1 || header.coefficients() > kMaxCoefficients)) {
    return Refused(
        absl::StrFormat("coefficients: %d, must be 1 to %d", header.coefficients(), kMaxCoefficients));
  }
  if (header.arms_size() > kMaxArms)
    return Refused(absl::StrFormat("arms: there are %d, the limit is %d", header.arms_size(), kMaxArms));
  for (const std::string& arm : header.arms()) {
    const std::string letter = absl::AsciiStrToUpper(arm);
    if (letter != "B" && letter != "R" && letter != "Z")
      return Refused(absl::StrCat("arms: ", ForMessage(arm), ", must be B, R or Z"));
  }
  JobSpec spec;
  spec.priority = header.priority();
  return CheckJobOptions(spec);
}

absl::Status CheckExcluded(const v1::WavelengthRanges& exclude) {
  if (exclude.first_size() != exclude.last_size()) {
    return Refused(absl::StrFormat("exclude: %d first and %d last wavelengths, must be as many",
                                   exclude.first_size(), exclude.last_size()));
  }
  if (exclude.first_size() > kMaxRanges) {
    return Refused(
        absl::StrFormat("exclude: there are %d ranges, the limit is %d", exclude.first_size(), kMaxRanges));
  }
  for (int k = 0; k < exclude.first_size(); ++k) {
    const double first = exclude.first(k), last = exclude.last(k);
    if (std::isfinite(first) && std::isfinite(last) && first < last) continue;
    return Refused(absl::StrFormat(
        "exclude: %g to %g Angstrom, must ascend; exchange them, or leave the range out", first, last));
  }
  return absl::OkStatus();
}

absl::Status CheckRows(const v1::AnalysisHeader& header) {
  const v1::RowFilter& rows = header.rows();
  if (rows.has_min_snr() && !std::isfinite(rows.min_snr()))
    return Refused(absl::StrFormat("rows.min_snr: %g, must be finite", rows.min_snr()));
  if (rows.object_types_size() > kMaxObjectTypes) {
    return Refused(absl::StrFormat("rows.object_types: there are %d, the limit is %d",
                                   rows.object_types_size(), kMaxObjectTypes));
  }
  for (const std::string& pattern : rows.object_types()) {
    if (!pattern.empty() && pattern.size() <= kMaxObjectTypeLength) continue;
    return Refused(absl::StrFormat("rows.object_types: %s has %d characters, must have 1 to %d",
                                   ForMessage(pattern), pattern.size(), kMaxObjectTypeLength));
  }
  if (rows.stars_by_redrock() && !header.has_redrock())
    return Refused("rows.stars_by_redrock: needs redrock's file; give redrock, or leave this out");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAnalysisHeader(const v1::AnalysisHeader& header) {
  SPEXD_RETURN_IF_ERROR(CheckFields(header));
  SPEXD_RETURN_IF_ERROR(CheckSpectra(header));
  SPEXD_RETURN_IF_ERROR(CheckProducts(header));
  SPEXD_RETURN_IF_ERROR(CheckExcluded(header.exclude()));
  return CheckRows(header);
}

}  // namespace spexd
