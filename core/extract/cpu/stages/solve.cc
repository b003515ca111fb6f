#include "core/extract/cpu/stages/solve.h"

#include <algorithm>
#include <cmath>

#include "core/model/tolerances.h"

// The order matters: code after the first include is compiled once for each target.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/extract/cpu/stages/solve.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace spexd::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Computes out[j] = sum over terms of a[term][j] x[term][j], for j < count. Up to 31 values behind may be
// read and written.
void SumProducts(const double* const* a, const double* const* x, size_t terms, int count, double* out) {
  const hn::ScalableTag<double> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int j = 0; j < count; j += 4 * lanes) {
    auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
    for (size_t term = 0; term < terms; ++term) {
      const double *from = a[term] + j, *times = x[term] + j;
      sum0 = hn::MulAdd(hn::LoadU(d, from), hn::LoadU(d, times), sum0);
      sum1 = hn::MulAdd(hn::LoadU(d, from + lanes), hn::LoadU(d, times + lanes), sum1);
      sum2 = hn::MulAdd(hn::LoadU(d, from + 2 * lanes), hn::LoadU(d, times + 2 * lanes), sum2);
      sum3 = hn::MulAdd(hn::LoadU(d, from + 3 * lanes), hn::LoadU(d, times + 3 * lanes), sum3);
    }
    hn::StoreU(sum0, d, out + j);
    hn::StoreU(sum1, d, out + j + lanes);
    hn::StoreU(sum2, d, out + j + 2 * lanes);
    hn::StoreU(sum3, d, out + j + 3 * lanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace spexd::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace spexd::cpu {

HWY_EXPORT(SumProducts);

void FluxSolver::Allocate() {
  const int64_t front = (normal_->reach() + 7) / 8 * 8;
  const int64_t stride = RowStride(front + size_ + normal_->reach() + 2 * kTileColumns);
  const int64_t count = (blocks_ + 1) * stride;
  double* memory = memory_.Reserve(kVectors * count);
  std::fill_n(memory, kVectors * count, 0.0);
  for (int k = 0; k < kVectors; ++k) vectors_[k] = {memory + k * count + front, stride};
}

double FluxSolver::Dot(const Vector& a, const Vector& b) const {
  double sum = 0;
  for (int i = 0; i < blocks_; ++i) {
    for (int j = 0; j < size_; ++j) sum += a.Row(i)[j] * b.Row(i)[j];
  }
  return sum;
}

double FluxSolver::Norm(const Vector& a) const {
  double sum = 0;
  for (int i = 0; i < blocks_; ++i) {
    const double *row = a.Row(i), *diagonal = normal_->Own(i, 0);
    for (int j = 0; j < size_; ++j) sum += row[j] * row[j] / diagonal[j];
  }
  return std::sqrt(sum);
}

void FluxSolver::AddScaled(double factor, const Vector& x, const Vector& to) const {
  for (int i = 0; i < blocks_; ++i) {
    for (int j = 0; j < size_; ++j) to.Row(i)[j] += factor * x.Row(i)[j];
  }
}

void FluxSolver::CoupleBlock(int block, int first, int end, const Vector& x, double* out) {
  coefficients_.clear();
  arguments_.clear();
  const auto add = [this](const double* coefficient, const double* argument) {
    coefficients_.push_back(coefficient);
    arguments_.push_back(argument);
  };
  const int reach = normal_->reach(), nearest = normal_->block_reach();
  for (int other = std::max(first, block - nearest); other < std::min(end, block + nearest + 1); ++other) {
    const double* from = x.Row(other);
    for (int k = -reach; k <= reach; ++k) {
      if (other > block) {
        add(normal_->Pair(block, other - block, k), from + k);
      } else if (other < block) {
        add(normal_->Pair(other, block - other, k) - k, from - k);
      } else {
        add(k >= 0 ? normal_->Own(block, k) : normal_->Own(block, -k) + k, from + k);
      }
    }
  }
  HWY_DYNAMIC_DISPATCH(SumProducts)
  (coefficients_.data(), arguments_.data(), coefficients_.size(), size_, out);
  std::fill_n(out + size_, kTileColumns, 0.0);
}

void FluxSolver::Multiply(const Vector& x, const Vector& out) {
  for (int i = 0; i < blocks_; ++i) CoupleBlock(i, 0, blocks_, x, out.Row(i));
}

double FluxSolver::TrueResidual() {
  const Vector& r = at(kResidual);
  Multiply(at(kFlux), r);
  for (int i = 0; i < blocks_; ++i) {
    for (int j = 0; j < size_; ++j) r.Row(i)[j] = normal_->data(i)[j] - r.Row(i)[j];
  }
  return Norm(r);
}

// Applies the left sweep's factorisation: out = (L D L^T)^-1 r. Forward, by blocks, t_i = S_i^-1 (r_i -
// O_(i-1)^T t_(i-1)); backward, t_i -= S_i^-1 O_i t_(i+1).
bool FluxSolver::Precondition(const Elimination& elimination, const Vector& r, const Vector& out,
                              const std::stop_token& stop) {
  const Vector& scratch = at(kScratch);
  for (int i = 0; i < blocks_; ++i) {
    if (stop.stop_requested()) return false;
    CoupleBlock(i, std::max(i - 1, 0), i, out, scratch.Row(i));
    for (int j = 0; j < size_; ++j) out.Row(i)[j] = r.Row(i)[j] - scratch.Row(i)[j];
    elimination.left_factor(i).Solve(out.Row(i));
  }
  for (int i = blocks_ - 2; i >= 0; --i) {
    if (stop.stop_requested()) return false;
    CoupleBlock(i, i + 1, i + 2, out, scratch.Row(i));
    elimination.left_factor(i).Solve(scratch.Row(i));
    for (int j = 0; j < size_; ++j) out.Row(i)[j] -= scratch.Row(i)[j];
  }
  return true;
}

// Runs conjugate gradients from the current residual. r^T M^-1 r is the squared error in the norm of A.
bool FluxSolver::Iterate(const Elimination& elimination, double goal, int* steps,
                         const std::stop_token& stop) {
  const Vector &r = at(kResidual), &z = at(kPreconditioned), &p = at(kDirection), &q = at(kProduct);
  double before = 0;
  for (; *steps < kMaxRefinements; ++*steps) {
    if (!Precondition(elimination, r, z, stop)) return false;
    const double product = Dot(r, z);
    if (!(product > kFluxError * kFluxError) && !(Norm(r) > goal)) return true;
    const double beta = before > 0 ? product / before : 0.0;
    before = product;
    for (int i = 0; i < blocks_; ++i) {
      for (int j = 0; j < size_; ++j) p.Row(i)[j] = z.Row(i)[j] + beta * p.Row(i)[j];
    }
    Multiply(p, q);
    const double length = product / Dot(p, q);
    if (!std::isfinite(length)) return true;
    AddScaled(length, p, at(kFlux));
    AddScaled(-length, q, r);
  }
  return true;
}

bool FluxSolver::Solve(const BundlePlan& plan, const NormalEquations& normal, const Elimination& elimination,
                       const std::stop_token& stop, Array<double, 2>* flux, double* residual) {
  normal_ = &normal;
  blocks_ = plan.blocks();
  size_ = normal.size();
  Allocate();
  for (int i = 0; i < blocks_; ++i) std::copy_n(normal.data(i), size_, at(kResidual).Row(i));
  const double whole = Norm(at(kResidual));  // |b|, the residual of a flux of 0
  double now = whole;
  // Rounding makes the residual that the steps maintain differ from the true one, which decides.
  for (int steps = 0; whole > 0 && steps < kMaxRefinements;) {
    if (!Iterate(elimination, kFluxResidual * whole, &steps, stop)) return false;
    const double before = now;
    now = TrueResidual();
    if (!(now > kFluxResidual * whole) || !(now < 0.5 * before)) break;
  }
  *residual = whole == 0 ? 0 : now / whole;
  flux->Reshape({plan.fibres.count, plan.bins});
  for (int i = 0; i < plan.fibres.count; ++i) {
    const double* const row = at(kFlux).Row(i / plan.block) + i % plan.block;
    for (int j = 0; j < plan.bins; ++j) (*flux)(i, j) = row[j * plan.block];
  }
  return true;
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
