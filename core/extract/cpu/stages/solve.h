// Stage "solve": the flux from (A^T W A + Lambda) f = A^T W p with all couplings, by conjugate gradients. The
// preconditioner is the left sweep's block factorisation. It is exact except for what the sweep leaves out,
// so few steps are enough.
#ifndef SPEXD_CORE_EXTRACT_CPU_STAGES_SOLVE_H_
#define SPEXD_CORE_EXTRACT_CPU_STAGES_SOLVE_H_

#include <cstdint>
#include <stop_token>
#include <vector>

#include "core/base/array.h"
#include "core/base/memory/aligned_buffer.h"
#include "core/extract/cpu/stages/eliminate.h"
#include "core/extract/cpu/stages/normal.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

class FluxSolver {
 public:
  // Solves for the flux, [fibre, bin]. residual: |b - A f| / |b| in the norm of diag(A)^-1/2, computed from
  // the result itself; 0 if b is 0. Returns false if stopped.
  bool Solve(const BundlePlan& plan, const NormalEquations& normal, const Elimination& elimination,
             const std::stop_token& stop, Array<double, 2>* flux, double* residual);

 private:
  // A vector of the bundle's unknowns, [block, unknown] as in NormalEquations. Zeros surround each block's
  // unknowns.
  struct Vector {
    double* first = nullptr;
    int64_t stride = 0;
    double* Row(int block) const { return first + block * stride; }
  };
  enum Name { kFlux, kResidual, kDirection, kProduct, kPreconditioned, kScratch, kVectors };

  void Allocate();
  const Vector& at(Name name) const { return vectors_[name]; }
  // Computes the part of a block's row of A x that comes from blocks [first, end).
  void CoupleBlock(int block, int first, int end, const Vector& x, double* out);
  void Multiply(const Vector& x, const Vector& out);
  // Sets kResidual to b - A f and returns its norm.
  double TrueResidual();
  // out = M^-1 r, where M is the preconditioner. Returns false if stopped.
  bool Precondition(const Elimination& elimination, const Vector& r, const Vector& out,
                    const std::stop_token& stop);
  bool Iterate(const Elimination& elimination, double goal, int* steps, const std::stop_token& stop);
  double Dot(const Vector& a, const Vector& b) const;
  double Norm(const Vector& a) const;
  void AddScaled(double factor, const Vector& x, const Vector& to) const;

  const NormalEquations* normal_ = nullptr;
  int blocks_ = 0, size_ = 0;  // size_: number of unknowns of a block
  AlignedBuffer<double> memory_;
  Vector vectors_[kVectors];
  std::vector<const double*> coefficients_, arguments_;
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_SOLVE_H_
