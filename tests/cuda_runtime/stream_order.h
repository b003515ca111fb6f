// Finds operations on streams that may run at the same time although one of them writes what the other uses.
//
// On a device two operations are ordered if they are on one stream, or if an event that was recorded after
// the first was waited for before the second. The fake runtime does each operation immediately, so a missing
// wait does not change its results. Instead, this class records what each operation reads and writes, and
// which operations precede it by streams and events. The fake runtime reports copies, fills, events and
// waits, the emulator reports kernels (tests/cuda_emulation).
#ifndef SPEXD_TESTS_CUDA_RUNTIME_STREAM_ORDER_H_
#define SPEXD_TESTS_CUDA_RUNTIME_STREAM_ORDER_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spexd::testing {

// Watches a block of memory as long as it exists. REQUIRES: only one exists at a time; one thread enqueues.
class StreamOrder {
 public:
  StreamOrder(const void* memory, size_t bytes);
  ~StreamOrder() { current_ = nullptr; }
  StreamOrder(const StreamOrder&) = delete;
  StreamOrder& operator=(const StreamOrder&) = delete;

  // Returns one line, with their names, for each two operations that are unordered and use the same bytes.
  const std::vector<std::string>& races() const { return races_; }
  int operations() const { return static_cast<int>(done_.size()); }
  // Returns the number of pairs of unordered operations.
  int unordered() const { return unordered_; }

  // ---- For the fake runtime and the emulator

  // Returns the object that exists; null: nobody watches.
  static StreamOrder* current() { return current_; }

  // An operation while it is done. Reads and writes during its lifetime belong to it.
  class Operation {
   public:
    Operation(const char* name, cudaStream_t stream) {
      if (current_ != nullptr) current_->Begin(name, stream);
    }
    ~Operation() {
      if (current_ != nullptr) current_->End();
    }
    Operation(const Operation&) = delete;
    Operation& operator=(const Operation&) = delete;
  };
  static void Read(const void* from, size_t bytes) {
    if (current_ != nullptr) current_->Mark(from, bytes, &current_->reads_);
  }
  static void Write(const void* to, size_t bytes) {
    if (current_ != nullptr) current_->Mark(to, bytes, &current_->writes_);
  }
  static void Record(cudaEvent_t event, cudaStream_t stream) {
    if (current_ != nullptr) current_->events_[event] = current_->streams_[stream];
  }
  static void Wait(cudaStream_t stream, cudaEvent_t event) {
    if (current_ != nullptr) current_->Join(stream, event);
  }

 private:
  // For each stream, the number of its operations that come before.
  using Clock = std::map<cudaStream_t, int>;
  // Words of memory, ordered by i: bit k of {i, bits} is word 64 i + k.
  static constexpr size_t kWordBytes = 4;
  using Words = std::vector<std::pair<uint32_t, uint64_t>>;
  struct Done {
    std::string name;
    cudaStream_t stream;
    int number;  // number in its stream, from 1 on
    Words reads, writes;
  };

  void Begin(const char* name, cudaStream_t stream);
  void End();
  void Join(cudaStream_t stream, cudaEvent_t event);
  void Mark(const void* at, size_t bytes, std::vector<uint64_t>* bits) {
    const uintptr_t first = reinterpret_cast<uintptr_t>(at) - begin_;  // very large before the block
    if (!open_ || first >= bytes_ || bytes == 0) return;
    const size_t last = std::min<size_t>(first + bytes, bytes_) - 1;
    for (size_t word = first / kWordBytes; word <= last / kWordBytes; ++word)
      (*bits)[word / 64] |= uint64_t{1} << word % 64;
  }
  static Words TakeWords(std::vector<uint64_t>* bits);
  void Compare(const Done& now, const Done& before);
  int NumberOf(cudaStream_t stream) const;

  static StreamOrder* current_;
  const uintptr_t begin_;
  const size_t bytes_;
  bool open_ = false;
  std::vector<uint64_t> reads_, writes_;  // of the current operation
  std::map<cudaStream_t, Clock> streams_;
  std::map<cudaEvent_t, Clock> events_;
  std::vector<cudaStream_t> seen_;  // in the order of their first operations
  std::vector<Done> done_;
  int unordered_ = 0;
  std::set<std::string> told_;
  std::vector<std::string> races_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CUDA_RUNTIME_STREAM_ORDER_H_
