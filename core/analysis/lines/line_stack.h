// The plan of a stack of lines, which depends only on the wavelengths, and the evaluation of its maxima.
// Every engine stacks by the same plan.
#ifndef SPEXD_CORE_ANALYSIS_LINES_LINE_STACK_H_
#define SPEXD_CORE_ANALYSIS_LINES_LINE_STACK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/lines/line_constants.h"
#include "core/analysis/lines/matched_filter.h"
#include "core/base/array.h"

namespace spexd {

// The position of a line at each of the redshifts [first, first + size): between bins `bin` and `bin + 1`.
struct LineDelays {
  struct Position {
    int bin;
    double part;  // part of the way to the next bin
  };
  int64_t first = 0;
  std::vector<Position> positions;
};

// The redshifts to try, and distances for the evaluation of maxima.
struct RedshiftGrid {
  int64_t redshifts = 0;
  double step = 0;   // step of ln(1 + z)
  int64_t near = 0;  // redshifts no further than this from the best one cannot be z2
  // The distance in redshifts over which the curvature of a maximum is taken: about a bin. Traces are
  // interpolated linearly between bins, so second differences over one bin are right.
  int64_t wide = 1;
  double relative_bin = 0;  // widest bin of the arms, in ln wavelength, at the arm's middle
};

// Adds an arm's grid to that of several arms, in which the widest bins count. `grid` is all 0 before the
// first arm.
void AddArm(const RedshiftGrid& arm, RedshiftGrid* grid);

struct StackPlan : RedshiftGrid {
  double first_wave = 0, bin = 0;  // first wavelength and step of the arm, Angstrom
  std::vector<KnownLine> known;    // lines that explain a peak
  // Profiles of a single line and of the doublet: [offset + kProfileHalf, bin].
  std::vector<Array<double, 2>> profiles;
  std::vector<std::vector<LineDelays>> delays;  // [group][line]
};
// Plans the stack. InvalidArgument for options that are not positive, or no bins between the edges.
absl::StatusOr<StackPlan> PlanStack(const std::vector<double>& wave, const LineOptions& options);

// The stacked traces of a group's lines. Each line's trace is delayed to the position of the line at every
// redshift, weighted and added: by its ratio for the signal, by the ratio's square for the information.
// Between two bins, both count by their nearness. 0 where no line is in range.
struct StackedGroup {
  explicit StackedGroup(int64_t redshifts) : signal(redshifts, 0), information(redshifts, 0) {}
  std::vector<double> signal, information;  // [redshift]
};
// Adds the traces of an arm and exposure.
void AddToStack(const LineGroup& group, const std::vector<LineDelays>& delays, const FilteredLine& trace,
                StackedGroup* stacked);

// The maxima of dchi2 over redshifts.
struct StackMaxima {
  int64_t best = 0, second = -1;            // positions of the best and the second; -1: none far enough
  double before = 0, dchi2 = 0, after = 0;  // at the best redshift and its neighbours
  double wide_before = 0, wide_after = 0;   // RedshiftGrid::wide from the best redshift (MirroredRedshift)
  double second_dchi2 = 0;
  uint32_t seen = 0, significant = 0;  // groups at the best, a bit each: in range, above 3 sigma
  double unexplained = 0;              // largest gain of a line that the best does not explain
};
// The redshift with its error and warnings. The variance of ln(1 + z) has two parts. That of the data is 2 /
// curvature of dchi2, because chi-square falls by dchi2. Linear interpolation of traces between bins errs by
// up to bin^2 / 8 times the second derivative, which moves a maximum of Gaussian width s by about bin^2 / (8
// s).
LineRedshift RedshiftOf(const RedshiftGrid& grid, const StackMaxima& maxima);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_LINES_LINE_STACK_H_
