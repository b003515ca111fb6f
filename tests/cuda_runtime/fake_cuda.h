// A CUDA runtime without devices. Memory is the host's, and streams work immediately. It counts calls and
// fails on demand, so that the code around the kernels can be tested anywhere. It is linked in place of the
// real runtime.
#ifndef SPEXD_TESTS_CUDA_RUNTIME_FAKE_CUDA_H_
#define SPEXD_TESTS_CUDA_RUNTIME_FAKE_CUDA_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/threads/mutex.h"

namespace spexd::testing {

// State that tests set and read. There is one for the program, as of the real runtime. Thread-safe.
class FakeCuda {
 public:
  struct Device {
    std::string name = "Fake H200";
    int major = 9;
    size_t shared_bytes = 227 << 10;  // shared memory that a block may take
    size_t free_bytes = size_t{64} << 20;
    cudaError_t lost = cudaSuccess;  // the error of every call once its context is lost
  };

  static FakeCuda& Get();
  static int& CurrentDevice();  // current device of this thread

  // Forgets everything, and sets the devices.
  void Reset(std::vector<Device> devices);
  // Makes the next call with that name fail with this error.
  void FailNext(const std::string& call, cudaError_t error);
  // Runs `action` at the start of the next call with that name (OnNext), or of the call with that number
  // (OnCall).
  void OnNext(const std::string& call, std::function<void()> action) {
    OnCall(call, calls(call) + 1, std::move(action));
  }
  void OnCall(const std::string& call, int number, std::function<void()> action);
  void Lose(int device, cudaError_t error);
  void FailDeviceCount(cudaError_t error, int driver);

  int calls(const std::string& name) const;
  int calls() const;  // calls with any name
  // Returns the devices that some call used.
  std::set<int> used() const;

  // Makes host functions that streams launch wait until they are released; otherwise they run immediately.
  void HoldHostFunctions(bool held);
  // Returns the bytes that were allocated on a device and not freed.
  int64_t taken_bytes(int device) const;

  // ---- For the runtime's functions: returns what a call must return before it does anything.
  cudaError_t Enter(const char* name);
  Device device(int index) const;
  int count() const;
  cudaError_t count_error() const;
  int driver() const;
  void Took(void* data, size_t bytes);
  void Gave(void* data);
  // Returns false if the device has fewer bytes left.
  bool Fits(size_t bytes) const;
  void Launch(std::function<void()> function);

 private:
  mutable Mutex mutex_;
  std::vector<Device> devices_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, cudaError_t> failing_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<std::string, int>, std::function<void()>> actions_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> calls_ ABSL_GUARDED_BY(mutex_);
  std::map<void*, std::pair<int, size_t>> taken_ ABSL_GUARDED_BY(mutex_);  // device and bytes, by address
  std::set<int> used_ ABSL_GUARDED_BY(mutex_);
  cudaError_t count_error_ ABSL_GUARDED_BY(mutex_) = cudaSuccess;
  int driver_ ABSL_GUARDED_BY(mutex_) = 13000;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CUDA_RUNTIME_FAKE_CUDA_H_
