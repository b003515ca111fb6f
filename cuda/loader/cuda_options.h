// Options of the engine and the analyser in libspexd_cuda.so, shared by both sides of the module boundary.
#ifndef SPEXD_CUDA_LOADER_CUDA_OPTIONS_H_
#define SPEXD_CUDA_LOADER_CUDA_OPTIONS_H_

#include <cstdint>
#include <vector>

namespace spexd {

struct CudaEngineOptions {
  std::vector<int> devices = {};  // CUDA indices; empty: all
  // Memory taken from each device at start; 0: nine tenths of what is free. With on_demand: the limit; 0: all
  // that is free.
  int64_t device_memory_bytes = 0;
  int64_t kept_memory_bytes = 0;  // limit, besides device_memory_bytes, for spectra that stay on a device; 0:
                                  // what is free
  int jobs_per_device = 4;        // jobs that run on one device at once
  int chunk_bins = 0;             // see PlanOptions; 0: chosen
  // Takes device memory when jobs need it: for programs of one job, several of which may share a device.
  bool on_demand = false;
};

struct CudaAnalyserOptions {
  int device = 0;            // CUDA index
  int64_t memory_bytes = 0;  // most device memory that products take at once; 0: what is free
};

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_CUDA_OPTIONS_H_
