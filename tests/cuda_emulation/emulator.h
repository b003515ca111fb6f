// Runs CUDA kernels on the host, slowly and strictly. A block's threads take turns in an order drawn from a
// seed, and switch only where they wait for each other. Errors that a device might tolerate fail here: lanes
// that do not meet, shared memory that is read before it is written (it is initialised with NaN) or beyond
// its end, copies that are used before they were waited for.
#ifndef SPEXD_TESTS_CUDA_EMULATION_EMULATOR_H_
#define SPEXD_TESTS_CUDA_EMULATION_EMULATOR_H_

#include <driver_types.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace spexd::emulation {

inline constexpr int kWarp = 32;

// State of one thread of a kernel.
struct Thread {
  uint3 index = {0, 0, 0};
  int lane = 0;
  struct Private;
  Private* own = nullptr;
};
// State shared by all threads of a launch.
struct Position {
  uint3 block = {0, 0, 0};
  dim3 block_size, grid_size;
  std::byte* shared = nullptr;
};

// State of the calling thread, inside Run.
inline thread_local constinit Thread* this_thread = nullptr;
inline thread_local constinit const Position* this_position = nullptr;

// Runs `kernel` immediately for all threads of all blocks, block after block, each with `shared_bytes` of
// shared memory. Several launches may run at once, each on its caller's thread. Ends the program with a
// message if the kernel breaks a rule. `stream`: reported to StreamOrder (tests/cuda_runtime) if a test
// watches.
void Run(const char* kernel_name, cudaStream_t stream, dim3 grid, int threads, size_t shared_bytes,
         const std::function<void()>& kernel);

// Sets the shared memory that a kernel may take; otherwise it has a default.
void AllowShared(const void* kernel, int bytes);
bool MayTakeShared(const void* kernel, int64_t bytes);

// Returns the seed of all orders, and prints it at the first call. It is the environment variable
// SPEXD_EMULATION_SEED, else random.
uint64_t Seed();

// ---- For instructions. All lanes of the warp, or all threads of the block, must reach each of them.

// Each lane passes 8-byte words and, once all have done so, gets those of all: words[lane * count + k]. They
// stay valid until the lane meets the others again.
const uint64_t* Exchange(const char* what, const uint64_t* words, int count);
void MeetWarp(const char* what);
// Returns whether `value` was true for any thread.
bool MeetBlock(const char* what, bool value);

// Copies that may be done at any time until they are waited for.
void CopyLater(void* to, const void* from, size_t bytes);
void EndCopyGroup();
void WaitForCopies(int pending_groups);

[[noreturn]] void Fail(const char* what);

}  // namespace spexd::emulation

#endif  // SPEXD_TESTS_CUDA_EMULATION_EMULATOR_H_
