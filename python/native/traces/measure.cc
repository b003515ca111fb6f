#include "python/native/traces/measure.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/job/job_traces.h"
#include "core/model/psf_traces/move_psf.h"

namespace spexd::python {
namespace {

absl::StatusOr<TraceReport> Measure(const Job& job, const Workers& workers) {
  SPEXD_ASSIGN_OR_RETURN(const JobSources sources, OpenJobSources(job.files, workers.threads, workers.stop));
  return MeasureFrameTraces(sources, job.spec, workers);
}

absl::Status CheckSeries(const char* name, const ShiftSeries& series) {
  constexpr int kMaxTerms = kMaxShiftDegree + 1;
  if (series.shape(0) > kMaxTerms || series.shape(1) > kMaxTerms) {
    return absl::InvalidArgumentError(absl::StrFormat("%s has shape (%d, %d), must be at most (%d, %d)", name,
                                                      series.shape(0), series.shape(1), kMaxTerms,
                                                      kMaxTerms));
  }
  if (std::any_of(series.flat().begin(), series.flat().end(),
                  [](double value) { return !std::isfinite(value); }))
    return absl::InvalidArgumentError(absl::StrFormat("%s has a value that is not finite", name));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TraceReport> MeasureJobTraces(const Job& job, int threads, const std::stop_token& stop) {
  return CatchExceptions([&] { return Measure(job, {threads, stop}); });
}

absl::StatusOr<LoadedPsf> ShiftPsf(const LoadedPsf& psf, const ShiftSeries& x, const ShiftSeries& y) {
  SPEXD_RETURN_IF_ERROR(CheckSeries("cx", x));
  SPEXD_RETURN_IF_ERROR(CheckSeries("cy", y));
  SPEXD_RETURN_IF_ERROR(CheckTraces(*psf.psf, psf.name));
  return LoadedPsf{psf.name, std::make_shared<const Psf>(MovePsf(*psf.psf, x, y))};
}

}  // namespace spexd::python
