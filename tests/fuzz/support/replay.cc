// The main function of a fuzz target without libFuzzer: runs it on each seed, and then on inputs that its
// mutator makes of the seeds. The changes are the same in every run, so that a failure can be repeated.
//
//   NAME_replay SEEDS_FOLDER CHANGED_INPUTS
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/support/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most,
                                                                unsigned int seed);

namespace spexd::fuzz {
namespace {

constexpr size_t kMaxInputBytes = 65536;  // as in scripts/fuzz.sh

// LLVMFuzzerMutate uses this too, because it has no argument for it.
Random& Changes() {
  static Random random(1);
  return random;
}

std::vector<std::string> ReadSeeds(const std::string& folder) {
  std::vector<std::string> seeds;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return seeds;
}

void RunOn(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

std::string Changed(std::string input) {
  input.resize(std::min(input.size(), kMaxInputBytes));
  if (LLVMFuzzerCustomMutator == nullptr) {
    ChangeBytes(&input, kMaxInputBytes);
    return input;
  }
  const size_t size = input.size();
  input.resize(kMaxInputBytes);
  auto* data = reinterpret_cast<uint8_t*>(input.data());
  input.resize(LLVMFuzzerCustomMutator(data, size, kMaxInputBytes, static_cast<unsigned int>(Changes()())));
  return input;
}

}  // namespace
}  // namespace spexd::fuzz

// Replaces libFuzzer's function: changes, removes or adds one byte.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most) {
  spexd::fuzz::Random& random = spexd::fuzz::Changes();
  const size_t at = spexd::fuzz::Below(random, size);
  const auto value = static_cast<uint8_t>(random());
  if (size > 0 && random() % 4 == 0) {
    std::copy(data + at + 1, data + size, data + at);
    return size - 1;
  }
  if (size < most && (size == 0 || random() % 4 == 0)) {
    std::copy_backward(data + at, data + size, data + size + 1);
    data[at] = value;
    return size + 1;
  }
  if (size > 0) data[at] = value;
  return size;
}

int main(int argc, char** argv) {
  using namespace spexd::fuzz;
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SEEDS_FOLDER CHANGED_INPUTS\n", argv[0]);
    return 2;
  }
  const std::vector<std::string> seeds = ReadSeeds(argv[1]);
  if (seeds.empty()) {
    std::fprintf(stderr, "%s has no seeds\n", argv[1]);
    return 1;
  }
  for (const std::string& seed : seeds) RunOn(seed);
  const int count = std::atoi(argv[2]);
  for (int run = 0; run < count; ++run) {
    std::string input = seeds[run % seeds.size()];
    for (int changes = 1 + run % 3; changes > 0; --changes) input = Changed(input);
    RunOn(input);
  }
  std::printf("%zu seeds and %d inputs made of them\n", seeds.size(), count);
}
