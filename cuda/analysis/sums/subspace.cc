#include "cuda/analysis/sums/subspace.h"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "cuda/analysis/stream_timer.h"
#include "cuda/analysis/sums/sums.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/plan/carver.h"

namespace spexd::cuda {
namespace {

constexpr char kPrincipalComponents[] = "principal components";
constexpr int kMoreVectors = 10;   // than are asked for: the last of a subspace come slowly
constexpr int kMostPasses = 60;    // components of noise never settle
constexpr double kSettled = 1e-9;  // change of a value in a pass, relative to the largest
constexpr double kShift = 1e-6;  // of the largest value: vectors stay independent where there are few spectra
constexpr unsigned kSeed = 20251;  // of the first vectors

}  // namespace

absl::Status Subspace::Down(const double* from, int64_t count, double* to) {
  const cudaStream_t stream = device_.stream.get();
  const cudaError_t error = FirstError(
      {cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(double), cudaMemcpyDeviceToHost, stream),
       cudaStreamSynchronize(stream)});
  SPEXD_CUDA_RETURN_IF_ERROR(error, device_.name, kPrincipalComponents);
  return absl::OkStatus();
}

absl::Status Subspace::Up(const std::vector<double>& from, double* to) {
  const cudaStream_t stream = device_.stream.get();
  const cudaError_t error = FirstError(
      {cudaMemcpyAsync(to, from.data(), from.size() * sizeof(double), cudaMemcpyHostToDevice, stream),
       cudaStreamSynchronize(stream)});
  SPEXD_CUDA_RETURN_IF_ERROR(error, device_.name, kPrincipalComponents);
  return absl::OkStatus();
}

absl::Status Subspace::Begin(int64_t bins, int64_t width) {
  if (bins == bins_ && width == width_) return absl::OkStatus();
  bins_ = width_ = 0;
  const auto lay_out = [&](std::byte* block) {
    Carver carver(block);
    vectors_ = carver.Take<double>(width * bins);
    spare_ = carver.Take<double>(width * bins);
    products_ = carver.Take<double>(width * bins);
    dots_ = carver.Take<double>(width);
    small_ = carver.Take<double>(width * width);
    return carver.bytes();
  };
  SPEXD_ASSIGN_OR_RETURN(block_, device_.memory.Take(lay_out(nullptr)));
  lay_out(block_.data());
  std::mt19937 random(kSeed);
  std::vector<double> first(static_cast<size_t>(width * bins));
  for (double& value : first) value = static_cast<double>(random()) / 0x1p31 - 1;
  SPEXD_RETURN_IF_ERROR(Up(first, vectors_));
  bins_ = bins;
  width_ = width;
  return absl::OkStatus();
}

// Uses the Cholesky factor of the vectors' products with each other, twice: the first time leaves errors of
// the square of the vectors' condition.
absl::Status Subspace::Orthonormalise() {
  const auto size = static_cast<lapack_int>(width_);
  std::vector<double> factor(static_cast<size_t>(width_ * width_));
  for (int pass = 0; pass < 2; ++pass) {
    SPEXD_RETURN_IF_ERROR(
        device_.gemm->MultiplyTransposed(vectors_, width_, vectors_, width_, bins_, small_));
    SPEXD_RETURN_IF_ERROR(Down(small_, width_ * width_, factor.data()));
    lapack_int error = LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', size, factor.data(), size);
    if (error == 0) error = LAPACKE_dtrtri(LAPACK_ROW_MAJOR, 'L', 'N', size, factor.data(), size);
    if (error != 0) {
      width_ = 0;  // the next call begins anew
      return absl::InternalError(
          absl::StrFormat("components: vectors that depend on each other (%d)", error));
    }
    for (int64_t i = 0; i < width_; ++i) {
      for (int64_t j = i + 1; j < width_; ++j) factor[static_cast<size_t>(i * width_ + j)] = 0;
    }
    SPEXD_RETURN_IF_ERROR(Up(factor, small_));
    SPEXD_RETURN_IF_ERROR(device_.gemm->Multiply(small_, width_, vectors_, bins_, width_, spare_));
    std::swap(vectors_, spare_);
  }
  return absl::OkStatus();
}

