// Every constant that trades accuracy for work, with its meaning.
#ifndef SPEXD_CORE_EXTRACT_TOLERANCES_H_
#define SPEXD_CORE_EXTRACT_TOLERANCES_H_

namespace spexd {

// The definition of the result (science.md, "Equations"): changing one changes what is computed.
inline constexpr double kMinWeight =
    1e-4;  // of the group's largest flux weight: below it, the weak flux = 0 prior
inline constexpr double kDiagonalPrior = 1e-15;  // on every bin
inline constexpr double kFineGridStep = 0.4;  // Angstrom: below, the normal matrix is singular in float64 ...
inline constexpr double kFineGridPrior = 1e-10;  // ... and gains this fraction of its diagonal
inline constexpr int kMinPadBins = 12;           // bins solved for and discarded beyond each end of the grid
inline constexpr int kGroupFibres = 5;           // fibres solved at once and kept
inline constexpr int kGuardFibres =
    2;  // solved for and discarded on each side: < 1e-7 sigma from the whole bundle

// The approximations: each is refined until what it discards is below these.
inline constexpr int kCovarianceMargin = 4;  // bins of covariance kept beyond the spots' reach
// Largest partial correlation of a bin with the last neighbour kept that is left alone: in the first pass,
// and once widened (few then exceed the first).
inline constexpr double kPartialCorrelation = 1e-9;
inline constexpr double kPartialCorrelationAfter = 3e-9;
inline constexpr double kWidenRoom = 3;     // a width is taken so that correlation falls so many times below
inline constexpr double kHoleWeight = 0.05;  // of the local weight: below, a bin counts as in a hole
inline constexpr int kHoleReaches = 4;       // reaches of covariance kept beside a hole
inline constexpr double kSquareRootError = 1e-11;  // relative error asked of the rational square root

// Masks (science.md, "Output frame").
inline constexpr double kSeenNothing = 1e-6;  // a spot that sees less lies off the CCD or in a hole
inline constexpr double kSomeBadPixels = 0.5;

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_TOLERANCES_H_
