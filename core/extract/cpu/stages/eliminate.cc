#include "core/extract/cpu/stages/eliminate.h"

#include <algorithm>

#include "core/extract/band_rule.h"

namespace spexd::cpu {
namespace {

// Row length for one diagonal that is read from `reach` before its first unknown to a tile behind its last.
int64_t PaddedStride(int size, int reach) { return RowStride(size + reach + kTileColumns); }

}  // namespace

bool Elimination::Compute(const BundlePlan& plan, const NormalEquations& normal,
                          const std::stop_token& stop) {
  plan_ = &plan;
  normal_ = &normal;
  left_.resize(plan.blocks());
  left_factor_.resize(plan.blocks());
  precision_.resize(plan.fibres.count);
  return SweepLeft(stop) && SweepRight(stop);
}

bool Elimination::SweepLeft(const std::stop_token& stop) {
  const int front = InterleavedWidth(plan_->reach, plan_->block);
  thresholds_.Assign({plan_->blocks(), plan_->bins * plan_->block});
  for (int i = 0; i < plan_->blocks(); ++i) {
    const BandView own = Own(i);
    if (!SetThresholds(i, own, stop)) return false;
    const BandLimits limits = Limits(i, own);
    if (i == 0 || plan_->fibre_reach == 0) {
      update_.Copy(own, limits, &left_[i]);
    } else {
      if (!update_.Compute(left_factor_[i - 1], Next(i - 1, false), limits, stop)) return false;
      update_.Subtract(own, limits, &left_[i]);
    }
    if (!left_factor_[i].Compute(left_[i], front, stop, &factor_scratch_)) return false;
  }
  return true;
}

bool Elimination::SweepRight(const std::stop_token& stop) {
  const int front = InterleavedWidth(plan_->reach, plan_->block), last = plan_->blocks() - 1;
  for (int i = last; i >= 0; --i) {
    SymmetricBand* precision = plan_->block == 1 ? &precision_[i] : &block_precision_;
    const BandView own = Own(i);
    const BandLimits limits = Limits(i, own);
    if (i == last || plan_->fibre_reach == 0) {
      update_.Copy(left_[i].view(), limits, precision);
      update_.Copy(own, limits, &right_);
    } else {
      if (!factor_.Compute(right_, front, stop, &factor_scratch_)) return false;
      if (!update_.Compute(factor_, Next(i, true), limits, stop)) return false;
      update_.Subtract(left_[i].view(), limits, precision);
      update_.Subtract(own, limits, &right_);
    }
    if (plan_->block > 1 && !SeparateFibres(*precision, i, stop)) return false;
  }
  return true;
}

BandLimits Elimination::Limits(int block, const BandView& own) const {
  return {InterleavedWidth(UsualBandWidth(plan_->reach), plan_->block),
          InterleavedWidth(MostBandWidth(plan_->reach), plan_->block), ColumnTail(plan_->block), own.values,
          thresholds_.Row(block).data()};
}

bool Elimination::SetThresholds(int block, const BandView& own, const std::stop_token& stop) {
  double* const threshold = thresholds_.Row(block).data();
  const double* const diagonal = own.Diagonal(0);
  if (!IsConditioned(plan_->reach, plan_->block)) {
    for (int j = 0; j < own.size; ++j) threshold[j] = UsualThreshold(diagonal[j], plan_->block);
    return true;
  }
  spread_.width.resize(own.size);
  for (int j = 0; j < own.size; ++j) spread_.width[j] = std::min(own.most, own.size - 1 - j);
  spread_.Shape();
  for (int k = 0; k <= spread_.most(); ++k) std::copy_n(own.Diagonal(k), own.size, spread_.Diagonal(k));
  if (!factor_.Compute(spread_, 0, stop, &factor_scratch_)) return false;
  for (int j = 0; j < own.size; ++j) threshold[j] = (j % 2 == 0 ? 1 : -1) * std::sqrt(diagonal[j]);
  factor_.Solve(threshold);
  for (int j = 0; j < own.size; ++j) threshold[j] = ConditionedThreshold(diagonal[j], threshold[j]);
  return true;
}

BandView Elimination::Own(int block) {
  if (plan_->block > 1) return AssembleOwn(block);
  return {normal_->Own(block, 0), normal_->stride(), plan_->bins, plan_->reach};
}

// Row(t)[c] is the entry of bin c - reach + t of the eliminated fibre and bin c of the other.
Coupling Elimination::Next(int block, bool transposed) {
  const int reach = InterleavedWidth(plan_->reach, plan_->block);
  const double* lowest;  // the diagonal of offset -reach
  int64_t stride;
  if (plan_->block == 1) {
    lowest = normal_->Pair(block, 1, -reach);
    stride = normal_->stride();
  } else {
    AssembleNext(block);
    stride = PaddedStride(plan_->bins * plan_->block, reach);
    lowest = next_.data() + reach;
  }
  // The later block is eliminated: its bin c - reach + t is at offset t - reach of bin c.
  if (transposed) return {lowest, stride, reach};
  // The earlier one is: its bin c - reach + t has bin c at offset reach - t.
  return {lowest + 2 * reach * stride - reach, 1 - stride, reach};
}

BandView Elimination::AssembleOwn(int block) {
  const int m = plan_->block, reach = plan_->reach, size = plan_->bins * m;
  const int most = InterleavedWidth(reach, m), fibres = plan_->fibres.count;
  const int64_t stride = PaddedStride(size, 0);
  double* values = own_.Reserve((most + 1) * stride);
  std::fill_n(values, (most + 1) * stride, 0.0);
  for (int a = 0; a < m; ++a) {
    const int fibre = block * m + a;
    if (fibre >= fibres) {
      for (int j = 0; j < plan_->bins; ++j) values[j * m + a] = 1;
      continue;
    }
    for (int k = 0; k <= reach; ++k) {
      const double* from = normal_->Own(fibre, k);
      for (int j = 0; j + k < plan_->bins; ++j) values[k * m * stride + j * m + a] = from[j];
    }
    for (int apart = 1; apart <= plan_->fibre_reach && a + apart < m && fibre + apart < fibres; ++apart) {
      for (int offset = -reach; offset <= reach; ++offset) {
        // Unknown j * m + a and unknown (j + offset) * m + a + apart: the lower one is the column.
        const double* from = normal_->Pair(fibre, apart, offset);
        const int distance = offset * m + apart;
        for (int j = std::max(0, -offset); j < plan_->bins && j + offset < plan_->bins; ++j) {
          const int column = std::min(j * m + a, j * m + a + distance);
          values[std::abs(distance) * stride + column] = from[j];
        }
      }
    }
  }
  return {values, stride, size, most};
}

void Elimination::AssembleNext(int block) {
  const int m = plan_->block, reach = plan_->reach, size = plan_->bins * m, fibres = plan_->fibres.count;
  const int most = InterleavedWidth(reach, m);
  const int64_t stride = PaddedStride(size, most), count = (2 * most + 1) * stride + kTileColumns;
  double* values = next_.Reserve(count);
  std::fill_n(values, count, 0.0);
  for (int a = 0; a < m; ++a) {
    const int fibre = block * m + a;
    for (int b = 0; b < m; ++b) {
      const int other = (block + 1) * m + b, apart = other - fibre;
      if (apart > plan_->fibre_reach || other >= fibres) continue;
      for (int offset = -reach; offset <= reach; ++offset) {
        const double* from = normal_->Pair(fibre, apart, offset);
        double* to = values + (offset * m + b - a + most) * stride + most + a;
        for (int j = 0; j < plan_->bins; ++j) to[j * m] = from[j];
      }
    }
  }
}

bool Elimination::SeparateFibres(const SymmetricBand& precision, int block, const std::stop_token& stop) {
  for (int a = 0; a < plan_->block; ++a) {
    const int fibre = block * plan_->block + a;
    if (fibre >= plan_->fibres.count) break;
    if (!SeparateFibre(precision, fibre, a, stop)) return false;
  }
  return true;
}

// Places of a block's unknowns when one of its fibres is set apart: those of the others stay interleaved.
struct Elimination::Separation {
  int block, fibre;

