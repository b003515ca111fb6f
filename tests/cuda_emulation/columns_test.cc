// The positions of an elimination's columns in memory.
#include "cuda/kernels/factor/columns.cuh"

#include "gtest/gtest.h"

namespace spexd::cuda {
namespace {

TEST(ColumnRing, GivesEachStepTheRemainderOfItsNumberAsASlot) {
  for (int slots = 2; slots <= 300; ++slots) {
    const Ring ring(slots);
    for (int step = 0; step < 20000; ++step) ASSERT_EQ(ring.Slot(step), step % slots) << slots << " slots";
    const int last = static_cast<int>(UINT32_MAX / slots / 2);
    for (int step = last - 2 * slots; step <= last; ++step)
      ASSERT_EQ(ring.Slot(step), step % slots) << slots << " slots";
  }
}

}  // namespace
}  // namespace spexd::cuda
