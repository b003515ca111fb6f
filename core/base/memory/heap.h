// How the process's heap treats freed memory.
#ifndef SPEXD_CORE_BASE_MEMORY_HEAP_H_
#define SPEXD_CORE_BASE_MEMORY_HEAP_H_

#include <cstdint>

namespace spexd {

// Keeps blocks below 32 MiB for the next frame instead of returning them to the kernel: in a virtual machine
// taking them again, a fault for each 4 kB, costs several times what is done with them. What stays is at most
// four times what was in use at once: each of glibc's arenas, four here, keeps the most that it had. For
// main(), before other threads start.
void KeepFreedMemory();

// Returns to the kernel what is freed now. Takes milliseconds, and the next frames take the memory again.
void ReturnFreedMemory();

// Work that may take far more memory than usual. If it did, what the process then holds freed is returned to
// the kernel when this is destroyed, which should be after the work's memory is freed.
class OutsizeWork {
 public:
  explicit OutsizeWork(int64_t usual_bytes) : usual_bytes_(usual_bytes) {}
  OutsizeWork(const OutsizeWork&) = delete;
  OutsizeWork& operator=(const OutsizeWork&) = delete;
  ~OutsizeWork();

  void Add(int64_t bytes) { bytes_ += bytes; }  // memory that the work takes
  // Calls the work unusual, whatever it took.
  void LeaveNothing() { usual_bytes_ = -1; }

 private:
  int64_t usual_bytes_;
  int64_t bytes_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MEMORY_HEAP_H_
