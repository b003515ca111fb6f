#include "core/extract/cpu/stages/solve.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

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

// out[j] = sum over terms of a[term][j] x[term][j], for j < count. Up to 31 values behind may be read, and
// are written.
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
  const int64_t front = (plan_->reach + 7) / 8 * 8;
  const int64_t stride = RowStride(front + plan_->bins + plan_->reach + 2 * kTileColumns);
  const int64_t count = (plan_->fibres.count + 1) * stride;
  double* memory = memory_.Reserve(kVectors * count);
  std::fill_n(memory, kVectors * count, 0.0);
  for (int k = 0; k < kVectors; ++k) vectors_[k] = {memory + k * count + front, stride};
}

double FluxSolver::Dot(const Vector& a, const Vector& b) const {
  double sum = 0;
  for (int i = 0; i < plan_->fibres.count; ++i) {
    for (int j = 0; j < plan_->bins; ++j) sum += a.Row(i)[j] * b.Row(i)[j];
  }
  return sum;
}

double FluxSolver::Norm(const Vector& a) const {
  double sum = 0;
  for (int i = 0; i < plan_->fibres.count; ++i) {
    const double *row = a.Row(i), *diagonal = normal_->Own(i, 0);
    for (int j = 0; j < plan_->bins; ++j) sum += row[j] * row[j] / diagonal[j];
  }
  return std::sqrt(sum);
}

void FluxSolver::AddScaled(double factor, const Vector& x, const Vector& to) const {
  for (int i = 0; i < plan_->fibres.count; ++i) {
    for (int j = 0; j < plan_->bins; ++j) to.Row(i)[j] += factor * x.Row(i)[j];
  }
}

void FluxSolver::CoupleFibre(int fibre, int first, int end, const Vector& x, double* out) {
  coefficients_.clear();
  arguments_.clear();
  const auto add = [this](const double* coefficient, const double* argument) {
    coefficients_.push_back(coefficient);
    arguments_.push_back(argument);
  };
  const int reach = plan_->reach, nearest = plan_->fibre_reach;
  for (int other = std::max(first, fibre - nearest); other < std::min(end, fibre + nearest + 1); ++other) {
    if (!normal_->IsCoupled(std::min(fibre, other), std::abs(other - fibre))) continue;
    const double* from = x.Row(other);
    for (int k = -reach; k <= reach; ++k) {
      if (other > fibre) {
        add(normal_->Pair(fibre, other - fibre, k), from + k);
      } else if (other < fibre) {
        add(normal_->Pair(other, fibre - other, k) - k, from - k);
      } else {
        add(k >= 0 ? normal_->Own(fibre, k) : normal_->Own(fibre, -k) + k, from + k);
      }
    }
  }
  HWY_DYNAMIC_DISPATCH(SumProducts)
  (coefficients_.data(), arguments_.data(), coefficients_.size(), plan_->bins, out);
  std::fill_n(out + plan_->bins, kTileColumns, 0.0);
}

void FluxSolver::Multiply(const Vector& x, const Vector& out) {
  for (int i = 0; i < plan_->fibres.count; ++i) CoupleFibre(i, 0, plan_->fibres.count, x, out.Row(i));
}

double FluxSolver::TrueResidual() {
  const Vector& r = at(kResidual);
  Multiply(at(kFlux), r);
  for (int i = 0; i < plan_->fibres.count; ++i) {
    for (int j = 0; j < plan_->bins; ++j) r.Row(i)[j] = normal_->data(i)[j] - r.Row(i)[j];
  }
  return Norm(r);
}

void FluxSolver::SolveBlock(const BandFactor& factor, int block, const Vector& x) {
  const int m = plan_->block, first = block * m;
  if (m == 1) return factor.Solve(x.Row(first));
  const int fibres = std::min(m, plan_->fibres.count - first);
  interleaved_.assign(plan_->bins * m, 0.0);
  for (int a = 0; a < fibres; ++a) {
    for (int j = 0; j < plan_->bins; ++j) interleaved_[j * m + a] = x.Row(first + a)[j];
  }
  factor.Solve(interleaved_.data());
  for (int a = 0; a < fibres; ++a) {
    for (int j = 0; j < plan_->bins; ++j) x.Row(first + a)[j] = interleaved_[j * m + a];
  }
}

