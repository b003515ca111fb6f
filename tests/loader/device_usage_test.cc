// The load of devices, as reported by libraries that replace the driver's.
#include "cuda/loader/device_usage.h"

#include <gtest/gtest.h>

#include "tests/loader/modules.h"

namespace spexd::testing {
namespace {

TEST(DeviceUsageTest, TellsOfTheDeviceThatCudaMeans) {
  const auto monitor = DeviceMonitor::Load(FakeModule("fake_driver"), FakeModule("fake_driver"));
  ASSERT_NE(monitor, nullptr);
  EXPECT_EQ(monitor->UsageOf(0).busy, 0.75);
  EXPECT_EQ(monitor->UsageOf(0).used_bytes, 2000);
  EXPECT_EQ(monitor->UsageOf(1).used_bytes, 1000);
}

TEST(DeviceUsageTest, SaysNothingWhereTheDriverDoesNot) {
  const auto monitor = DeviceMonitor::Load(FakeModule("fake_driver"), FakeModule("fake_driver"));
  ASSERT_NE(monitor, nullptr);
  EXPECT_EQ(monitor->UsageOf(1).busy, std::nullopt);
  EXPECT_EQ(monitor->UsageOf(2).busy, std::nullopt);
  EXPECT_EQ(monitor->UsageOf(2).used_bytes, std::nullopt);
}

TEST(DeviceUsageTest, IsNotThereWithoutTheDriversLibraries) {
  EXPECT_EQ(DeviceMonitor::Load("libno-such-library.so.1", FakeModule("fake_driver")), nullptr);
  EXPECT_EQ(DeviceMonitor::Load(FakeModule("fake_driver"), "libno-such-library.so.1"), nullptr);
  EXPECT_EQ(DeviceMonitor::Load(FakeModule("fake_empty"), FakeModule("fake_empty")), nullptr);
}

}  // namespace
}  // namespace spexd::testing
