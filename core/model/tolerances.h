// Every constant that trades accuracy for work, with its meaning.
#ifndef SPEXD_CORE_MODEL_TOLERANCES_H_
#define SPEXD_CORE_MODEL_TOLERANCES_H_

namespace spexd {

// ---- The definition of the result (core/extract/README.md): changing one changes what is computed.

// Of the group's largest flux weight: below it, a bin gets the weak flux = 0 prior.
inline constexpr double kMinWeight = 1e-4;
// On every bin.
inline constexpr double kDiagonalPrior = 1e-15;
// Angstrom: below this step the normal matrix is singular in float64 ...
inline constexpr double kFineGridStep = 0.4;
// ... and gains this fraction of its diagonal.
inline constexpr double kFineGridPrior = 1e-10;
// Bins solved for and discarded beyond each end of the grid.
inline constexpr int kMinPadBins = 12;
// Fibres solved at once and kept.
inline constexpr int kGroupFibres = 5;
// Solved for and discarded on each side: less than 1e-7 sigma from solving the whole bundle.
inline constexpr int kGuardFibres = 2;
// Of a pivot's diagonal entry: one that rounding has made tiny or negative is raised to this.
inline constexpr double kLeastPivot = 1e-15;

// ---- The approximations: each is refined until what it discards is below these.

// Bins of covariance kept beyond the spots' reach.
inline constexpr int kCovarianceMargin = 4;
// Largest partial correlation of a bin with the last neighbour kept that is left alone: in the first pass ...
inline constexpr double kPartialCorrelation = 1e-9;
// ... and once widened, when few bins still exceed the first.
inline constexpr double kPartialCorrelationAfter = 3e-9;
// A width is taken so that correlation should fall so many times below.
inline constexpr double kWidenRoom = 3;
// Of the local weight: below, a bin counts as in a hole.
inline constexpr double kHoleWeight = 0.05;
// Reaches of covariance kept beside a hole, and at most.
inline constexpr int kHoleReaches = 4;
// Relative error asked of the rational square root.
inline constexpr double kSquareRootError = 1e-11;

// ---- Masks.

// A spot that sees less than this of usable pixels lies off the CCD or in a hole.
inline constexpr double kSeenNothing = 1e-6;
// More than this fraction of a spot on unusable pixels is SOMEBADPIX.
inline constexpr double kSomeBadPixels = 0.5;

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TOLERANCES_H_
