#include "cuda/memory/block_allocator.h"

#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace spexd::cuda {
namespace {

TEST(BlockAllocator, AlignsEveryBlock) {
  BlockAllocator blocks(10 * kBlockAlignment);
  const auto first = blocks.Take(1), second = blocks.Take(kBlockAlignment + 1);
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(*first, (Block{0, kBlockAlignment}));
  EXPECT_EQ(*second, (Block{kBlockAlignment, 2 * kBlockAlignment}));
  EXPECT_EQ(blocks.free_bytes(), 7 * kBlockAlignment);
}

TEST(BlockAllocator, UsesOnlyWholeAlignmentsOfItsMemory) {
  BlockAllocator blocks(3 * kBlockAlignment - 1);
  EXPECT_EQ(blocks.bytes(), 2 * kBlockAlignment);
  EXPECT_FALSE(blocks.Take(2 * kBlockAlignment + 1).has_value());
  EXPECT_TRUE(blocks.Take(2 * kBlockAlignment).has_value());
}

TEST(BlockAllocator, SaysWhenThereIsNoMore) {
  BlockAllocator blocks(2 * kBlockAlignment);
  ASSERT_TRUE(blocks.Take(1).has_value());
  ASSERT_TRUE(blocks.Take(1).has_value());
  EXPECT_FALSE(blocks.Take(1).has_value());
  EXPECT_FALSE(blocks.Take(std::numeric_limits<int64_t>::max()).has_value());
  EXPECT_FALSE(BlockAllocator(0).Take(1).has_value());
}

TEST(BlockAllocator, GivesNothingForNothing) {
  BlockAllocator blocks(kBlockAlignment);
  const auto none = blocks.Take(0);
  ASSERT_TRUE(none.has_value());
  EXPECT_EQ(none->bytes, 0);
  EXPECT_EQ(blocks.free_bytes(), kBlockAlignment);
  blocks.Return(*none);
  EXPECT_TRUE(blocks.Take(kBlockAlignment).has_value());
}

TEST(BlockAllocator, TakesTheHoleThatFitsBest) {
  BlockAllocator blocks(20 * kBlockAlignment);
  std::vector<Block> taken;
  for (int units : {4, 1, 2, 1, 3, 9}) taken.push_back(*blocks.Take(units * kBlockAlignment));
  blocks.Return(taken[0]);  // 4 units
  blocks.Return(taken[2]);  // 2
  blocks.Return(taken[4]);  // 3
  EXPECT_EQ(blocks.Take(2 * kBlockAlignment)->offset, taken[2].offset);
  EXPECT_EQ(blocks.Take(3 * kBlockAlignment)->offset, taken[4].offset);
  EXPECT_EQ(blocks.Take(3 * kBlockAlignment)->offset, taken[0].offset);
}

TEST(BlockAllocator, TakesFromEitherEndOfAHole) {
  BlockAllocator blocks(4 * kBlockAlignment);
  EXPECT_EQ(blocks.Take(1, BlockAllocator::End::kHigh)->offset, 3 * kBlockAlignment);
  EXPECT_EQ(blocks.Take(1)->offset, 0);
  const auto rest = blocks.Take(2 * kBlockAlignment, BlockAllocator::End::kHigh);
  EXPECT_EQ(rest->offset, kBlockAlignment);
  EXPECT_EQ(blocks.free_bytes(), 0);
  blocks.Return(*rest);
  EXPECT_EQ(blocks.largest_free(), 2 * kBlockAlignment);
}

TEST(BlockAllocator, JoinsNeighboursWhateverTheOrder) {
  for (const auto& order : {std::vector{0, 1, 2}, {2, 1, 0}, {0, 2, 1}, {1, 0, 2}}) {
    BlockAllocator blocks(3 * kBlockAlignment);
    std::vector<Block> taken;
    for (int k = 0; k < 3; ++k) taken.push_back(*blocks.Take(1));
    for (int k : order) blocks.Return(taken[static_cast<size_t>(k)]);
    EXPECT_EQ(blocks.largest_free(), 3 * kBlockAlignment);
  }
}

TEST(BlockAllocator, KnowsThatFreeMemoryInPiecesIsNoLargeBlock) {
  BlockAllocator blocks(4 * kBlockAlignment);
  std::vector<Block> taken;
  for (int k = 0; k < 4; ++k) taken.push_back(*blocks.Take(1));
  blocks.Return(taken[0]);
  blocks.Return(taken[2]);
  EXPECT_EQ(blocks.free_bytes(), 2 * kBlockAlignment);
  EXPECT_EQ(blocks.largest_free(), kBlockAlignment);
  EXPECT_FALSE(blocks.Take(2 * kBlockAlignment).has_value());
}

TEST(BlockAllocator, NeverGivesAByteTwice) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  constexpr int kUnits = 64;
  BlockAllocator blocks(kUnits * kBlockAlignment);
  std::vector<Block> taken;
  std::vector<int> users(kUnits, 0);
  const auto mark = [&](const Block& block, int change) {
    for (int64_t k = 0; k < block.bytes / kBlockAlignment; ++k)
      users[static_cast<size_t>(block.offset / kBlockAlignment + k)] += change;
  };
  for (int step = 0; step < 5000; ++step) {
    if (!taken.empty() && random() % 2 == 0) {
      std::swap(taken[random() % taken.size()], taken.back());
      mark(taken.back(), -1);
      blocks.Return(taken.back());
      taken.pop_back();
    } else if (const auto block =
                   blocks.Take(1 + random() % (12 * kBlockAlignment),
                               random() % 2 == 0 ? BlockAllocator::End::kLow : BlockAllocator::End::kHigh);
               block.has_value()) {
      mark(*block, 1);
      taken.push_back(*block);
    }
    int used = 0;
    for (int user : users) {
      ASSERT_TRUE(user == 0 || user == 1);
      used += user;
    }
    ASSERT_EQ(blocks.free_bytes(), (kUnits - used) * kBlockAlignment);
  }
  for (const Block& block : taken) blocks.Return(block);
  EXPECT_EQ(blocks.largest_free(), kUnits * kBlockAlignment);
}

}  // namespace
}  // namespace spexd::cuda
