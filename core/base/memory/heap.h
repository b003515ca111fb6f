// Control over the memory that the process has freed.
#ifndef SPEXD_CORE_BASE_MEMORY_HEAP_H_
#define SPEXD_CORE_BASE_MEMORY_HEAP_H_

#include <cstdint>

namespace spexd {

// Keeps freed blocks below 32 MiB for the next frame instead of returning them to the kernel. In a virtual
// machine, taking them again costs a page fault for each 4 kB, several times the work that is done with them.
// At most four times the peak use is kept: each of glibc's arenas, four here, keeps its own peak. Call it in
// main(), before other threads start.
void KeepFreedMemory();

// Returns freed memory to the kernel. It takes milliseconds, and the next frames must take the memory again.
void ReturnFreedMemory();

// Marks work that may take far more memory than usual. If it did, the destructor returns the process's freed
// memory to the kernel. Destroy it after the work's memory is freed.
class OutsizeWork {
 public:
  explicit OutsizeWork(int64_t usual_bytes) : usual_bytes_(usual_bytes) {}
  OutsizeWork(const OutsizeWork&) = delete;
  OutsizeWork& operator=(const OutsizeWork&) = delete;
  ~OutsizeWork();

  void Add(int64_t bytes) { bytes_ += bytes; }  // adds to the memory that the work takes
  // Marks the work as unusual, whatever memory it took.
  void LeaveNothing() { usual_bytes_ = -1; }

 private:
  int64_t usual_bytes_;
  int64_t bytes_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MEMORY_HEAP_H_
