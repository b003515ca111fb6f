#include "tests/cuda_runtime/fake_cuda.h"

#include <utility>

namespace spexd::testing {

int& FakeCuda::CurrentDevice() {
  thread_local int current = 0;
  return current;
}

FakeCuda& FakeCuda::Get() {
  static FakeCuda* const fake = new FakeCuda;  // outlives every engine
  return *fake;
}

void FakeCuda::Reset(std::vector<Device> devices) {
  MutexLock lock(&mutex_);
  devices_ = std::move(devices);
  failing_.clear();
  actions_.clear();
  calls_.clear();
  used_.clear();
  count_error_ = cudaSuccess;
  driver_ = 13000;
  held_ = false;
  waiting_.clear();
}

void FakeCuda::FailNext(const std::string& call, cudaError_t error) {
  MutexLock lock(&mutex_);
  failing_[call] = error;
}

void FakeCuda::OnCall(const std::string& call, int number, std::function<void()> action) {
  MutexLock lock(&mutex_);
  actions_[{call, number}] = std::move(action);
}

void FakeCuda::Lose(int device, cudaError_t error) {
  MutexLock lock(&mutex_);
  devices_[static_cast<size_t>(device)].lost = error;
}

void FakeCuda::FailDeviceCount(cudaError_t error, int driver) {
  MutexLock lock(&mutex_);
  count_error_ = error;
  driver_ = driver;
}

int FakeCuda::calls(const std::string& name) const {
  MutexLock lock(&mutex_);
  const auto found = calls_.find(name);
  return found == calls_.end() ? 0 : found->second;
}

int FakeCuda::calls() const {
  MutexLock lock(&mutex_);
  int count = 0;
  for (const auto& [name, calls] : calls_) count += calls;
  return count;
}

std::set<int> FakeCuda::used() const {
  MutexLock lock(&mutex_);
  return used_;
}

cudaError_t FakeCuda::Enter(const char* name) {
  std::function<void()> action;
  {
    MutexLock lock(&mutex_);
    if (const auto found = actions_.find({name, ++calls_[name]}); found != actions_.end()) {
      action = std::move(found->second);
      actions_.erase(found);
    }
  }
  if (action) action();
  MutexLock lock(&mutex_);
  used_.insert(CurrentDevice());
  if (const auto failing = failing_.find(name); failing != failing_.end()) {
    const cudaError_t error = failing->second;
    failing_.erase(failing);
    return error;
  }
  const size_t index = static_cast<size_t>(CurrentDevice());
  return index < devices_.size() ? devices_[index].lost : cudaErrorInvalidDevice;
}

FakeCuda::Device FakeCuda::device(int index) const {
  MutexLock lock(&mutex_);
  return devices_.at(static_cast<size_t>(index));
}

int FakeCuda::count() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(devices_.size());
}

cudaError_t FakeCuda::count_error() const {
  MutexLock lock(&mutex_);
  return count_error_;
}

int FakeCuda::driver() const {
  MutexLock lock(&mutex_);
  return driver_;
}

void FakeCuda::Took(void* data, size_t bytes) {
  MutexLock lock(&mutex_);
  taken_[data] = {CurrentDevice(), bytes};
  devices_.at(static_cast<size_t>(CurrentDevice())).free_bytes -= bytes;
}

bool FakeCuda::Fits(size_t bytes) const {
  MutexLock lock(&mutex_);
  return devices_.at(static_cast<size_t>(CurrentDevice())).free_bytes >= bytes;
}

int64_t FakeCuda::taken_bytes(int device) const {
  MutexLock lock(&mutex_);
  int64_t bytes = 0;
  for (const auto& [data, taken] : taken_)
    bytes += taken.first == device ? static_cast<int64_t>(taken.second) : 0;
  return bytes;
}

void FakeCuda::HoldHostFunctions(bool held) {
  std::vector<std::function<void()>> released;
  {
    MutexLock lock(&mutex_);
    held_ = held;
    if (!held) released.swap(waiting_);
  }
  for (const auto& function : released) function();
}

void FakeCuda::Launch(std::function<void()> function) {
  {
    MutexLock lock(&mutex_);
    if (held_) {
      waiting_.push_back(std::move(function));
      return;
    }
  }
  function();
}

void FakeCuda::Gave(void* data) {
  MutexLock lock(&mutex_);
  const auto [device, bytes] = taken_.at(data);
  taken_.erase(data);
  if (static_cast<size_t>(device) < devices_.size())
    devices_[static_cast<size_t>(device)].free_bytes += bytes;
}

}  // namespace spexd::testing
