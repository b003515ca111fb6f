#include "core/extract/cpu/stages/eliminate.h"

#include <algorithm>

#include "core/extract/band_rule.h"

namespace spexd::cpu {

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
  const int front = normal_->reach();
  thresholds_.Assign({plan_->blocks(), normal_->size()});
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
  const int front = normal_->reach(), m = plan_->block, last = plan_->blocks() - 1;
  for (int i = last; i >= 0; --i) {
    SymmetricBand* precision = m == 1 ? &precision_[i] : &block_precision_;
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
    for (int fibre = i * m; m > 1 && fibre < std::min((i + 1) * m, plan_->fibres.count); ++fibre) {
      if (!SeparateFibre(*precision, fibre, stop)) return false;
    }
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

BandView Elimination::Own(int block) const {
  return {normal_->Own(block, 0), normal_->stride(), normal_->size(), normal_->reach()};
}

// The coupling of a block with the next one, where Row(t)[c] is the entry of unknown c - reach + t of the
// eliminated block and unknown c of the other block.
Coupling Elimination::Next(int block, bool transposed) const {
  const int reach = normal_->reach();
  const int64_t stride = normal_->stride();
  // The later block is eliminated: its unknown c - reach + t is at offset t - reach of unknown c.
  if (transposed) return {normal_->Pair(block, 1, -reach), stride, reach};
  // The earlier block is eliminated: its unknown c - reach + t has unknown c at offset reach - t.
  return {normal_->Pair(block, 1, reach) - reach, 1 - stride, reach};
}

// The unknowns of the other fibres stay interleaved. Those of the member are spread out in the same way, with
// unknowns without couplings between them, so that rows and columns of the coupling advance together.
bool Elimination::SeparateFibre(const SymmetricBand& precision, int fibre, const std::stop_token& stop) {
  const int m = plan_->block, member = fibre % m, others = m - 1, size = plan_->bins * others;
  const auto is_other = [&](int unknown) { return unknown % m != member; };
  const auto position = [&](int unknown) {
    const int a = unknown % m;
    return unknown / m * others + (a == member ? 0 : a > member ? a - 1 : a);
  };
  others_.width.resize(size);
  for (int j = 0; j < precision.size(); ++j) {
    const int last = j + precision.width[j];
    if (is_other(j)) others_.width[position(j)] = position(is_other(last) ? last : last - 1) - position(j);
  }
  others_.Shape();
  const int reach = InterleavedWidth(precision.most() / m + 1, others);
  const int64_t stride = RowStride(size + kTileColumns);
  std::fill_n(others_.Diagonal(0), (others_.most() + 1) * others_.stride(), 0.0);
  member_to_others_.assign((2 * reach + 1) * stride, 0.0);
  member_.assign((reach + 1) * stride, 0.0);
  std::fill_n(member_.begin(), size, 1.0);
  for (int k = 0; k <= precision.most(); ++k) {
    for (int j = 0; j + k < precision.size(); ++j) {
      if (k > precision.width[j]) continue;
      const double value = precision.Diagonal(k)[j];
      const bool other = is_other(j);
      const int low = position(j), distance = position(j + k) - low;
      if (other != is_other(j + k)) {
        const int column = other ? low + distance : low, row = other ? low : low + distance;
        member_to_others_[(row - column + reach) * stride + column] = value;
      } else {
        (other ? others_.Diagonal(distance) : member_.data() + distance * stride)[low] = value;
      }
    }
  }
  std::vector<double> diagonal(size, 1.0), threshold(size);
  for (int j = 0; j < plan_->bins; ++j) diagonal[j * others] = Own(fibre / m).Diagonal(0)[j * m + member];
  for (int j = 0; j < size; ++j) threshold[j] = UsualThreshold(diagonal[j], m);
  const BandLimits limits = {UsualBandWidth(plan_->reach) * others, MostBandWidth(plan_->reach) * others,
                             ColumnTail(m), diagonal.data(), threshold.data()};
  if (!factor_.Compute(others_, reach, stop, &factor_scratch_)) return false;
  if (!update_.Compute(factor_, {member_to_others_.data(), stride, reach}, limits, stop)) return false;
  update_.Subtract({member_.data(), stride, size, reach}, limits, &spread_);

  SymmetricBand& out = precision_[fibre];
  out.width.resize(plan_->bins);
  for (int j = 0; j < plan_->bins; ++j) out.width[j] = spread_.width[j * others] / others;
  out.Shape();
  for (int k = 0; k <= out.most(); ++k) {
    for (int j = 0; j < plan_->bins; ++j) {
      out.Diagonal(k)[j] = k <= out.width[j] ? spread_.Diagonal(k * others)[j * others] : 0.0;
    }
  }
  return true;
}

}  // namespace spexd::cpu
