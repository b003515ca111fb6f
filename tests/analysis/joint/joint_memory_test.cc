// The memory of a joint analysis is below its estimate, and not far below it. The test is a separate program,
// because it counts all of malloc's blocks.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "core/products/joint/joint_task.h"
#include "tests/analysis/joint/made_up_spectra.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/analysis/made_up_stars.h"
#include "tests/support/matchers.h"

namespace {

std::atomic<int64_t> bytes_in_use = 0, peak_bytes = 0;

void* Counted(void* memory) {
  if (memory == nullptr) return memory;
  const int64_t now = bytes_in_use += static_cast<int64_t>(malloc_usable_size(memory));
  int64_t peak = peak_bytes;
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now)) {
  }
  return memory;
}

void Uncount(void* memory) {
  if (memory != nullptr) bytes_in_use -= static_cast<int64_t>(malloc_usable_size(memory));
}

}  // namespace

// Replace the functions of the C library in the whole program.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

void* malloc(size_t bytes) { return Counted(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) { return Counted(__libc_calloc(count, bytes)); }
void* realloc(void* memory, size_t bytes) {
  const int64_t before = memory == nullptr ? 0 : static_cast<int64_t>(malloc_usable_size(memory));
  void* const to = __libc_realloc(memory, bytes);
  if (to != nullptr || bytes == 0) bytes_in_use -= before;
  return Counted(to);
}
void* memalign(size_t alignment, size_t bytes) { return Counted(__libc_memalign(alignment, bytes)); }
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  Uncount(memory);
  __libc_free(memory);
}
}

namespace spexd::testing {
namespace {

struct Case {
  int rows = 3, threads = 1;
  bool velocities = true, per_target = false;
};

// Reads a file of spectra, runs a complete analysis, and keeps the files.
void ExpectWithinEstimate(const Case& tried) {
  const TemplateLibrary library = StarTemplates().Make().value();
  Frame frame = DarkFrame(tried.rows, 4);
  std::mt19937 random(20261202);
  AddNoise(&random, &frame);
  for (int row = 0; row < tried.rows; ++row) AddLight(StarLight(50, 0.7, 100), row, &frame);
  TargetSpectra made = HalvesOf(frame);
  if (tried.per_target)
    made.fibermap = SpectraOf(std::vector<int64_t>(static_cast<size_t>(tried.rows), 100)).fibermap;
  const Source source = Source::FromBytes("coadd.fits", FileOf(made)).value();
  made = {};
  JointSize size;
  size.inputs = {ReadSpectraOutline(source).value()};
  size.threads = tried.threads;
  size.per_target = tried.per_target;
  JointTask task;
  task.lines = true;
  task.threads = tried.threads;
  task.per_target = tried.per_target;
  if (tried.velocities) {
    size.templates = library.templates();
    size.samples = library.samples();
    size.models = task.velocities = task.models = true;
    task.templates = &library;
  }
  const int64_t estimate = JointBytes(size), before = bytes_in_use;
  std::vector<std::string> files;
  files.reserve(3);
  peak_bytes = before;
  {
    std::vector<SpectraInput> inputs;
    inputs.push_back(ReadSpectraInput(source).value());
    const TargetSpectra spectra = JoinInputs(std::move(inputs)).value();
    ASSERT_THAT(RunJointTask(spectra, SpectraKind::kTargets, task,
                             [&](JointProduct, absl::StatusOr<JointFile> file) {
                               files.push_back(std::move(file->bytes));
                             })
                    .status(),
                IsOk());
  }
  const int64_t peak = peak_bytes - before;
  int64_t file_bytes = 0;
  for (const std::string& file : files) file_bytes += static_cast<int64_t>(file.size());
  std::printf("%d rows, %d threads: %.1f of %.1f MB; files %.1f of %.1f\n", tried.rows, tried.threads,
              1e-6 * static_cast<double>(peak), 1e-6 * static_cast<double>(estimate),
              1e-6 * static_cast<double>(file_bytes), 1e-6 * static_cast<double>(JointFileBytes(size)));
  EXPECT_LT(peak, estimate);
  if (!tried.per_target) {
    EXPECT_GT(3 * peak, estimate);
  }
  EXPECT_LE(file_bytes, JointFileBytes(size));
}

TEST(JointMemory, OfASmallCoaddIsWithinItsEstimate) { ExpectWithinEstimate({.rows = 200}); }
TEST(JointMemory, OfSeveralThreadsIsWithinItsEstimate) { ExpectWithinEstimate({.rows = 300, .threads = 2}); }
TEST(JointMemory, OfRedshiftsAloneIsWithinItsEstimate) {
  ExpectWithinEstimate({.rows = 200, .velocities = false});
}
TEST(JointMemory, OfManyExposuresOfATargetIsWithinItsEstimate) {
  ExpectWithinEstimate({.rows = 200, .per_target = true});
}

}  // namespace
}  // namespace spexd::testing
