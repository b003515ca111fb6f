// Matrix products with a library that is looked up, and the message if it cannot be used.
#include "cuda/analysis/gemm.h"

#include <dlfcn.h>

#include <string>
#include <vector>

#include "tests/loader/modules.h"
#include "tests/support/matchers.h"

namespace spexd::cuda {
namespace {

std::string WhyNot(const std::string& library) {
  const absl::Status status = MakeGemm(nullptr, library).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  return std::string(status.message());
}

TEST(Gemm, SaysWhatToInstallWhereCublasIsMissing) {
  EXPECT_THAT(
      WhyNot("/nowhere/libcublas.so.13"),
      AllOf(HasSubstr("products on GPUs need cuBLAS, which cannot be loaded: /nowhere/libcublas.so.13"),
            HasSubstr("install cuBLAS of CUDA "), HasSubstr("pip install 'spexd-cuda[products]'"),
            HasSubstr("libcublas-"), HasSubstr("$LD_LIBRARY_PATH")));
}

TEST(Gemm, NamesTheFunctionThatALibraryLacks) {
  EXPECT_THAT(WhyNot(testing::FakeModule("fake_empty")), HasSubstr("cublasCreate_v2"));
}

TEST(Gemm, MultipliesMatricesRowByRow) {
  auto gemm = MakeGemm(nullptr, SPEXD_FAKE_CUBLAS);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1};
  std::vector<float> c(8, -1);
  ASSERT_TRUE((*gemm)->MultiplyTransposed(a.data(), 2, b.data(), 4, 3, c.data()).ok());
  EXPECT_THAT(c, ElementsAre(1, 2, 3, 6, 4, 5, 6, 15));
}

TEST(Gemm, PassesTheLibrarysErrorsOn) {
  auto gemm = MakeGemm(nullptr, SPEXD_FAKE_CUBLAS);
  ASSERT_TRUE(gemm.ok()) << gemm.status();
  const absl::Status status = (*gemm)->MultiplyTransposed(nullptr, 1, nullptr, 0, 1, nullptr);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(), "cuBLAS: multiplying matrices: a text of the library");
}

TEST(Gemm, ClosesItsHandle) {
  void* const library = dlopen(SPEXD_FAKE_CUBLAS, RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const auto handles = reinterpret_cast<int (*)()>(dlsym(library, "SpexdFakeCublasHandles"));
  ASSERT_NE(handles, nullptr);
  const int before = handles();
  {
    const auto gemm = MakeGemm(nullptr, SPEXD_FAKE_CUBLAS);
    ASSERT_TRUE(gemm.ok()) << gemm.status();
    EXPECT_EQ(handles(), before + 1);
  }
  EXPECT_EQ(handles(), before);
  dlclose(library);
}

}  // namespace
}  // namespace spexd::cuda
