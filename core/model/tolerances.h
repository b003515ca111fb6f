// All constants that trade accuracy for work.
#ifndef SPEXD_CORE_MODEL_TOLERANCES_H_
#define SPEXD_CORE_MODEL_TOLERANCES_H_

namespace spexd {

// ---- The definition of the result (core/extract/README.md): changing one changes what is computed.

// The least coverage of a bin that has data. Coverage is the sum of a bin's spot over usable pixels. The
// noise of these pixels and other bins do not matter.
inline constexpr double kMinCoverage = 1e-4;
// Priors on bins with and without data, as fractions of the mean ivar of the pixels under their spots. The
// prior on a bin without data is at least a hundred times what these pixels can tell of it.
inline constexpr double kDiagonalPrior = 1e-13;
inline constexpr double kEmptyPrior = 1e-6;
// The step, in Angstrom, below which a grid is fine: its normal matrix is singular in float64.
inline constexpr double kFineGridStep = 0.4;
// The fraction of the normal matrix's diagonal that is added on fine grids. It biases a mode by less than
// 1e-4 of its signal-to-noise.
inline constexpr double kFineGridPrior = 1e-8;
// The least number of bins solved for and discarded beyond each end of the grid.
inline constexpr int kMinPadBins = 12;
// The least pivot, as a fraction of its diagonal entry. A pivot that rounding has made tiny or negative is
// raised to it.
inline constexpr double kMinPivot = 1e-15;

// ---- The approximations: what each one leaves out is below these limits.

// The cut of a fibre's precision: entries beyond its usual width are kept if they exceed this, relative to
// sqrt(D_jj D_kk). See band_rule.h, also for the other cuts.
inline constexpr double kBandCut = 3e-11;
// The number of bins by which the usual width exceeds a bundle's reach.
inline constexpr int kBandMargin = 4;
// The cut on grids on which spots kFineReach bins apart overlap, as the error that it may cause in standard
// deviations. Such grids have small least eigenvalues, and the flux's error is about a tenth of the cut times
// the condition number, also in square roots. The cut therefore falls as the condition number grows. The CUDA
// engine does not divide such grids into chunks.
inline constexpr double kBandError = 3e-7;
inline constexpr int kFineReach = 12;
// The least cut on any grid. It is also the cut where several fibres are eliminated at a time.
inline constexpr double kMinBandCut = 3e-14;
// The tail of a column of L^-1 B, relative to sqrt(D_cc). The column ends where its last entries are below
// this. The squares of the entries left out are missing from the result.
inline constexpr double kColumnTail = 1e-9;
// The same tail where several fibres are eliminated at a time, because least eigenvalues are smaller there.
inline constexpr double kBlockColumnTail = 1e-12;
// The change that the CUDA engine neglects: that of the precision of the fibre beyond a neighbour, as a
// fraction of the diagonal.
inline constexpr double kNegligibleChange = 1e-12;
// The same fraction on grids of reach kFineReach and more, and where several fibres are eliminated at a time.
inline constexpr double kFineNegligibleChange = 1e-17;
// The room for a column of L^-1 B in the CUDA engine, in reaches. Columns were measured to die away within 5
// to 16 reaches, on fine grids within 45.
inline constexpr int kColumnReaches = 20;
inline constexpr int kFineColumnReaches = 64;
// The support of a run of columns in the CUDA engine: the number of reaches on each side that influence what
// the run passes on.
inline constexpr int kSupportReaches = 24;
// The number of rounds of elimination in the CUDA engine before the last one. The change in the first round
// decides which fibres need work in each.
inline constexpr int kUsualRounds = 2;
// The largest width of what a round passes on. It takes effect by the square of a coupling, so a smaller
// width is enough.
inline constexpr int kMaxSideWidth = 24;
// The halo of a chunk in the CUDA engine, which works on the chunks of a fibre side by side: bins beyond the
// chunk, in reaches. Influence decays about 5-fold every 3 bins (at a reach of 8). This leaves 1e-11 sigma at
// a chunk's end, also beside a hole.
inline constexpr int kHaloReaches = 12;
// The coupling that is neglected: fibres further apart than a block is wide are left out of the precision if
// their couplings contribute less than this, relative to sqrt(D_jj D_kk). See FibresPerBlock.
inline constexpr double kNeglectedCoupling = 1e-16;
// The limit on the residual |b - A f| / |b| of the flux, in the norm of diag(A)^-1/2. The flux is refined
// until it meets this limit and kFluxError.
inline constexpr double kFluxResidual = 1e-11;
// The limit on the flux's error in the norm of A, as the preconditioner estimates it. Refinement also ends if
// the error falls no more. The unit is standard deviations of the result, over all bins of the bundle
// together.
inline constexpr double kFluxError = 1e-9;
// Limits of the CUDA engine. The error falls no more if a step leaves more than kFalling of the squared
// error. Parts of a bundle are skipped if their squared error is below kIdle of the bundle's limit.
inline constexpr double kFalling = 0.25;
inline constexpr double kIdle = 1e-4;
// The largest number of steps of conjugate gradients.
inline constexpr int kMaxRefinements = 200;
// The residual of the flux above which a bundle fails.
inline constexpr double kMaxFluxResidual = 1e-8;
// The error of square roots above which a bundle fails. Q is the square root of a fibre's precision P, and
// the error is the relative difference of |Q v|^2 and v^T P v, for v = 1 or v = the flux.
inline constexpr double kMaxRootError = 1e-6;
// The relative error requested of the rational square root.
inline constexpr double kSquareRootError = 1e-12;
// A safety factor: the least eigenvalue of a precision P is at least this fraction of 1 / |P^-1 s|, s = (1,
// -1, 1, ...). Neighbouring bins of C = P^-1 have opposite signs, so C s sums the magnitudes of a row.
inline constexpr double kMinEigenvalue = 0.5;

// ---- Masks.

// The fraction of a bin's spot on unusable pixels above which the bin is SOMEBADPIX.
inline constexpr double kSomeBadPixels = 0.5;

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TOLERANCES_H_
