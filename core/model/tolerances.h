// Every constant that trades accuracy for work, with its meaning.
#ifndef SPEXD_CORE_MODEL_TOLERANCES_H_
#define SPEXD_CORE_MODEL_TOLERANCES_H_

namespace spexd {

// ---- The definition of the result (core/extract/README.md): changing one changes what is computed.

// Of the bundle's largest flux weight: below it, a bin gets the weak flux = 0 prior.
inline constexpr double kMinWeight = 1e-4;
// On every bin.
inline constexpr double kDiagonalPrior = 1e-15;
// Angstrom: below this step the normal matrix is singular in float64 ...
inline constexpr double kFineGridStep = 0.4;
// ... and gains this fraction of its diagonal. It biases a mode by less than 1e-4 of its signal-to-noise.
inline constexpr double kFineGridPrior = 1e-8;
// Bins solved for and discarded beyond each end of the grid.
inline constexpr int kMinPadBins = 12;
// Of a pivot's diagonal entry: one that rounding has made tiny or negative is raised to this.
inline constexpr double kLeastPivot = 1e-15;

// ---- The approximations: what each leaves out is below these.

// Entries of a fibre's precision beyond its usual width are kept where they exceed this, of sqrt(D_jj D_kk) ...
inline constexpr double kBandCut = 3e-11;
// Bins that the usual width exceeds a bundle's reach by.
inline constexpr int kBandMargin = 4;
// ... or this, on grids so fine that spots kFineReach bins apart overlap and where fibres couple so much that
// several are eliminated at a time: least eigenvalues are smaller there.
inline constexpr double kFineBandCut = 1e-13;
inline constexpr int kFineReach = 13;
// A column of L^-1 B ends where its last entries have fallen below this, of sqrt(D_cc): their squares are
// what is left out ...
inline constexpr double kColumnTail = 1e-9;
// ... or below this where several fibres are eliminated at a time: least eigenvalues are smaller there.
inline constexpr double kBlockColumnTail = 1e-12;
// A neighbour is eliminated anew where what changed of it, times its coupling, exceeds this of the diagonal; of that a
// precision feels the square of one more coupling.
inline constexpr double kNegligibleChange = 1e-11;
// Fibres further apart than a block is wide are left out of the precision where their couplings contribute
// less than this, of sqrt(D D); see FibresPerBlock.
inline constexpr double kNeglectedCoupling = 1e-16;
// The flux is refined until |b - A f| <= this |b|, in the norm of diag(A)^-1/2 ...
inline constexpr double kFluxResidual = 1e-11;
// ... and its error in the norm of A, estimated by the preconditioner, is below this: standard deviations of
// the result, of all bins of the bundle together, or falls no more ...
inline constexpr double kFluxError = 1e-9;
// ... by so many steps of conjugate gradients at most.
inline constexpr int kMostRefinements = 200;
// A bundle whose residual stays above this fails.
inline constexpr double kMostFluxResidual = 1e-8;
// Relative error asked of the rational square root.
inline constexpr double kSquareRootError = 1e-12;
// The least eigenvalue of a precision P is at least this fraction of 1 / |P^-1 s|, s = (1, -1, 1, ...):
// neighbouring bins of C = P^-1 have opposite signs, so that C s adds up a row's magnitudes.
inline constexpr double kLeastEigenvalue = 0.5;

// ---- Masks.

// A spot that sees less than this of usable pixels lies off the CCD or in a hole.
inline constexpr double kSeenNothing = 1e-6;
// More than this fraction of a spot on unusable pixels is SOMEBADPIX.
inline constexpr double kSomeBadPixels = 0.5;

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TOLERANCES_H_
