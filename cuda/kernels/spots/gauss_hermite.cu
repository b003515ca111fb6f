// Stage "spots": Gauss-Hermite spots (core/model/spots/gauss_hermite_formula.h). With the integrals G over
// pixel rows and columns and the amplitudes C of the terms, a spot is G_y^T C^T G_x, computed on the matrix
// units.
//
// The degrees of a second core follow those of the first: the first tile of degrees has integrals with the
// first core's widths, the second tile those with the second core's, and C is block diagonal.
//
// A warp takes 8 bins of a fibre. First, each lane evaluates a series for all of them. Then the warp takes
// one bin after the other: each lane evaluates the antiderivatives at an edge of a pixel row or column, and
// the difference from the next lane's is the integral over the pixel. The result of the first product stays
// in registers as an operand of the second.
//
// Floor for a frame (500 fibres of 2350 bins, 17 x 11 pixels, 49 terms): 1.76 GB written, 0.42 ms; 7.2 Gflop,
// 0.21 ms.
#include <cmath>

#include "core/model/spots/gauss_hermite_formula.h"
#include "cuda/kernels/common/device.cuh"
#include "cuda/kernels/common/legendre.cuh"
#include "cuda/kernels/spots/spots.h"

namespace spexd::cuda {
namespace {

constexpr int kMaxWarps = 4;      // warps of a block
constexpr int kBins = 8;           // bins of a warp
constexpr int kBlock = 2 * kTile;  // rows, or columns, of two tiles

// What a spot needs besides its terms. The parameters from kSecondInverseSigma on exist only with two cores.
enum Parameter { kInverseSigma = 0, kOffset = 2, kTail = 4, kSecondInverseSigma = 9, kCutoff = 11 };
__host__ __device__ constexpr int Parameters(int cores) { return cores == 1 ? 9 : 12; }

// Shared memory of one warp, in doubles. Degrees are padded to whole tiles.
struct SpotScratch {
  int degrees;
  int first_y;  // edges of columns come first, then those of rows
  int amplitudes, integrals, values, total;
  __host__ __device__ SpotScratch(const PsfShape& shape, const GaussHermiteShape& model)
      : degrees(RoundedUp(model.degree + 1, kTile)), first_y(shape.spot_columns() + 1) {
    const int edges = max(first_y + RoundedUp(shape.spot_rows(), kBlock), RoundedUp(first_y, kBlock));
    amplitudes = kBins * Parameters(model.cores);        // [bin, degree x, degree y], after [bin, Parameter]
    integrals = amplitudes + kBins * degrees * degrees;  // [edge, degree]: see IntegralsAt
    values = integrals + edges * degrees;                // [row, column]
    total = RoundedUp(values + shape.spot_pixels(), 2);
  }
};

// A warp's bins while it evaluates them.
template <int kDegrees, int kCores>
struct SpotWork {
  static constexpr int kParameters = Parameters(kCores);

  const PsfArrays& psf;
  const PsfShape& shape;
  const GaussHermiteArrays& model;
  const SpotScratch& scratch;
  double* own;  // scratch
  int fibre, first_bin;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  // A lane's positions: its line of the operands, and its pair of the summed index or of the result.
  __device__ static int line() { return lane() / 4; }
  __device__ static int quarter() { return lane() % 4; }
  __device__ int64_t at(int bin) const { return static_cast<int64_t>(fibre) * shape.bins + first_bin + bin; }
  __device__ double* parameters(int bin) const { return own + bin * kParameters; }

  // The integrals of two degrees over the pixel that begins at an edge. Those of eight edges share no banks,
  // nor do four pairs of an edge and its neighbour.
  __device__ double2* IntegralsAt(int edge, int pair) const {
    return reinterpret_cast<double2*>(own + scratch.integrals + edge * kDegrees) + (pair ^ (edge >> 1 & 3));
  }
  __device__ void LoadIntegrals(int edge, int tile, double (&operand)[2]) const {
    const double2 two = *IntegralsAt(edge, tile * (kTile / 2) + quarter());
    operand[0] = two.x;
    operand[1] = two.y;
  }

  // WidthAt and BehindTermsAt: the parameter that is the value of a width's series, or of one behind the
  // terms'.
  __device__ static int WidthAt(int s) {
    return kCores == 1 || s < 2 ? kInverseSigma + s : kSecondInverseSigma + s - 2;
  }
  __device__ int BehindTermsAt(int s) const {
    if (kCores == 1 || !model.shape.cutoff) return kTail + s;
    return s == 0 ? kCutoff : kTail + s - 1;
  }

