// Random choices for mutators.
#ifndef SPEXD_TESTS_FUZZ_SUPPORT_RANDOM_H_
#define SPEXD_TESTS_FUZZ_SUPPORT_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

// Changes bytes in libFuzzer's own ways; returns the new number of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace spexd::fuzz {

using Random = std::minstd_rand;

// Returns a number from 0 to `count` - 1; 0 if `count` is 0.
inline size_t Below(Random& random, size_t count) { return count == 0 ? 0 : random() % count; }

inline void ChangeBytes(std::string* bytes, size_t most) {
  const size_t size = bytes->size();
  bytes->resize(most > size ? most : size);
  bytes->resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes->data()), size, bytes->size()));
}

}  // namespace spexd::fuzz

#endif  // SPEXD_TESTS_FUZZ_SUPPORT_RANDOM_H_
