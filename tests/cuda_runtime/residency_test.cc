#include "cuda/runtime/residency.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "gtest/gtest.h"

namespace spexd::cuda {
namespace {

constexpr int64_t kResidencyUnit = kBlockAlignment;

struct FakeResident : ResidentState {
  explicit FakeResident(bool settled) {
    if (settled) NoteSettled();
  }
  bool Settle() override {
    NoteSettled();
    return true;
  }
};

class ResidencyTest : public ::testing::Test {
 protected:
  Residency::Wish Wish(PsfKey psf, int psf_units, int work_units) {
    auto& owner = owners_[psf];
    if (owner == nullptr) owner = std::make_shared<int>(0);
    return {psf, owner, psf_units * kResidencyUnit, work_units * kResidencyUnit};
  }
  // Takes the memory and returns it immediately.
  bool Use(PsfKey psf, int psf_units = 1, int work_units = 1) {
    const auto taken = residency_.Take(Wish(psf, psf_units, work_units));
    if (taken.has_value()) residency_.Return(psf, taken->work, false);
    return taken.has_value();
  }

  std::map<PsfKey, std::shared_ptr<int>> owners_;
  bool settled_ = true;  // value for states made later
  Residency residency_{4 * kResidencyUnit, [this] { return std::make_shared<FakeResident>(settled_); }};
};

TEST_F(ResidencyTest, MakesAPsfOnceAndKeepsIt) {
  const auto first = residency_.Take(Wish(1, 1, 1)), second = residency_.Take(Wish(1, 1, 1));
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_TRUE(first->make);
  EXPECT_FALSE(second->make);
  EXPECT_EQ(first->psf, second->psf);
  EXPECT_EQ(first->state, second->state);
  EXPECT_NE(first->work.offset, second->work.offset);
  residency_.Return(1, first->work, false);
  residency_.Return(1, second->work, false);
  EXPECT_EQ(residency_.work_bytes(), 0);
  EXPECT_EQ(residency_.psf_bytes(), kResidencyUnit);
  EXPECT_FALSE(residency_.Take(Wish(1, 1, 1))->make);
}

TEST_F(ResidencyTest, EvictsTheLeastRecentlyUsed) {
  for (PsfKey psf : {1, 2, 3}) ASSERT_TRUE(Use(psf));
  ASSERT_TRUE(Use(1));
  ASSERT_TRUE(Use(4));
  EXPECT_TRUE(residency_.Holds(1));
  EXPECT_FALSE(residency_.Holds(2));
  EXPECT_TRUE(residency_.Holds(3));
  EXPECT_TRUE(residency_.Holds(4));
}

TEST_F(ResidencyTest, EvictsThoseWhoseOwnerIsGoneFirst) {
  for (PsfKey psf : {1, 2, 3}) ASSERT_TRUE(Use(psf));
  owners_[3].reset();
  ASSERT_TRUE(Use(4));
  EXPECT_TRUE(residency_.Holds(1));
  EXPECT_FALSE(residency_.Holds(3));
  owners_[1].reset();
  EXPECT_EQ(residency_.psf_bytes(), 2 * kResidencyUnit);
}

TEST_F(ResidencyTest, NeverEvictsWhatAJobUses) {
  const auto pinned = residency_.Take(Wish(1, 2, 1));
  ASSERT_TRUE(pinned.has_value());
  EXPECT_FALSE(Use(2));
  EXPECT_TRUE(residency_.Holds(1));
  owners_[1].reset();
  EXPECT_FALSE(Use(2));
  EXPECT_TRUE(residency_.Holds(1));
  residency_.Return(1, pinned->work, false);
  EXPECT_TRUE(Use(2));
  EXPECT_FALSE(residency_.Holds(1));
}

TEST_F(ResidencyTest, NeverEvictsWhatTheDeviceStillWrites) {
  settled_ = false;
  const auto made = residency_.Take(Wish(1, 3, 0));
  EXPECT_TRUE(residency_.Unsettled().empty());  // it is pinned
  residency_.Return(1, made->work, false);
  owners_[1].reset();
  EXPECT_FALSE(Use(2));
  EXPECT_EQ(residency_.psf_bytes(), 3 * kResidencyUnit);
  EXPECT_EQ(residency_.Unsettled(), ResidentStates{made->state});
  made->state->Settle();
  EXPECT_TRUE(residency_.Unsettled().empty());
  EXPECT_TRUE(Use(2));
}

TEST_F(ResidencyTest, HandsOutTheStatesOfThoseThatWent) {
  auto made = residency_.Take(Wish(1, 2, 0));
  residency_.Return(1, made->work, false);
  const std::weak_ptr<ResidentState> state = made->state;
  made.reset();
  EXPECT_TRUE(residency_.TakeGone().empty());
  ASSERT_TRUE(Use(2, 3, 0));
  EXPECT_FALSE(state.expired());
  EXPECT_EQ(residency_.TakeGone().size(), 1u);
  EXPECT_TRUE(state.expired());
}

TEST_F(ResidencyTest, TakesAllOrNothing) {
  const auto held = residency_.Take(Wish(1, 1, 1));
  EXPECT_FALSE(residency_.Take(Wish(2, 1, 2)).has_value());
  EXPECT_FALSE(residency_.Holds(2));
  EXPECT_EQ(residency_.psf_bytes(), kResidencyUnit);
  EXPECT_EQ(residency_.work_bytes(), kResidencyUnit);
  EXPECT_TRUE(residency_.Take(Wish(2, 1, 1)).has_value());
}

TEST_F(ResidencyTest, EvictsNothingForAWishThatStillWouldNotFit) {
  ASSERT_TRUE(Use(1));
  const auto held = residency_.Take(Wish(2, 1, 1));
  ASSERT_TRUE(held.has_value());
  EXPECT_FALSE(Use(3, 1, 2));
  EXPECT_TRUE(residency_.Holds(1));
}

TEST_F(ResidencyTest, MovesAPsfThatIsInItsOwnWay) {
  // PSF 1 is in the first unit, PSF 2 in the second; without PSF 1 there are not three units in a row.
  ASSERT_TRUE(Use(1));
  const auto second = residency_.Take(Wish(2, 1, 0));
  ASSERT_EQ(second->psf.offset, kResidencyUnit);
  residency_.Return(2, second->work, false);
  const auto moved = residency_.Take(Wish(2, 1, 3));
  ASSERT_TRUE(moved.has_value());
  EXPECT_TRUE(moved->make);
}

TEST_F(ResidencyTest, ForgetsAPsfThatCouldNotBeMade) {
  const auto maker = residency_.Take(Wish(1, 1, 1)), other = residency_.Take(Wish(1, 1, 1));
  residency_.Return(1, maker->work, true);
  // The other job still tries this PSF; new jobs do not get it.
  EXPECT_FALSE(residency_.Take(Wish(1, 1, 1)).has_value());
  residency_.Return(1, other->work, false);
  EXPECT_FALSE(residency_.Holds(1));
  EXPECT_TRUE(residency_.Take(Wish(1, 1, 1))->make);
}

TEST_F(ResidencyTest, KnowsWhatItCouldNeverHold) {
  EXPECT_TRUE(residency_.CouldHold(Wish(1, 2, 2)));
  EXPECT_FALSE(residency_.CouldHold(Wish(1, 2, 3)));
  EXPECT_FALSE(residency_.CouldHold(Wish(1, 5, 0)));
  Residency::Wish huge = Wish(1, 1, 0);
  huge.work_bytes = std::numeric_limits<int64_t>::max();
  EXPECT_FALSE(residency_.CouldHold(huge));
}

TEST_F(ResidencyTest, CountsPsfsThatWaitForTheirFirstJob) {
  EXPECT_EQ(residency_.unused(), 0);
  ASSERT_TRUE(Use(1, 1, 0));
  ASSERT_TRUE(Use(2, 1, 0));
  EXPECT_EQ(residency_.unused(), 2);
  ASSERT_TRUE(Use(1));
  EXPECT_EQ(residency_.unused(), 1);
}

TEST_F(ResidencyTest, StaysFlatWithMorePsfsThanItHolds) {
  for (int round = 0; round < 50; ++round) {
    for (PsfKey psf = 1; psf <= 10; ++psf) {
      ASSERT_TRUE(Use(psf));
      EXPECT_EQ(residency_.psf_bytes(), (round > 0 ? 3 : std::min<int64_t>(psf, 3)) * kResidencyUnit);
    }
  }
  owners_.clear();
  EXPECT_EQ(residency_.psf_bytes(), 0);
}

}  // namespace
}  // namespace spexd::cuda
