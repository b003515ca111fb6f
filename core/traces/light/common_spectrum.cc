#include "core/traces/light/common_spectrum.h"

#include <algorithm>
#include <cmath>

#include "core/base/status_macros.h"
#include "core/traces/light/light_formula.h"
#include "core/traces/light/line_fit.h"
#include "core/traces/light/row_dispersion.h"

namespace spexd::traces {
namespace {

constexpr double kRidge = 1e-6;     // part of the diagonal that is added to the diagonal
constexpr double kMinRidge = 1e-9;  // part of the largest diagonal entry that is added as well

// Solves a banded symmetric positive definite system in place. `a` [bin, bins further on] becomes the factor,
// `x` the solution.
void SolveBanded(int64_t bins, int64_t width, double* a, double* x) {
  for (int64_t j = 0; j < bins; ++j) {
    const int64_t end = std::min(width, bins - j);
    double* __restrict const row = a + j * width;
    const double pivot = std::sqrt(row[0] > 0 ? row[0] : 1);
    for (int64_t k = 0; k < end; ++k) row[k] /= pivot;
    row[0] = pivot;
    for (int64_t k = 1; k < end; ++k) {
      double* __restrict const later = row + k * width;
      const double factor = row[k];
      for (int64_t l = 0; l < end - k; ++l) later[l] -= factor * row[k + l];
    }
    x[j] /= pivot;
    for (int64_t k = 1; k < end; ++k) x[j + k] -= row[k] * x[j];
  }
  for (int64_t j = bins - 1; j >= 0; --j) {
    const double* const row = a + j * width;
    for (int64_t k = 1; k < std::min(width, bins - j); ++k) x[j] -= row[k] * x[j + k];
    x[j] /= row[0];
  }
}

// Computes the weights of a fibre's rows. `model`: the light of the common spectrum in these rows.
void TargetWeights(const float* flux, const float* ivar, const float* model, int rows,
                   const TraceShiftOptions& options, std::vector<float>* work, float* weight) {
  const int size = std::min(options.y_block_rows, rows), blocks = std::max(1, rows / size);
  for (int block = 0; block < blocks; ++block) {
    const int begin = block * size, end = block == blocks - 1 ? rows : begin + size;
    work->clear();
    for (int row = begin; row < end; ++row) {
      if (ivar[row] > 0) work->push_back(std::abs(flux[row] - model[row]));
    }
    float beyond = 0;
    if (!work->empty()) {
      const auto middle = work->begin() + static_cast<int64_t>(work->size() / 2);
      std::nth_element(work->begin(), middle, work->end());
      beyond = static_cast<float>(options.target_error) * *middle;
    }
    for (int row = begin; row < end; ++row) {
      weight[row] = TargetWeight(ivar[row], beyond);
    }
  }
}

}  // namespace

std::vector<double> CommonWave(const Psf& psf, const TraceShiftOptions& options) {
  std::vector<double> all;
  for (int64_t j = 0;; ++j) {
    const double wave = psf.traces.x.wave_min + static_cast<double>(j) * options.bin_width;
    if (wave >= psf.traces.x.wave_max) return all;
    all.push_back(wave);
  }
}

void SolveCommonSpectrum(int64_t bins, int64_t width, double* normal, double* right) {
  double largest = 0;
  for (int64_t j = 0; j < bins; ++j) largest = std::max(largest, normal[j * width]);
  for (int64_t j = 0; j < bins; ++j) {
    normal[j * width] += kRidge * normal[j * width] + kMinRidge * largest + 1e-300;
  }
  SolveBanded(bins, width, normal, right);
}

absl::StatusOr<CommonLight> FindCommonLight(const RowSpectra& spectra, const Psf& psf,
                                            const ShapeTable& shapes, const TraceRows& traces,
                                            const TraceShiftOptions& options, const Workers& workers) {
  CommonLight light;
  const int rows = psf.rows, chunks = (psf.fibres + kLightChunk - 1) / kLightChunk;
  light.wave = CommonWave(psf, options);
  const int64_t bins = static_cast<int64_t>(light.wave.size());
  for (Array<float, 2>* values : {&light.model, &light.slope, &light.weight})
    values->Assign({psf.fibres, rows});
  std::vector<RowDispersion> dispersions(static_cast<size_t>(psf.fibres));
  SPEXD_RETURN_IF_ERROR(ParallelFor(psf.fibres, workers, [&](int64_t fibre) {
    if (!traces.HasRows(static_cast<int>(fibre))) return absl::OkStatus();
    Dispersion dispersion;
    Disperse(psf, shapes, static_cast<int>(fibre), light.wave, &dispersion);
    dispersions[fibre] = ByRow(dispersion, rows);
    return absl::OkStatus();
  }));
  int64_t slots = 1;
  for (const RowDispersion& dispersion : dispersions) slots = std::max(slots, dispersion.value.shape(1));
  std::vector<NormalSums> sums(static_cast<size_t>(chunks));
  for (int round = 0; round < kLightRounds; ++round) {
    SPEXD_RETURN_IF_ERROR(ParallelFor(chunks, workers, [&](int64_t chunk) {
      NormalSums& sum = sums[chunk];
      sum.normal.Assign({bins, slots});
      sum.right.assign(static_cast<size_t>(bins), 0);
      std::vector<float> work;
      for (int64_t i = chunk * kLightChunk; i < std::min<int64_t>(psf.fibres, (chunk + 1) * kLightChunk);
           ++i) {
        if (!traces.HasRows(static_cast<int>(i))) continue;
        float* weight = light.weight.Row(i).data();
        float *model = light.model.Row(i).data(), *slope = light.slope.Row(i).data();
        const float* flux = spectra.flux.Row(i).data();
        TargetWeights(flux, spectra.ivar.Row(i).data(), model, rows, options, &work, weight);
        const int size = std::min(options.y_block_rows, rows);
        for (int row = 0; round > 0 && row + size <= rows; row += size) {
          FitLines(size, flux + row, weight + row, model + row, slope + row);
        }
        AddNormal(dispersions[i], flux, weight, &sum);
      }
      return absl::OkStatus();
    }));
    Array<double, 2> normal({bins, slots});
    light.spectrum.assign(static_cast<size_t>(bins), 0);
    for (const NormalSums& sum : sums) {  // summed in a fixed order
      for (int64_t k = 0; k < normal.size(); ++k) normal.data()[k] += sum.normal.data()[k];
      for (int64_t j = 0; j < bins; ++j) light.spectrum[j] += sum.right[j];
    }
    SolveCommonSpectrum(bins, normal.shape(1), normal.data(), light.spectrum.data());
    std::vector<float> padded(light.spectrum.begin(), light.spectrum.end());
    padded.resize(static_cast<size_t>(bins + slots));
    SPEXD_RETURN_IF_ERROR(ParallelFor(psf.fibres, workers, [&](int64_t i) {
      if (!traces.HasRows(static_cast<int>(i))) return absl::OkStatus();
      DisperseSpectrum(dispersions[i], padded, light.model.Row(i).data(), light.slope.Row(i).data());
      return absl::OkStatus();
    }));
  }
  return light;
}

absl::StatusOr<CommonShifts> MeasureCommonShifts(const RowSpectra& spectra, const CommonLight& light,
                                                 const TraceRows& rows, const std::vector<double>& positions,
                                                 const TraceShiftOptions& options, const Workers& workers) {
  const int all = static_cast<int>(spectra.flux.shape(1));
  const int size = std::min(options.y_block_rows, all), blocks = std::max(1, all / size);
  CommonShifts measured;
  measured.shifts.Resize(static_cast<size_t>(rows.fibres()) * blocks);
  measured.throughput.assign(static_cast<size_t>(rows.fibres()), 0);
  SPEXD_RETURN_IF_ERROR(ParallelFor(rows.fibres(), workers, [&](int64_t i) {
    std::vector<LineFit> fits(static_cast<size_t>(blocks));
    std::vector<float> weight(light.weight.Row(i).begin(), light.weight.Row(i).end());
    double sum = 0, info = 0;
    for (int block = 0; block < blocks; ++block) {
      const int begin = block * size;
      fits[block] = FitLines(size, spectra.flux.Row(i).data() + begin, weight.data() + begin,
                             light.model.Row(i).data() + begin, light.slope.Row(i).data() + begin);
      sum += fits[block].amplitude_info * fits[block].amplitude;
      info += fits[block].amplitude_info;
    }
    const double throughput = info > 0 ? sum / info : 0;
    const bool known = IsThroughputKnown(throughput, info);
    measured.throughput[i] = known ? throughput : 0;
    for (int block = 0; block < blocks; ++block) {
      const size_t index = static_cast<size_t>(i) * blocks + block;
      measured.shifts.u[index] = positions[i];
      const double shift_info = known ? throughput * throughput * fits[block].moment_info : 0;
      double signal = 0, row_sum = 0;
      for (int row = block * size; row < (block + 1) * size; ++row) {
        const double part = weight[row] * light.slope(i, row) * light.slope(i, row);
        signal += part;
        row_sum += part * row;
      }
      if (!(shift_info > kMinCommonInfo && signal > 0)) continue;
      measured.shifts.value[index] = fits[block].moment / throughput;
      measured.shifts.info[index] = shift_info;
      measured.shifts.t[index] = rows.At(static_cast<int>(i), static_cast<int>(row_sum / signal)).t;
    }
    return absl::OkStatus();
  }));
  return measured;
}

absl::StatusOr<Array<float, 3>> FindBesideLines(const RowSpectra& spectra, const CommonLight& light,
                                                const std::vector<double>& throughput, const Psf& psf,
                                                const ShapeTable& shapes, const Workers& workers) {
  const int degree = shapes.degree_y();
  Array<float, 3> beside({psf.fibres, degree, psf.rows});
  SPEXD_RETURN_IF_ERROR(ParallelFor(psf.fibres, workers, [&](int64_t i) {
    const float part = static_cast<float>(throughput[i]);
    if (part <= 0) return absl::OkStatus();
    Array<float, 2> hermite;
    DisperseHermite(psf, shapes, static_cast<int>(i), light.wave, light.spectrum, &hermite);
    const float *flux = spectra.flux.Row(i).data(), *model = light.model.Row(i).data();
    for (int b = 0; b < degree; ++b) {
      const float* from = hermite.Row(b).data();
      float* to = beside.Row(i, b).data();
      for (int row = 0; row < psf.rows; ++row) {
        to[row] = BesideLines(from[row], part, flux[row], model[row]);
      }
    }
    return absl::OkStatus();
  }));
  return beside;
}

}  // namespace spexd::traces
