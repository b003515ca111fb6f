// Chi-square of spectra against shifted templates, around the products of matrices that take the time
// (cuda/analysis/gemm.h).
#ifndef SPEXD_CUDA_ANALYSIS_VELOCITY_SCAN_H_
#define SPEXD_CUDA_ANALYSIS_VELOCITY_SCAN_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/analysis/spectra_arrays.h"

namespace spexd::cuda {

struct WeighArgs {
  SpectraArrays spectra;
  const int* rows;  // [row_count]
  int row_count, edge, degree;
  const double* polynomials;  // T_0 .. T_2degree [term, bin]
  float* data;                // w f T_k [row, degree + 1, bin]
  float* weights;             // w T_n [row, 2 degree + 1, bin]
  double* chi2;               // [row]: of flux 0
};
// The weighted spectra, times each polynomial of the continuum.
[[nodiscard]] cudaError_t WeighSpectra(const WeighArgs& args, cudaStream_t stream);

struct ScanArgs {
  int targets, templates, steps, degree;
  const int* first_row;  // [target + 1]: the rows of a target, one for each exposure, follow each other
  const float* data;     // [row, degree + 1, template, velocity]: products with shifted templates
  const float* moments;  // [row, 2 degree + 1, template, velocity]: with their squares
  const double* flat;    // [row]: chi-square of flux 0
  double* chi2;          // [target, template, velocity]: of an arm, its exposures added
};
[[nodiscard]] cudaError_t SolveScan(const ScanArgs& args, cudaStream_t stream);

struct ProfileArgs {
  int arms, targets, templates, steps;
  const double* chi2;  // [arm, target, template, velocity]
  const double* velocities;
  double* best;     // [target, velocity]: the least of all templates, arms added, ..
  int* which;       // .. the first template that has it, ..
  double* refined;  // .. the velocity at the minimum of its parabola, ..
  double* of_arms;  // .. and what each arm has of it [arm, target, velocity]
};
[[nodiscard]] cudaError_t ProfileScan(const ProfileArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_SCAN_H_
