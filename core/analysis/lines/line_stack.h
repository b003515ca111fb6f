// What a stack of lines needs that depends on the wavelengths alone, and what its maxima tell. Every engine
// stacks by the same plan.
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

// Where a line is at each redshift: between bins `bin` and `bin + 1`, for redshifts [first, first + size).
struct LineDelays {
  struct Position {
    int bin;
    double part;  // of the way to the next bin
  };
  int64_t first = 0;
  std::vector<Position> positions;
};

// The redshifts that are tried, and how maxima are told among them.
struct RedshiftGrid {
  int64_t redshifts = 0;
  double step = 0;   // of ln(1 + z)
  int64_t near = 0;  // redshifts no further than this from the best one cannot be z2
  // The curvature of a maximum is taken between redshifts so far apart: about a bin, as traces are
  // interpolated linearly between bins, and second differences over one bin are right.
  int64_t wide = 1;
  double relative_bin = 0;  // of ln wavelength, in the middle of the arm; of several arms the widest
};

// Adds an arm's grid to that of several arms, which is all 0 before the first: the bins of the widest count.
void AddArm(const RedshiftGrid& arm, RedshiftGrid* grid);

struct StackPlan : RedshiftGrid {
  double first_wave = 0, bin = 0;  // of the arm: the first wavelength and the step, Angstrom
  std::vector<KnownLine> known;    // lines that explain a peak
  // Profiles of a single line and of the doublet: [offset + kProfileHalf, bin].
  std::vector<Array<double, 2>> profiles;
  std::vector<std::vector<LineDelays>> delays;  // [group][line]
};
// InvalidArgument for options that are not positive, or no bins between the edges.
absl::StatusOr<StackPlan> PlanStack(const std::vector<double>& wave, const LineOptions& options);

// The traces of a group's lines, each delayed to where the line is at every redshift, weighted and added: by
// its ratio for the signal, by the ratio's square for the information. Between two bins both count, by how
// near they are. 0 where no line is in range.
struct StackedGroup {
  explicit StackedGroup(int64_t redshifts) : signal(redshifts, 0), information(redshifts, 0) {}
  std::vector<double> signal, information;  // [redshift]
};
// Adds the traces of an arm and exposure.
void AddToStack(const LineGroup& group, const std::vector<LineDelays>& delays, const FilteredLine& trace,
                StackedGroup* stacked);

// The maxima of dchi2 over redshifts.
struct StackMaxima {
  int64_t best = 0, second = -1;            // redshifts; -1: none is far enough from the best
  double before = 0, dchi2 = 0, after = 0;  // at the best redshift and beside it
  double wide_before = 0, wide_after = 0;   // StackPlan::wide from it (MirroredRedshift)
  double second_dchi2 = 0;
  uint32_t seen = 0, significant = 0;  // groups at the best, a bit each: in range, with more than 3 sigma
  double unexplained = 0;              // the largest gain of a single line that the best does not explain
};
// The result that these make. The variance of ln(1 + z) has two parts. That of the data is 2 / curvature of
// dchi2, as chi-square falls by it. Linear interpolation of traces between bins errs by up to bin^2 / 8 times
// the second derivative, which moves a maximum of Gaussian width s by about bin^2 / (8 s).
LineRedshift RedshiftOf(const RedshiftGrid& grid, const StackMaxima& maxima);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_LINES_LINE_STACK_H_
