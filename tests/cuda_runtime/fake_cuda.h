// A CUDA runtime without devices: memory is the host's, streams do their work at once. Counts calls and fails
// on demand, so that what surrounds the kernels can be tested anywhere. Linked in the real one's place.
#ifndef SPEXD_TESTS_CUDA_RUNTIME_FAKE_CUDA_H_
#define SPEXD_TESTS_CUDA_RUNTIME_FAKE_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace spexd::testing {

// What tests set and see; one for the program, as the real runtime is. Thread-safe.
class FakeCuda {
 public:
  struct Device {
    std::string name = "Fake H200";
    int major = 9;
    size_t shared_bytes = 227 << 10;  // that a block may take
    size_t free_bytes = size_t{64} << 20;
    cudaError_t lost = cudaSuccess;  // what every call returns once its context is lost
  };

  static FakeCuda& Get();
  static int& CurrentDevice();  // of this thread

  // Forgets everything.
  void Reset(std::vector<Device> devices);
  // The next call of that name fails so.
  void FailNext(const std::string& call, cudaError_t error);
  void Lose(int device, cudaError_t error);
  void FailDeviceCount(cudaError_t error, int driver);

  int calls(const std::string& name) const;
  int calls() const;  // of any name
  // Devices that some call used.
  std::set<int> used() const;

  // ---- For the runtime's functions: what a call returns before it does anything.
  cudaError_t Enter(const char* name);
  Device device(int index) const;
  int count() const;
  cudaError_t count_error() const;
  int driver() const;
  void Took(void* data, size_t bytes);
  void Gave(void* data);

 private:
  mutable Mutex mutex_;
  std::vector<Device> devices_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, cudaError_t> failing_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);
  std::map<void*, std::pair<int, size_t>> taken_ ABSL_GUARDED_BY(mutex_);  // device and bytes
  std::set<int> used_ ABSL_GUARDED_BY(mutex_);
  cudaError_t count_error_ ABSL_GUARDED_BY(mutex_) = cudaSuccess;
  int driver_ ABSL_GUARDED_BY(mutex_) = 13000;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CUDA_RUNTIME_FAKE_CUDA_H_
