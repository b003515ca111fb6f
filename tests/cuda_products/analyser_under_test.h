// The analyser of a GPU. Without a GPU tests are visibly skipped, or fail if SPEXD_REQUIRE_GPU=1.
#ifndef SPEXD_TESTS_CUDA_PRODUCTS_ANALYSER_UNDER_TEST_H_
#define SPEXD_TESTS_CUDA_PRODUCTS_ANALYSER_UNDER_TEST_H_

#include <gtest/gtest.h>

#include <memory>

#include "core/analysis/analyser/analyser.h"

namespace spexd::testing {

class CudaProductsTest : public ::testing::Test {
 protected:
  void SetUp() override;

  std::unique_ptr<FrameAnalysis> Begin(const UsableSpectra& spectra) {
    return analyser_->Begin(spectra, nullptr).value();
  }

  std::unique_ptr<Analyser> analyser_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CUDA_PRODUCTS_ANALYSER_UNDER_TEST_H_