absl::Status Subspace::Multiply(const Covariance& covariance) {
  SPEXD_RETURN_IF_ERROR(
      device_.gemm->MultiplySymmetric(vectors_, width_, covariance.products, bins_, products_));
  SPEXD_RETURN_IF_ERROR(device_.gemm->MultiplyTransposed(vectors_, width_, covariance.sums, 1, bins_, dots_));
  const CovarianceArgs args = {static_cast<int>(width_),
                               static_cast<int>(bins_),
                               covariance.sums,
                               covariance.snapshots,
                               dots_,
                               products_};
  SPEXD_CUDA_RETURN_IF_ERROR(MakeCovarianceProducts(args, device_.stream.get()), device_.name,
                             kPrincipalComponents);
  return absl::OkStatus();
}

absl::StatusOr<Subspace::Ritz> Subspace::Solve() {
  SPEXD_RETURN_IF_ERROR(device_.gemm->MultiplyTransposed(vectors_, width_, products_, width_, bins_, small_));
  Ritz ritz;
  ritz.values.resize(static_cast<size_t>(width_));
  ritz.vectors.resize(static_cast<size_t>(width_ * width_));
  SPEXD_RETURN_IF_ERROR(Down(small_, width_ * width_, ritz.vectors.data()));
  const auto size = static_cast<lapack_int>(width_);
  const lapack_int error =
      LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'V', 'L', size, ritz.vectors.data(), size, ritz.values.data());
  if (error != 0) {
    width_ = 0;
    return absl::InternalError(absl::StrFormat("components: LAPACK's dsyevd answered %d", error));
  }
  return ritz;
}

absl::StatusOr<PrincipalComponents> Subspace::Report(const Covariance& covariance, const Ritz& ritz,
                                                     int count) {
  PrincipalComponents components;
  components.snapshots = covariance.snapshots;
  components.mean.resize(static_cast<size_t>(bins_));
  SPEXD_RETURN_IF_ERROR(Down(covariance.sums, bins_, components.mean.data()));
  for (double& value : components.mean) value /= covariance.snapshots;
  std::vector<double> combine(static_cast<size_t>(count * width_));
  for (int64_t k = 0; k < count; ++k) {
    const int64_t from = width_ - 1 - k;
    components.values.push_back(ritz.values[static_cast<size_t>(from)]);
    for (int64_t i = 0; i < width_; ++i) {
      combine[static_cast<size_t>(k * width_ + i)] = ritz.vectors[static_cast<size_t>(i * width_ + from)];
    }
  }
  SPEXD_RETURN_IF_ERROR(Up(combine, small_));
  SPEXD_RETURN_IF_ERROR(device_.gemm->Multiply(small_, count, vectors_, bins_, width_, spare_));
  components.vectors.Assign({count, bins_});
  SPEXD_RETURN_IF_ERROR(Down(spare_, count * bins_, components.vectors.data()));
  for (int64_t k = 0; k < count; ++k) {
    auto vector = components.vectors.Row(k);
    const double largest = *std::max_element(vector.begin(), vector.end(),
                                             [](double a, double b) { return std::abs(a) < std::abs(b); });
    if (largest < 0) {
      for (double& value : vector) value = -value;
    }
  }
  return components;
}

absl::StatusOr<PrincipalComponents> Subspace::Find(const Covariance& covariance, int count, double* seconds) {
  const cudaStream_t stream = device_.stream.get();
  const IdleGuard idle(stream);
  SPEXD_RETURN_IF_ERROR(
      Begin(covariance.bins, std::min<int64_t>(covariance.bins, int64_t{count} + kMoreVectors)));
  StreamTimer timer;
  timer.Start(stream);
  std::vector<double> before(static_cast<size_t>(width_), 0);
  Ritz ritz;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    if (pass > 0) {  // the vectors' products with the covariance, and a little of themselves
      const double shift = kShift * std::max(ritz.values.back(), 0.0);
      SPEXD_CUDA_RETURN_IF_ERROR(AddScaledVectors(shift, vectors_, width_ * bins_, products_, stream),
                                 device_.name, kPrincipalComponents);
      std::swap(vectors_, products_);
    }
    SPEXD_RETURN_IF_ERROR(Orthonormalise());
    SPEXD_RETURN_IF_ERROR(Multiply(covariance));
    SPEXD_ASSIGN_OR_RETURN(ritz, Solve());
    bool settled = true;
    for (size_t k = before.size() - static_cast<size_t>(count); k < before.size(); ++k) {
      settled &= std::abs(ritz.values[k] - before[k]) <= kSettled * std::abs(ritz.values.back());
    }
    if (settled) break;
    before = ritz.values;
  }
  timer.Stop(stream);
  absl::StatusOr<PrincipalComponents> components = Report(covariance, ritz, count);
  *seconds = timer.Seconds();
  return components;
}

}  // namespace spexd::cuda
