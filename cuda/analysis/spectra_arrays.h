// A frame's spectra as the kernels of products read them.
#ifndef SPEXD_CUDA_ANALYSIS_SPECTRA_ARRAYS_H_
#define SPEXD_CUDA_ANALYSIS_SPECTRA_ARRAYS_H_

#include <cstdint>

namespace spexd::cuda {

// The contents of UsableSpectra in device memory, in float32.
struct SpectraArrays {
  int64_t fibres = 0, bins = 0;
  float *flux = nullptr, *ivar = nullptr;  // [fibre, bin]; flux is finite, ivar 0 without data
  const float* resolution = nullptr;       // [fibre, diagonal, bin]
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SPECTRA_ARRAYS_H_
