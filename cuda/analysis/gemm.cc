#include "cuda/analysis/gemm.h"

#include <cublas_v2.h>

#include <string>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd::cuda {
namespace {

absl::Status ToStatus(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const std::string text = absl::StrFormat("cuBLAS: %s: %s", doing, cublasGetStatusString(status));
  return status == CUBLAS_STATUS_ALLOC_FAILED ? absl::ResourceExhaustedError(text)
                                              : absl::UnavailableError(text);
}

class CublasGemm : public Gemm {
 public:
  ~CublasGemm() override {
    if (handle_ != nullptr) cublasDestroy(handle_);
  }
  absl::Status Open(cudaStream_t stream) {
    SPEXD_RETURN_IF_ERROR(ToStatus(cublasCreate(&handle_), "creating a handle"));
    return ToStatus(cublasSetStream(handle_, stream), "setting a stream");
  }

  absl::Status MultiplyTransposed(const float* a, int64_t rows, const float* b, int64_t columns,
                                  int64_t depth, float* c) override {
    const float one = 1, zero = 0;
    // cuBLAS goes column by column: c^T = b a^T.
    return ToStatus(cublasSgemm(handle_, CUBLAS_OP_T, CUBLAS_OP_N, Int(columns), Int(rows), Int(depth), &one,
                                b, Int(depth), a, Int(depth), &zero, c, Int(columns)),
                    "multiplying matrices");
  }

 private:
  static int Int(int64_t value) { return static_cast<int>(value); }

  cublasHandle_t handle_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Gemm>> MakeGemm(cudaStream_t stream) {
  auto gemm = std::make_unique<CublasGemm>();
  SPEXD_RETURN_IF_ERROR(gemm->Open(stream));
  return gemm;
}

}  // namespace spexd::cuda