  __device__ void EvaluateParameters(const Recurrence& recurrence) const {
    constexpr int kAtOnce = 4;  // more bins at once take more registers
    double* const amplitudes = own + scratch.amplitudes;
    for (int i = lane(); i < kBins * kDegrees * kDegrees; i += kWarp) amplitudes[i] = 0;
    const int bin = lane() / 2, axis = lane() % 2;
    const bool placed = bin < min(kBins, shape.bins - first_bin);
    const double offset = placed ? (axis == 0 ? psf.offset_x : psf.offset_y)[at(bin)] : 0;
    __syncwarp();
    const SeriesArrays& series = model.series;
    for (int s = lane(); s < series.shape.count; s += kWarp) {
      const double least = series.domains[2 * s], scale = 2 * Reciprocal(series.domains[2 * s + 1] - least);
      const double* const c = SeriesOf(series, fibre, s);
      const int term = s - 2 * kCores;
      const bool of_term = term >= 0 && term < model.shape.terms;
      double* to = of_term ? amplitudes + model.degrees[2 * term] * kDegrees + model.degrees[2 * term + 1]
                           : own + (term < 0 ? WidthAt(s) : BehindTermsAt(term - model.shape.terms));
#pragma unroll 1
      for (int i = 0; i < kBins; i += kAtOnce) {
        double t[kAtOnce], value[kAtOnce];
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) t[k] = (WaveOf(psf, first_bin + i + k) - least) * scale - 1;
        EvaluateSeries(c, series.shape.coefficients, recurrence, t, value);
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k, to += of_term ? kDegrees * kDegrees : kParameters) *to = value[k];
      }
    }
    __syncwarp();
    if (bin < kBins) {
      // A width that is not positive makes all values NaN, which gives an empty spot.
      double& sigma = parameters(bin)[kInverseSigma + axis];
      if constexpr (kCores == 1) {
        sigma = sigma > 0 ? 1 / sigma : NAN;
      } else {  // a bad width spoils both cores: the cutoff could hide it in the first
        double& second = parameters(bin)[kSecondInverseSigma + axis];
        const bool positive = sigma > 0 && second > 0;
        sigma = positive ? 1 / sigma : NAN;
        second = positive ? 1 / second : NAN;
      }
      parameters(bin)[kOffset + axis] = offset;
    }
    __syncwarp();
  }

  // A lane takes an edge. The last lane's edge only ends a pixel.
  __device__ void Integrate(int bin) const {
    const int edges = scratch.first_y + shape.spot_rows() + 1;
    for (int first = 0; first < edges - 1; first += kWarp - 1) {
      const int position = first + lane(), axis = position >= scratch.first_y;
      const bool keeps = lane() < kWarp - 1 && position < edges - 1;
      const int edge = position - (axis == 0 ? 0 : scratch.first_y);
      const int half = axis == 0 ? shape.stamp.x.middle : shape.stamp.y.middle;
#pragma unroll
      for (int core = 0; core < kCores; ++core) {
        const double u =
            EdgeAt(edge, half, parameters(bin)[kOffset + axis],
                   parameters(bin)[(core == 0 ? kInverseSigma : kSecondInverseSigma) + axis]);
        double even = 0;
        Antiderivatives(kDegrees / kCores - 1, u, [&](int k, double value) {
          const double integral = Shuffle(value, lane() + 1) - value;
          if (k % 2 == 0) {
            even = integral;
          } else if (keeps) {
            *IntegralsAt(position, (core * kTile + k) / 2) = {even, integral};
          }
        });
      }
    }
  }

