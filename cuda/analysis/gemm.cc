#include "cuda/analysis/gemm.h"

#include <cublas_v2.h>
#include <dlfcn.h>

#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd::cuda {
namespace {

// The functions of cuBLAS that are used. They are looked up at run time, not linked: cuBLAS is large, and
// machines that only extract do not need it.
struct Cublas {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSgemm_v2) sgemm = nullptr;
  decltype(&cublasGetStatusString) status_string = nullptr;

  absl::Status Load(const std::string& name) {
    // Never unloaded, like the module: its CUDA runtime has handlers for the end of the process.
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const auto find = [library](const char* symbol, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, symbol));
      return *function != nullptr;
    };
    if (library != nullptr && find("cublasCreate_v2", &create) && find("cublasDestroy_v2", &destroy) &&
        find("cublasSetStream_v2", &set_stream) && find("cublasSgemm_v2", &sgemm) &&
        find("cublasGetStatusString", &status_string)) {
      return absl::OkStatus();
    }
    const char* const reason = dlerror();
    constexpr int kCuda = CUDART_VERSION / 1000;
    return absl::FailedPreconditionError(absl::StrFormat(
        "products on GPUs need cuBLAS, which cannot be loaded: %s; install cuBLAS of CUDA %d, for spexd "
        "from pip by pip install 'spexd-cuda[products]', else by NVIDIA's package libcublas-%d-%d or a later "
        "minor version, where the system's loader looks or in $LD_LIBRARY_PATH",
        reason != nullptr ? reason : name, kCuda, kCuda, CUDART_VERSION % 1000 / 10));
  }

  absl::Status ToStatus(cublasStatus_t status, const char* doing) const {
    if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
    const std::string text = absl::StrFormat("cuBLAS: %s: %s", doing, status_string(status));
    return status == CUBLAS_STATUS_ALLOC_FAILED ? absl::ResourceExhaustedError(text)
                                                : absl::UnavailableError(text);
  }
};

class CublasGemm : public Gemm {
 public:
  ~CublasGemm() override {
    if (handle_ != nullptr) cublas_.destroy(handle_);
  }
  absl::Status Open(cudaStream_t stream, const std::string& library) {
    SPEXD_RETURN_IF_ERROR(cublas_.Load(library));
    SPEXD_RETURN_IF_ERROR(cublas_.ToStatus(cublas_.create(&handle_), "creating a handle"));
    return cublas_.ToStatus(cublas_.set_stream(handle_, stream), "setting a stream");
  }

  absl::Status MultiplyTransposed(const float* a, int64_t rows, const float* b, int64_t columns,
                                  int64_t depth, float* c) override {
    const float one = 1, zero = 0;
    // cuBLAS stores matrices by columns, so this computes c^T = b a^T.
    return cublas_.ToStatus(
        cublas_.sgemm(handle_, CUBLAS_OP_T, CUBLAS_OP_N, Int(columns), Int(rows), Int(depth), &one, b,
                      Int(depth), a, Int(depth), &zero, c, Int(columns)),
        "multiplying matrices");
  }

 private:
  static int Int(int64_t value) { return static_cast<int>(value); }

  Cublas cublas_;
  cublasHandle_t handle_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Gemm>> MakeGemm(cudaStream_t stream, const std::string& library) {
  auto gemm = std::make_unique<CublasGemm>();
  const std::string soname = absl::StrCat("libcublas.so.", CUBLAS_VER_MAJOR);
  SPEXD_RETURN_IF_ERROR(gemm->Open(stream, library.empty() ? soname : library));
  return gemm;
}

}  // namespace spexd::cuda
