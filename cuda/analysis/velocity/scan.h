// Chi-square of spectra against shifted templates: the steps before and after the matrix products
// (cuda/analysis/gemm.h), which take most of the time.
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
// Multiplies the weighted spectra by each polynomial of the continuum.
[[nodiscard]] cudaError_t WeighSpectra(const WeighArgs& args, cudaStream_t stream);

struct ScanArgs {
  int targets, templates, steps, degree;
  const int* first_row;  // [target + 1]: the rows of a target, one for each exposure, are consecutive
  const float* data;     // [row, degree + 1, template, velocity]: products with the shifted templates
  const float* moments;  // [row, 2 degree + 1, template, velocity]: products with their squares
  const double* flat;    // [row]: chi-square of flux 0
  double* chi2;          // [target, template, velocity]: of an arm, summed over exposures
};
[[nodiscard]] cudaError_t SolveScan(const ScanArgs& args, cudaStream_t stream);

struct ProfileArgs {
  int arms, targets, templates, steps;
  const double* chi2;  // [arm, target, template, velocity]
  const double* velocities;
  double* best;     // [target, velocity]: the least of all templates, summed over arms
  int* which;       // [target, velocity]: the first template that has it
  double* refined;  // [target, velocity]: velocity at the minimum of its parabola
  double* of_arms;  // [arm, target, velocity]: each arm's part of `best`
};
[[nodiscard]] cudaError_t ProfileScan(const ProfileArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_SCAN_H_