  // Clears this lane's values (MultiplyAdd16) of the first core that lie beyond its cutoff.
  __device__ void CutOff(int bin, int first_row, int first_column, double (&sum)[4]) const {
    const double* const parameter = parameters(bin);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int r = first_row + k / 2 * kTile + line(), c = first_column + 4 * quarter() + k % 2;
      const double dx = c - shape.stamp.x.middle - parameter[kOffset];
      const double dy = r - shape.stamp.y.middle - parameter[kOffset + 1];
      if (!IsWithinCutoff(dx, dy, parameter[kInverseSigma], parameter[kInverseSigma + 1], parameter[kCutoff]))
        sum[k] = 0;
    }
  }

  // Sums the terms. Returns the sum of this lane's values. Unless a tail follows, none of them is negative.
  template <bool kTail>
  __device__ double SumTerms(int bin) const {
    constexpr int kTiles = kDegrees / kTile;
    const double* const amplitudes = own + scratch.amplitudes + bin * (kDegrees * kDegrees);
    const int rows = shape.spot_rows(), columns = shape.spot_columns();
    double total = 0;
    for (int row = 0; row < rows; row += kBlock) {
      // h[row, a] = sum_b g_b(row) c_ab
      double h[kTiles][4] = {};
#pragma unroll
      for (int b = 0; b < kTiles; ++b) {
        double top[2], bottom[2];
        LoadIntegrals(scratch.first_y + row + line(), b, top);
        LoadIntegrals(scratch.first_y + row + kTile + line(), b, bottom);
#pragma unroll
        for (int a = 0; a < kTiles; ++a) {
          if (kCores > 1 && a != b) continue;
          const double2 two = *reinterpret_cast<const double2*>(amplitudes + (a * kTile + line()) * kDegrees +
                                                                b * kTile + 2 * quarter());
          MultiplyAdd16(top, bottom, {two.x, two.y}, h[a]);
        }
      }
      for (int block = 0; block < columns; block += kBlock) {
#pragma unroll
        for (int tile = 0; tile < 2; ++tile) {
          // A tile has every other pair of 16 columns, so that lanes do not store to the same banks.
          const int first = block + 2 * tile;
          if (first >= columns) continue;
          double sum[4] = {0, 0, 0, 0};
#pragma unroll
          for (int a = 0; a < kTiles; ++a) {
            double integrals[2];
            LoadIntegrals(first + line() / 2 * 4 + line() % 2, a, integrals);
            if (kCores > 1 && a == 1 && model.shape.cutoff) CutOff(bin, row, first, sum);
            MultiplyAdd16({h[a][0], h[a][1]}, {h[a][2], h[a][3]}, integrals, sum);
          }
#pragma unroll
          for (int k = 0; k < 4; ++k) {
            const int r = row + k / 2 * kTile + line(), c = first + 4 * quarter() + k % 2;
            const double value = !kTail && sum[k] <= 0 ? 0 : sum[k];
            if (r < rows && c < columns) {
              total += value;
              own[scratch.values + r * columns + c] = value;
            }
          }
        }
      }
    }
    return total;
  }

  // Adds the tail. Returns the sum of this lane's values.
  __device__ double AddTail(int bin) const {
    const double *const parameter = parameters(bin), *const tail = parameter + kTail;
    const int columns = shape.spot_columns();
    double total = 0;
    for (int p = lane(); p < shape.spot_pixels(); p += kWarp) {
      const double u = (p % columns - shape.stamp.x.middle - parameter[kOffset]) * tail[3];
      const double v = (p / columns - shape.stamp.y.middle - parameter[kOffset + 1]) * tail[4];
      double& value = own[scratch.values + p];
      value += TailValue(tail[0], tail[1], tail[2], u * u + v * v);
      value = value > 0 ? value : 0;
      total += value;
    }
    return total;
  }

  __device__ void Store(double scale, double* out) const {
    const double* const values = own + scratch.values;
    const auto store = [&](int p) { out[p] = scale > 0 ? values[p] * scale : 0; };
    int p = lane();
#pragma unroll 5
    for (int left = shape.spot_pixels() / kWarp; left > 0; --left, p += kWarp) store(p);
    if (p < shape.spot_pixels()) store(p);
  }
};

template <int kDegrees, int kCores>
__global__ void __launch_bounds__(kMaxWarps* kWarp, 6) Evaluate(PsfArrays psf, GaussHermiteArrays model) {
  __shared__ Recurrence recurrence;
  recurrence.Fill();
  const SpotScratch scratch(psf.shape, model.shape);
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int first_bin = (blockIdx.x * (blockDim.x / kWarp) + warp) * kBins;
  if (first_bin >= psf.shape.bins) return;
  const SpotWork<kDegrees, kCores> work = {
      psf,      psf.shape, model, scratch, DynamicShared() + warp * scratch.total,
      static_cast<int>(blockIdx.y), first_bin};
  work.EvaluateParameters(recurrence);
  double* out = psf.spots + work.at(0) * psf.shape.spot_pixels();
  for (int bin = 0; bin < min(kBins, psf.shape.bins - first_bin); ++bin, out += psf.shape.spot_pixels()) {
    work.Integrate(bin);
    __syncwarp();
    double total;
    if (model.shape.tail) {
      work.template SumTerms<true>(bin);
      __syncwarp();
      total = work.AddTail(bin);
    } else {
      total = work.template SumTerms<false>(bin);
    }
    const double scale = SpotScale(WarpSum(total));
    __syncwarp();
    work.Store(scale, out);
  }
}

}  // namespace

int64_t SpotBytes(const PsfShape& shape, const GaussHermiteShape& model) {
  return int64_t{SpotScratch(shape, model).total} * static_cast<int64_t>(sizeof(double));
}

cudaError_t ConfigureGaussHermiteSpots(int shared_bytes) {
  return FirstError({AllowShared(Evaluate<kTile, 1>, shared_bytes),
                     AllowShared(Evaluate<2 * kTile, 1>, shared_bytes),
                     AllowShared(Evaluate<2 * kTile, 2>, shared_bytes)});
}

cudaError_t EvaluateSpots(const PsfArrays& psf, const GaussHermiteArrays& model, int shared_bytes,
                          cudaStream_t stream) {
  static_assert(kMaxHermiteDegree < 2 * kTile && kSecondCoreDegree == kTile);
  const int64_t bytes = SpotBytes(psf.shape, model.shape);
  const int warps = static_cast<int>(max(int64_t{1}, min(int64_t{kMaxWarps}, shared_bytes / bytes)));
  const dim3 grid((psf.shape.bins + kBins * warps - 1) / (kBins * warps), psf.shape.fibres);
  const bool wide = SpotScratch(psf.shape, model.shape).degrees > kTile;
  const auto kernel = model.shape.cores > 1 ? Evaluate<2 * kTile, 2>
                      : wide                ? Evaluate<2 * kTile, 1>
                                            : Evaluate<kTile, 1>;
  return Launch(kernel, grid, warps * kWarp, warps * bytes, stream, psf, model);
}

}  // namespace spexd::cuda
