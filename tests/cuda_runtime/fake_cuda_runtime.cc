// The runtime's functions, on top of FakeCuda.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "tests/cuda_runtime/fake_cuda.h"
#include "tests/cuda_runtime/stream_order.h"

namespace {

using spexd::testing::FakeCuda;
using spexd::testing::StreamOrder;

// The clock counts the records of events.
std::atomic<uint64_t> clock_ticks = 0;

struct FakeEvent {
  std::atomic<uint64_t> time{0};
};
struct FakeStream {
  int device = 0;
};

FakeEvent* From(cudaEvent_t event) { return reinterpret_cast<FakeEvent*>(event); }
FakeStream* From(cudaStream_t stream) { return reinterpret_cast<FakeStream*>(stream); }

}  // namespace

#define FAKE_ENTER()                                                                     \
  if (const cudaError_t error = FakeCuda::Get().Enter(__func__); error != cudaSuccess) { \
    return error;                                                                        \
  }

extern "C" {

// ---- devices

cudaError_t cudaDriverGetVersion(int* version) {
  *version = FakeCuda::Get().driver();
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = FakeCuda::CurrentDevice();
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = FakeCuda::Get().count();
  return FakeCuda::Get().count_error();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const FakeCuda::Device fake = FakeCuda::Get().device(device);
  std::strncpy(properties->name, fake.name.c_str(), sizeof(properties->name) - 1);
  properties->major = fake.major;
  properties->minor = 0;
  properties->sharedMemPerBlockOptin = fake.shared_bytes;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  FAKE_ENTER();
  *value = 4;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  FakeCuda::CurrentDevice() = device;
  FAKE_ENTER();
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    default:
      return "a fake error";
  }
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  FAKE_ENTER();
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

// ---- memory

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  FAKE_ENTER();
  *free = FakeCuda::Get().device(FakeCuda::CurrentDevice()).free_bytes;
  *total = size_t{1} << 30;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, size_t bytes) {
  FAKE_ENTER();
  if (!FakeCuda::Get().Fits(bytes)) return cudaErrorMemoryAllocation;
  *data = std::aligned_alloc(256, bytes);
  FakeCuda::Get().Took(*data, bytes);
  return cudaSuccess;
}

cudaError_t cudaFree(void* data) {
  FakeCuda::Get().Gave(data);
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaHostRegister(void*, size_t, unsigned int) {
  FAKE_ENTER();
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  FAKE_ENTER();
  const StreamOrder::Operation operation(__func__, stream);
  StreamOrder::Read(from, bytes);
  StreamOrder::Write(to, bytes);
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  FAKE_ENTER();
  const StreamOrder::Operation operation(__func__, stream);
  StreamOrder::Write(to, bytes);
  std::memset(to, value, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  FAKE_ENTER();
  const StreamOrder::Operation operation(__func__, stream);
  for (size_t row = 0; row < height; ++row) {
    char* const at = static_cast<char*>(to) + row * pitch;
    StreamOrder::Write(at, width);
    std::memset(at, value, width);
  }
  return cudaSuccess;
}

// ---- streams

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int) {
  FAKE_ENTER();
  *stream = reinterpret_cast<cudaStream_t>(new FakeStream{FakeCuda::CurrentDevice()});
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete From(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
  FAKE_ENTER();
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t) {
  FAKE_ENTER();
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int) {
  FAKE_ENTER();
  StreamOrder::Wait(stream, event);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
  FAKE_ENTER();
  FakeCuda::Get().Launch([function, data] { function(data); });
  return cudaSuccess;
}

// ---- events

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) {
  FAKE_ENTER();
  *event = reinterpret_cast<cudaEvent_t>(new FakeEvent);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete From(event);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  FAKE_ENTER();
  if (From(stream)->device != FakeCuda::CurrentDevice()) return cudaErrorInvalidResourceHandle;
  From(event)->time = ++clock_ticks;
  StreamOrder::Record(event, stream);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t) {
  FAKE_ENTER();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  FAKE_ENTER();
  return From(event)->time > 0 ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  FAKE_ENTER();
  *milliseconds = static_cast<float>(From(to)->time - From(from)->time);
  return cudaSuccess;
}

}  // extern "C"
