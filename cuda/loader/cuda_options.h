// Options of what libspexd_cuda.so makes, shared by both sides of the module boundary.
#ifndef SPEXD_CUDA_LOADER_CUDA_OPTIONS_H_
#define SPEXD_CUDA_LOADER_CUDA_OPTIONS_H_

#include <cstdint>
#include <vector>

namespace spexd {

struct CudaEngineOptions {
  std::vector<int> devices = {};  // as CUDA counts them; empty: all
  // Memory taken from each device at start; 0: nine tenths of what is free. On demand: the most that is
  // taken; 0: all that is free.
  int64_t device_memory_bytes = 0;
  int64_t kept_memory_bytes = 0;  // most beside it for spectra that stay on a device; 0: what is free
  int jobs_per_device = 4;        // jobs that run on one device at once
  int chunk_bins = 0;             // see PlanOptions; 0: chosen
  // Device memory is taken when jobs need it: for programs of one job, several of which may share a device.
  bool on_demand = false;
};

struct CudaAnalyserOptions {
  int device = 0;            // as CUDA counts
  int64_t memory_bytes = 0;  // most that products take of the device at once; 0: what is free
};

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_CUDA_OPTIONS_H_
