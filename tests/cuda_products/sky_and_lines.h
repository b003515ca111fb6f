// Sky and redshifts of emission lines of simulated fields, and the differences allowed between two of them.
#ifndef SPEXD_TESTS_CUDA_PRODUCTS_SKY_AND_LINES_H_
#define SPEXD_TESTS_CUDA_PRODUCTS_SKY_AND_LINES_H_

#include <cstdint>
#include <vector>

#include "core/analysis/analyser/analyser.h"
#include "core/model/frame.h"

namespace spexd::testing {

struct SkyAndLines {
  Sky sky;
  std::vector<LineRedshift> lines;
};
SkyAndLines MakeSkyAndLines(FrameAnalysis* analysis, const std::vector<int>& sky_fibres,
                            const std::vector<int>& targets);

// Returns skies of slightly different brightness, emission lines in every third fibre, and bins and a fibre
// without data.
Frame MakeScene(int fibres, uint32_t seed);
std::vector<int> Rows(int first, int end);

// Returns the largest of |a - b| sqrt(ivar).
double Largest(const Array<double, 2>& a, const Array<double, 2>& b, const Array<double, 2>& ivar);

// The tolerances are those of float32 arithmetic with float64 sums. Prints the largest differences.
void ExpectSameSky(const Sky& found, const Sky& expected);
// `relative`, `absolute`: limits of dchi2.
void ExpectSameLines(const std::vector<LineRedshift>& found, const std::vector<LineRedshift>& expected,
                     double relative, double absolute);
// Compares both for a scene whose first fibres are sky fibres. `there`: a new analysis of the scene.
void ExpectThoseOfProcessors(FrameAnalysis* there, const UsableSpectra& spectra, int sky_fibres);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CUDA_PRODUCTS_SKY_AND_LINES_H_
