// Stands in for cuBLAS: the functions that spexd looks up, on host memory.
#include <cublas_v2.h>

namespace {
int handles = 0;
}

extern "C" {

int SpexdFakeCublasHandles() { return handles; }  // number of open handles

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(&handles);
  ++handles;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t) {
  --handles;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t) { return CUBLAS_STATUS_SUCCESS; }

// c = alpha a^T b + beta c, all stored by columns.
cublasStatus_t cublasSgemm_v2(cublasHandle_t, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                              int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                              const float* beta, float* c, int ldc) {
  if (op_a != CUBLAS_OP_T || op_b != CUBLAS_OP_N) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (m == 0) return CUBLAS_STATUS_ALLOC_FAILED;
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      float sum = 0;
      for (int l = 0; l < k; ++l) sum += a[i * lda + l] * b[j * ldb + l];
      c[j * ldc + i] = *alpha * sum + *beta * c[j * ldc + i];
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusString(cublasStatus_t) { return "a text of the library"; }

}  // extern "C"