  int others() const { return block - 1; }
  bool is_other(int unknown) const { return unknown % block != fibre; }
  int OtherAt(int unknown) const {
    const int a = unknown % block;
    return unknown / block * others() + (a > fibre ? a - 1 : a);
  }
  // The fibre's bins are spread out as the others' unknowns are. Unknowns without couplings lie between
  // them, so that rows and columns of the coupling advance together.
  int ColumnAt(int unknown) const { return unknown / block * others(); }
};

void Elimination::SplitBlock(const SymmetricBand& precision, const Separation& to, Split* split) {
  const int size = plan_->bins * to.others();
  split->others.width.resize(size);
  for (int j = 0; j < precision.size(); ++j) {
    if (!to.is_other(j)) continue;
    const int last = j + precision.width[j];
    split->others.width[to.OtherAt(j)] = to.OtherAt(to.is_other(last) ? last : last - 1) - to.OtherAt(j);
  }
  split->others.Shape();
  for (int k = 0; k <= split->others.most(); ++k) {
    std::fill_n(split->others.Diagonal(k), split->others.stride(), 0.0);
  }
  split->reach = InterleavedWidth(precision.most() / to.block + 1, to.others());
  split->stride = RowStride(size + kTileColumns);
  split->coupling.assign((2 * split->reach + 1) * split->stride, 0.0);
  split->own.assign((split->reach + 1) * split->stride, 0.0);
  for (int j = 0; j < size; ++j) split->own[j] = 1;
  for (int j = 0; j < precision.size(); ++j) {
    for (int k = 0; k <= precision.width[j]; ++k) {
      const double value = precision.Diagonal(k)[j];
      const bool later = to.is_other(j + k), earlier = to.is_other(j);
      if (later && earlier) {
        const int column = to.OtherAt(j);
        split->others.Diagonal(to.OtherAt(j + k) - column)[column] = value;
      } else if (!later && !earlier) {
        const int column = to.ColumnAt(j);
        split->own[(to.ColumnAt(j + k) - column) * split->stride + column] = value;
      } else {
        const int row = to.OtherAt(later ? j + k : j), column = to.ColumnAt(later ? j : j + k);
        split->coupling[(row - column + split->reach) * split->stride + column] = value;
      }
    }
  }
}

bool Elimination::SeparateFibre(const SymmetricBand& precision, int fibre, int in_block,
                                const std::stop_token& stop) {
  const Separation to = {plan_->block, in_block};
  const int others = to.others(), size = plan_->bins * others;
  SplitBlock(precision, to, &split_);
  std::vector<double> diagonal(size, 1.0), threshold(size);
  for (int j = 0; j < plan_->bins; ++j) diagonal[j * others] = normal_->Own(fibre, 0)[j];
  for (int j = 0; j < size; ++j) threshold[j] = UsualThreshold(diagonal[j], plan_->block);
  const BandLimits limits = {UsualBandWidth(plan_->reach) * others, MostBandWidth(plan_->reach) * others,
                             ColumnTail(plan_->block), diagonal.data(), threshold.data()};
  if (!factor_.Compute(split_.others, split_.reach, stop, &factor_scratch_)) return false;
  const Coupling coupling = {split_.coupling.data(), split_.stride, split_.reach};
  if (!update_.Compute(factor_, coupling, limits, stop)) return false;
  SymmetricBand& spread = spread_;
  update_.Subtract({split_.own.data(), split_.stride, size, split_.reach}, limits, &spread);

  SymmetricBand& out = precision_[fibre];
  out.width.resize(plan_->bins);
  for (int j = 0; j < plan_->bins; ++j) out.width[j] = spread.width[j * others] / others;
  out.Shape();
  for (int k = 0; k <= out.most(); ++k) {
    for (int j = 0; j < plan_->bins; ++j) {
      out.Diagonal(k)[j] = k <= out.width[j] ? spread.Diagonal(k * others)[j * others] : 0.0;
    }
  }
  return true;
}

}  // namespace spexd::cpu
