#include "core/frame/job_options.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

absl::Status CheckWavelengths(const WavelengthGrid& grid) {
  // Called only for errors: Abseil ends the process if it finds no memory for the text.
  const auto given = [&grid] {
    return absl::StrFormat("wavelength grid from %g by %g Angstrom", grid.first, grid.step);
  };
  if (!std::isfinite(grid.first) || !(grid.first > 0)) {
    return absl::InvalidArgumentError(given() + ": the first wavelength must be finite and greater than 0");
  }
  if (!std::isfinite(grid.step) || !(grid.step > 0)) {
    return absl::InvalidArgumentError(given() + ": the step must be finite and greater than 0");
  }
  if (grid.count >= 1 && grid.count <= kMaxWavelengthBins) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: %d bins, must be 1 to %d", given(), grid.count, kMaxWavelengthBins));
}

absl::Status CheckTracesAreMeasured(const JobSpec& spec, bool trace_reference) {
  if (spec.trace_shifts != TraceAxes::kOff) return absl::OkStatus();
  const char* const idle = trace_reference                        ? "trace_reference"
                           : spec.trace_required                  ? "trace_required"
                           : spec.trace_degrees != TraceDegrees() ? "trace_degrees"
                                                                  : nullptr;
  if (idle == nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s is given, but trace_shifts is off; set trace_shifts to auto, x or xy, or leave %s out", idle,
      idle));
}

std::optional<double> AsNumber(const std::optional<WavelengthGrid>&) { return std::nullopt; }
std::optional<double> AsNumber(const TraceDegrees&) { return std::nullopt; }
std::optional<double> AsNumber(TraceAxes axes) { return static_cast<double>(axes); }
template <typename T>
std::optional<double> AsNumber(const T& value) {
  return value;
}

void Assign(double, std::optional<WavelengthGrid>*) {}
void Assign(double, TraceDegrees*) {}
void Assign(double number, TraceAxes* axes) { *axes = static_cast<TraceAxes>(static_cast<int>(number)); }
template <typename T>
void Assign(double number, T* value) {
  *value = static_cast<T>(number);
}
template <typename T>
void Assign(double number, std::optional<T>* value) {
  *value = static_cast<T>(number);
}

}  // namespace

std::optional<double> JobOption::NumberIn(const JobSpec& spec) const {
  return std::visit([&](auto member) { return AsNumber(spec.*member); }, value);
}

void JobOption::SetNumber(double number, JobSpec* spec) const {
  std::visit([&](auto member) { Assign(number, &(spec->*member)); }, value);
}

absl::Status JobOption::Check(double number) const {
  if (number >= min && number <= max) return absl::OkStatus();  // NaN fails both comparisons
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is %.15g, must be %.15g to %.15g", name, number, min, max));
}

absl::Status CheckJobOptions(const JobSpec& spec, bool trace_reference) {
  for (const JobOption& option : kJobOptions) {
    const std::optional<double> number = option.NumberIn(spec);
    if (number.has_value()) SPEXD_RETURN_IF_ERROR(option.Check(*number));
  }
  SPEXD_RETURN_IF_ERROR(CheckTraceDegrees(spec.trace_degrees));
  SPEXD_RETURN_IF_ERROR(CheckTracesAreMeasured(spec, trace_reference));
  return spec.grid.has_value() ? CheckWavelengths(*spec.grid) : absl::OkStatus();
}

}  // namespace spexd
