// The devices of the module that programs load in place of the real one.
#include "tests/cuda_runtime/fake_cuda.h"

namespace spexd::testing {
namespace {

[[maybe_unused]] const bool kDevicesAreThere = [] {
  FakeCuda::Device device;
  device.name = "Emulated GPU";
  device.free_bytes = size_t{4} << 30;  // a server's engine leaves a tenth of it for products
  FakeCuda::Get().Reset({device});
  return true;
}();

}  // namespace
}  // namespace spexd::testing
