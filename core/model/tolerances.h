// Every constant that trades accuracy for work, with its meaning.
#ifndef SPEXD_CORE_MODEL_TOLERANCES_H_
#define SPEXD_CORE_MODEL_TOLERANCES_H_

namespace spexd {

// ---- The definition of the result (core/extract/README.md): changing one changes what is computed.

// A bin has data if its coverage, the sum of its spot over usable pixels, is at least this. How noisy these
// pixels are, and what other bins have, decides nothing.
inline constexpr double kMinCoverage = 1e-4;
// Priors on bins with data and without, as fractions of the mean ivar of the pixels under their spots. That on
// a bin without data is a hundred times what these pixels could tell of it.
inline constexpr double kDiagonalPrior = 1e-13;
inline constexpr double kEmptyPrior = 1e-6;
// Step in Angstrom below which the normal matrix is singular in float64 ...
inline constexpr double kFineGridStep = 0.4;
// ... and this fraction of its diagonal is added. It biases a mode by less than 1e-4 of its signal-to-noise.
inline constexpr double kFineGridPrior = 1e-8;
// Bins solved for and discarded beyond each end of the grid.
inline constexpr int kMinPadBins = 12;
// Fraction of a pivot's diagonal entry. A pivot that rounding has made tiny or negative is raised to this.
inline constexpr double kMinPivot = 1e-15;

// ---- The approximations: what each one leaves out is below these limits.

// Entries of a fibre's precision beyond its usual width are kept if they exceed this, relative to sqrt(D_jj
// D_kk). See band_rule.h ...
inline constexpr double kBandCut = 3e-11;
// Number of bins by which the usual width exceeds a bundle's reach.
inline constexpr int kBandMargin = 4;
// ... for fine grids, on which spots kFineReach bins apart overlap. Their least eigenvalues are small, and
// what is left out shows in the flux as about a tenth of the limit times the condition number. This is kept
// constant, in standard deviations, also in square roots. The CUDA engine cuts no such grid into chunks ...
inline constexpr double kBandError = 3e-7;
inline constexpr int kFineReach = 12;
// ... but no limit is below this one, which is also that of several fibres eliminated at a time.
inline constexpr double kMinBandCut = 3e-14;
// A column of L^-1 B ends where its last entries have fallen below this, relative to sqrt(D_cc). Their
// squares are what is left out ...
inline constexpr double kColumnTail = 1e-9;
// ... or below this if several fibres are eliminated at a time: least eigenvalues are smaller there.
inline constexpr double kBlockColumnTail = 1e-12;
// The CUDA engine leaves out what a fibre takes from the precision of the fibre beyond its neighbour if that
// is below this fraction of the diagonal ...
inline constexpr double kNegligibleChange = 1e-12;
// ... or below this on such fine grids and where several fibres are eliminated at a time.
inline constexpr double kFineNegligibleChange = 1e-17;
// Columns of L^-1 B in the CUDA engine have room for this number of reaches. They were measured to die away
// within 5 to 16 reaches, on fine grids within 45.
inline constexpr int kColumnReaches = 20;
inline constexpr int kFineColumnReaches = 64;
// Number of reaches on each side of a run of columns that influence what it hands on in the CUDA engine.
inline constexpr int kSupportReaches = 24;
// Rounds of elimination in the CUDA engine before the last one. What the first round took decides in each
// which fibres need work ...
inline constexpr int kUsualRounds = 2;
// ... and largest width of what a round passes on. It counts by the square of a coupling, so that a smaller
// width is enough.
inline constexpr int kMaxSideWidth = 24;
// Bins beyond a chunk of a fibre that the CUDA engine works on side by side, in reaches. Influence decays
// about 5-fold every 3 bins (at a reach of 8): this leaves 1e-11 sigma of a chunk's end, also beside a hole.
inline constexpr int kHaloReaches = 12;
// Fibres further apart than a block is wide are left out of the precision if their couplings contribute less
// than this, relative to sqrt(D_jj D_kk); see FibresPerBlock.
inline constexpr double kNeglectedCoupling = 1e-16;
// The flux is refined until |b - A f| <= this |b|, in the norm of diag(A)^-1/2 ...
inline constexpr double kFluxResidual = 1e-11;
// ... and until its error in the norm of A, estimated by the preconditioner, is below this or falls no more.
// The unit is standard deviations of the result, over all bins of the bundle together ...
inline constexpr double kFluxError = 1e-9;
// ... which the CUDA engine finds where a step leaves more than this fraction of the squared error. It skips
// parts of a bundle whose squared error is below this fraction of the bundle's limit ...
inline constexpr double kFalling = 0.25;
inline constexpr double kIdle = 1e-4;
// ... with at most this many steps of conjugate gradients.
inline constexpr int kMaxRefinements = 200;
// A bundle whose residual stays above this fails.
inline constexpr double kMaxFluxResidual = 1e-8;
// So does one of whose fibres' precisions P the square root Q is wrong: where |Q v|^2 and v^T P v differ by
// more than this fraction, for v = 1 or v = the flux.
inline constexpr double kMaxRootError = 1e-6;
// Relative error asked of the rational square root.
inline constexpr double kSquareRootError = 1e-12;
// The least eigenvalue of a precision P is at least this fraction of 1 / |P^-1 s|, s = (1, -1, 1, ...).
// Neighbouring bins of C = P^-1 have opposite signs, so that C s sums the magnitudes of a row.
inline constexpr double kMinEigenvalue = 0.5;

// ---- Masks.

// A bin is SOMEBADPIX if more than this fraction of its spot is on unusable pixels.
inline constexpr double kSomeBadPixels = 0.5;

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TOLERANCES_H_
