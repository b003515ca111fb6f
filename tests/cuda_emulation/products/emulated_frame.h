// A frame of simulated spectra with emulated devices, for tests of products.
#ifndef SPEXD_TESTS_CUDA_EMULATION_PRODUCTS_EMULATED_FRAME_H_
#define SPEXD_TESTS_CUDA_EMULATION_PRODUCTS_EMULATED_FRAME_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/analysis/usable_spectra.h"
#include "tests/cuda_products/sky_and_lines.h"
#include "tests/cuda_runtime/fake_cuda.h"

namespace spexd::cuda {

class EmulatedFrame : public ::testing::Test {
 protected:
  EmulatedFrame(size_t devices, int fibres, uint32_t seed) : frame_(testing::MakeScene(fibres, seed)) {
    testing::FakeCuda::Device device;
    device.free_bytes = size_t{1} << 30;
    testing::FakeCuda::Get().Reset(std::vector(devices, device));
  }

  const Frame frame_;
  const UsableSpectra spectra_ = MakeUsable(frame_).value();
};

}  // namespace spexd::cuda

#endif  // SPEXD_TESTS_CUDA_EMULATION_PRODUCTS_EMULATED_FRAME_H_
