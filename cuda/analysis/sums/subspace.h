// Leading eigenvectors of a covariance on a device, by subspace iteration with a Rayleigh-Ritz step (Golub &
// Van Loan, Matrix Computations, 8.2.4): matrix products by cuBLAS, systems of the subspace's size on the
// host.
#ifndef SPEXD_CUDA_ANALYSIS_SUMS_SUBSPACE_H_
#define SPEXD_CUDA_ANALYSIS_SUMS_SUBSPACE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/residual_pca.h"
#include "cuda/analysis/analysis_device.h"

namespace spexd::cuda {

// G / n - m m^T about the mean m = sums / n.
struct Covariance {
  const double* products;  // G [bin, bin]: its lower triangle is read
  const double* sums;      // [bin]
  double snapshots;        // n
  int64_t bins;
};

// Keeps the vectors of the latest call, from which the next one goes on if it is of the same size.
class Subspace {
 public:
  explicit Subspace(AnalysisDevice* device) : device_(*device) {}

  // The first `count` components; `seconds`: that the device took, its waits for the host included. Ends when
  // no value changes any more, or after kMostPasses. REQUIRES: the device is current, its mutex held; 1 <=
  // count <= bins.
  absl::StatusOr<PrincipalComponents> Find(const Covariance& covariance, int count, double* seconds);

 private:
  // Eigenvalues of the subspace, the smallest first, and what combines its vectors to the eigenvectors.
  struct Ritz {
    std::vector<double> values;
    std::vector<double> vectors;  // [vector, value]
  };
  absl::Status Begin(int64_t bins, int64_t width);
  absl::Status Orthonormalise();
  absl::Status Multiply(const Covariance& covariance);
  absl::StatusOr<Ritz> Solve();
  absl::StatusOr<PrincipalComponents> Report(const Covariance& covariance, const Ritz& ritz, int count);
  // Copies of small arrays; both wait for the stream.
  absl::Status Down(const double* from, int64_t count, double* to);
  absl::Status Up(const std::vector<double>& from, double* to);

  AnalysisDevice& device_;
  int64_t bins_ = 0, width_ = 0;
  DeviceMemory::Block block_;
  // Parts of block_: vectors, their products with the covariance [vector, bin]; [vector]; [vector, vector].
  double *vectors_ = nullptr, *spare_ = nullptr, *products_ = nullptr, *dots_ = nullptr, *small_ = nullptr;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SUMS_SUBSPACE_H_
