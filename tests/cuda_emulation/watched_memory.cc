// Reports the kernels' memory accesses to StreamOrder. The kernels are compiled with -fsanitize=thread, which
// calls these functions at every access, and linked without the sanitizer's own runtime.
#include <cstddef>

#include "tests/cuda_runtime/stream_order.h"

namespace {

using spexd::testing::StreamOrder;

}  // namespace

#define WATCH(bytes)                                                              \
  void __tsan_read##bytes(void* at) { StreamOrder::Read(at, bytes); }             \
  void __tsan_write##bytes(void* at) { StreamOrder::Write(at, bytes); }           \
  void __tsan_unaligned_read##bytes(void* at) { StreamOrder::Read(at, bytes); }   \
  void __tsan_unaligned_write##bytes(void* at) { StreamOrder::Write(at, bytes); } \
  void __tsan_read_write##bytes(void* at) {                                       \
    StreamOrder::Read(at, bytes);                                                 \
    StreamOrder::Write(at, bytes);                                                \
  }                                                                               \
  void __tsan_unaligned_read_write##bytes(void* at) { __tsan_read_write##bytes(at); }

extern "C" {

WATCH(1)
WATCH(2)
WATCH(4)
WATCH(8)
WATCH(16)

void __tsan_read_range(void* at, size_t bytes) { StreamOrder::Read(at, bytes); }
void __tsan_write_range(void* at, size_t bytes) { StreamOrder::Write(at, bytes); }

// Names that Clang uses for copies.
void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  StreamOrder::Read(from, bytes);
  StreamOrder::Write(to, bytes);
  return __builtin_memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  StreamOrder::Read(from, bytes);
  StreamOrder::Write(to, bytes);
  return __builtin_memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, size_t bytes) {
  StreamOrder::Write(to, bytes);
  return __builtin_memset(to, value, bytes);
}

// Other functions that instrumented code calls.
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit(void*) {}
void __tsan_vptr_update(void*, void*) {}
void __tsan_vptr_read(void*) {}

}  // extern "C"
