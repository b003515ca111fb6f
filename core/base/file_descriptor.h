// An owner of a file descriptor.
#ifndef SPEXD_CORE_BASE_FILE_DESCRIPTOR_H_
#define SPEXD_CORE_BASE_FILE_DESCRIPTOR_H_

#include <unistd.h>

#include <utility>

namespace spexd {

// Closes its descriptor on destruction. A negative descriptor stands for none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(other.Release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~FileDescriptor() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  int get() const { return descriptor_; }
  // Hands the descriptor over to the caller.
  int Release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_;
};

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_FILE_DESCRIPTOR_H_
