// The tables of a stack of lines in the layout of the kernels. Host code.
#ifndef SPEXD_CUDA_ANALYSIS_LINES_LINE_TABLES_H_
#define SPEXD_CUDA_ANALYSIS_LINES_LINE_TABLES_H_

#include <vector>

#include "core/analysis/lines/line_stack.h"
#include "cuda/analysis/lines/lines.h"

namespace spexd::cuda {

struct LineTables {
  std::vector<float> profiles;    // [filter, offset + kProfileHalf, bin]
  std::vector<LinePosition> positions;  // of all lines, concatenated

  explicit LineTables(const StackPlan& plan);
  const LineStack& stack() const { return stack_; }
  // Returns the arm with the tables at these addresses, without traces.
  LineArm At(const float* profiles, const LinePosition* positions) const;

 private:
  LineStack stack_;
  LineArm arm_;
  std::vector<int64_t> first_positions_;  // [line], in the order of groups
};

// Converts the maxima that a kernel found to the type of core/analysis.
StackMaxima MaximaOf(const LineMaxima& maxima);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_LINES_LINE_TABLES_H_
