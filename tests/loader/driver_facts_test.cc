// Facts about the driver and its devices, by libraries that replace its own.
#include "cuda/loader/driver_facts.h"

#include "tests/loader/modules.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

TEST(DriverFactsTest, TellsVersionsAndEachDevice) {
  const auto facts = AskDriver(FakeModule("fake_driver"), FakeModule("fake_driver"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->version, "580.1");
  EXPECT_EQ(facts->cuda_version, 13010);
  ASSERT_THAT(facts->devices, SizeIs(2));
  EXPECT_EQ(facts->devices[0].name, "Fake H9");
  EXPECT_EQ(facts->devices[0].memory_bytes, 9000);
  EXPECT_EQ(facts->devices[0].major, 9);
  EXPECT_EQ(facts->devices[0].minor, 3);
  EXPECT_FALSE(facts->devices[0].mig);
  EXPECT_TRUE(facts->devices[1].mig);
}

TEST(DriverFactsTest, NeedsTheDriverButNotItsManagementLibrary) {
  const auto facts = AskDriver("libno-such-library.so.1", FakeModule("fake_driver"));
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->version, "");
  EXPECT_THAT(AskDriver(FakeModule("fake_driver"), "libno-such-library.so.1").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("is not installed")));
  EXPECT_THAT(AskDriver(FakeModule("fake_driver"), FakeModule("fake_empty")).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("lacks functions")));
}

}  // namespace
}  // namespace spexd::testing