// out = (L D L^T)^-1 r of the left sweep: forward by blocks t_i = S_i^-1 (r_i - O_(i-1)^T t_(i-1)), then
// backward t_i -= S_i^-1 O_i t_(i+1).
bool FluxSolver::Precondition(const Elimination& elimination, const Vector& r, const Vector& out,
                              const std::stop_token& stop) {
  const int m = plan_->block, fibres = plan_->fibres.count, last = plan_->blocks() - 1;
  const Vector& scratch = at(kScratch);
  for (int block = 0; block <= last; ++block) {
    if (stop.stop_requested()) return false;
    for (int i = block * m; i < std::min((block + 1) * m, fibres); ++i) {
      CoupleFibre(i, std::max(block - 1, 0) * m, block * m, out, scratch.Row(i));
      for (int j = 0; j < plan_->bins; ++j) out.Row(i)[j] = r.Row(i)[j] - scratch.Row(i)[j];
    }
    SolveBlock(elimination.left_factor(block), block, out);
  }
  for (int block = last - 1; block >= 0; --block) {
    if (stop.stop_requested()) return false;
    for (int i = block * m; i < (block + 1) * m; ++i) {
      CoupleFibre(i, (block + 1) * m, std::min((block + 2) * m, fibres), out, scratch.Row(i));
    }
    SolveBlock(elimination.left_factor(block), block, scratch);
    for (int i = block * m; i < (block + 1) * m; ++i) {
      for (int j = 0; j < plan_->bins; ++j) out.Row(i)[j] -= scratch.Row(i)[j];
    }
  }
  return true;
}

// Conjugate gradients from the current residual. r^T M^-1 r is the squared error in the norm of A.
bool FluxSolver::Iterate(const Elimination& elimination, double goal, int* steps,
                         const std::stop_token& stop) {
  const Vector &r = at(kResidual), &z = at(kPreconditioned), &p = at(kDirection), &q = at(kProduct);
  double before = 0;
  for (; *steps < kMostRefinements; ++*steps) {
    if (!Precondition(elimination, r, z, stop)) return false;
    const double product = Dot(r, z);
    if (!(product > kFluxError * kFluxError) && !(Norm(r) > goal)) return true;
    const double turn = before > 0 ? product / before : 0.0;
    before = product;
    for (int i = 0; i < plan_->fibres.count; ++i) {
      for (int j = 0; j < plan_->bins; ++j) p.Row(i)[j] = z.Row(i)[j] + turn * p.Row(i)[j];
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
  plan_ = &plan;
  normal_ = &normal;
  Allocate();
  for (int i = 0; i < plan.fibres.count; ++i) std::copy_n(normal.data(i), plan.bins, at(kResidual).Row(i));
  const double whole = Norm(at(kResidual));  // residual of a flux of 0: |b|
  double now = whole;
  // Rounding makes the residual that the steps keep differ from the true one, which decides.
  for (int steps = 0; whole > 0 && steps < kMostRefinements;) {
    if (!Iterate(elimination, kFluxResidual * whole, &steps, stop)) return false;
    const double before = now;
    now = TrueResidual();
    if (!(now > kFluxResidual * whole) || !(now < 0.5 * before)) break;
  }
  *residual = whole == 0 ? 0 : now / whole;
  flux->Reshape({plan.fibres.count, plan.bins});
  for (int i = 0; i < plan.fibres.count; ++i) std::copy_n(at(kFlux).Row(i), plan.bins, flux->Row(i).data());
  return true;
}

}  // namespace spexd::cpu
#endif  // HWY_ONCE
