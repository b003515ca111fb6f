// Stage "spots": sampled spots (core/model/spots/sampled_formula.h), weighted sums of stamps.
//
// A block takes a stretch of a fibre's bins, which mostly share their images, so that it finds their stamps
// in its multiprocessor's cache; a warp takes 8 of these bins. Lanes find the bins' places and terms, then
// sum the pixels at the end of each spot that do not fill a warp, those of all bins together. Then the warp
// takes one bin after the other: a lane sums every 32nd pixel and, to shift by a sinc, takes a run of pixels.
//
// Floor for a frame (500 fibres of 2350 bins, 14 x 14 pixels, 16 terms): 1.84 GB written, 0.44 ms; 14.7 GB of
// stamps read from the first-level cache, 0.5 ms, of which the second level supplies 0.7 GB (88 stamps to 128
// bins, 0.15 ms); 7.4 Gflop, 0.22 ms. 3.7 G numbers are converted from float32. The loop over terms is not
// unrolled, because that makes the kernel slower.
#include "core/model/spots/sampled_formula.h"
#include "cuda/kernels/common/device.cuh"
#include "cuda/kernels/common/legendre.cuh"
#include "cuda/kernels/spots/spots.h"

namespace spexd::cuda {
namespace {

constexpr int kMaxWarps = 16;  // warps of a block
constexpr int kBins = 8;       // bins of a warp
constexpr int kSums = 6;       // pixels of a lane that are summed at a time
constexpr int kRun = 7;        // neighbouring pixels that a lane shifts; odd, so that lanes share no banks
constexpr int kSincWeights = 2 * kSincReach + 1;

constexpr int InDoubles(size_t bytes) { return static_cast<int>((bytes + 7) / 8); }

// Shared memory of one warp, in doubles.
struct SampledScratch {
  int terms, tails, weights, values, shifted, total;
  __host__ __device__ explicit SampledScratch(const SampledLayout& layout) {
    const int pixels = layout.stamp.x.size * layout.stamp.y.size;
    terms = RoundedUp(kBins * InDoubles(sizeof(SampledPlace)), 2);            // after the places of the bins
    tails = terms + kBins * layout.terms() * InDoubles(sizeof(SampledTerm));  // after [bin, term]
    weights = tails + kBins * (pixels % kWarp);                               // [axis, kSincWeights]
    if (layout.shift == SubpixelShift::kSinc) {
      // Lines of pixels between zeros, which a sinc reads beyond their ends.
      const int line = LineLength(pixels);
      values = weights + 2 * kSincWeights + kSincReach;
      shifted = values + line;
      total = RoundedUp(shifted + line - kSincReach, 2);
    } else {
      values = shifted = weights;
      total = RoundedUp(values + pixels, 2);
    }
  }
  __host__ __device__ static int LineLength(int pixels) { return RoundedUp(pixels, kRun) + 2 * kSincReach; }
};

// A warp's bins while it evaluates them.
struct SampledWork {
  const SampledView view;
  double* own;  // scratch
  SampledScratch scratch;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ SampledPlace* places() const { return reinterpret_cast<SampledPlace*>(own); }
  // A bin's terms; `stamp` of a term is where its stamp begins.
  __device__ SampledTerm* terms(int bin) const {
    return reinterpret_cast<SampledTerm*>(own + scratch.terms) + bin * view.layout.terms();
  }
  __device__ int pixels() const { return view.layout.stamp.x.size * view.layout.stamp.y.size; }

  __device__ void ClearLines() const {
    const int length = SampledScratch::LineLength(pixels());
    for (int k = lane(); k < 2 * length; k += kWarp) own[scratch.values - kSincReach + k] = 0;
  }

  __device__ void FindTerms(int bin) const {
    const SampledPlace& place = places()[bin];
    for (int k = lane(); k < view.layout.terms(); k += kWarp) {
      SampledTerm term = TermOf(view, place, k);
      term.stamp *= pixels();
      terms(bin)[k] = term;
    }
  }
  __device__ void FindSincWeights(int bin) const {
    const SampledPlace& place = places()[bin];
    for (int k = lane(); k < kSincWeights; k += kWarp) {
      own[scratch.weights + k] = SincWeight(k - kSincReach, place.ShiftX(view.layout));
      own[scratch.weights + kSincWeights + k] = SincWeight(k - kSincReach, place.ShiftY(view.layout));
    }
  }

  // Sums the last pixels of the bins, which do not fill a warp.
  __device__ void SumTails(int bins) const {
    const int count = view.layout.terms(), tail = pixels() % kWarp, first = pixels() - tail;
    for (int i = lane(); i < bins * tail; i += kWarp) {
      const int bin = i / tail, pixel = first + i % tail;
      double sum = 0;
#pragma unroll 4
      for (int k = 0; k < count; ++k) {
        const SampledTerm term = terms(bin)[k];
        sum += term.weight * view.stamps[term.stamp + pixel];
      }
      own[scratch.tails + i] = sum;
    }
  }

  // Calls use(pixel, sum of the stamps) for this lane's pixels.
  template <typename Use>
  __device__ void SumStamps(int bin, const Use& use) const {
    const int count = view.layout.terms(), tail = pixels() % kWarp, end = pixels() - tail;
    for (int first = lane(); first < end; first += kSums * kWarp) {
      double sum[kSums] = {};
#pragma unroll 1
      for (int k = 0; k < count; ++k) {
        const SampledTerm term = terms(bin)[k];
        const float* const stamp = view.stamps + term.stamp;
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
          const int pixel = first + i * kWarp;
          if (pixel < end) sum[i] += term.weight * stamp[pixel];
        }
      }
#pragma unroll
      for (int i = 0; i < kSums; ++i) {
        if (first + i * kWarp < end) use(first + i * kWarp, sum[i]);
      }
    }
    if (lane() < tail) use(end + lane(), own[scratch.tails + bin * tail + lane()]);
  }

  // Shifts a line of rows, or of columns, of `width` pixels by a sinc. Calls use(pixel, value) for this
  // lane's pixels, counted with rows and columns exchanged.
  template <typename Use>
  __device__ void ShiftLine(const double* line, const double* weights, int width, const Use& use) const {
    const int end = pixels(), height = end / width;
    for (int first = lane() * kRun; first < end; first += kRun * kWarp) {
      double window[kRun], sum[kRun] = {};
#pragma unroll
      for (int i = 0; i < kRun; ++i) window[i] = line[first + kSincReach + i];
#pragma unroll
      for (int k = 0; k < kSincWeights; ++k) {
        const double weight = weights[k];
#pragma unroll
        for (int i = 0; i < kRun; ++i) sum[i] += weight * window[i];
        if (k + 1 == kSincWeights) break;
#pragma unroll
        for (int i = kRun - 1; i > 0; --i) window[i] = window[i - 1];
        window[0] = line[first + kSincReach - k - 1];
      }
      int row = first / width, column = first % width;
#pragma unroll
      for (int i = 0; i < kRun; ++i) {
        if (first + i < end) use(column * height + row, sum[i]);
        ++column;
        if (column == width) {
          column = 0;
          ++row;
        }
      }
    }
  }

  // Writes a spot's values, none of them negative, to scratch. Returns the sum of this lane's.
  template <bool kSinc>
  __device__ double Sum(int bin) const {
    double *const values = own + scratch.values, *const shifted = own + scratch.shifted, total = 0;
    const auto clip = [&](int pixel, double value) {
      const double clipped = value > 0 ? value : 0;
      values[pixel] = clipped;
      total += clipped;
    };
    if constexpr (!kSinc) {
      SumStamps(bin, clip);
    } else {
      const double* const weights = own + scratch.weights;
      SumStamps(bin, [&](int pixel, double value) { values[pixel] = value; });
      __syncwarp();
      ShiftLine(values, weights, view.layout.stamp.x.size,
                [&](int pixel, double value) { shifted[pixel] = value; });
      __syncwarp();
      ShiftLine(shifted, weights + kSincWeights, view.layout.stamp.y.size, clip);
    }
    return total;
  }

  __device__ void Store(double scale, double* out) const {
    const double* const values = own + scratch.values;
    for (int p = lane(); p < pixels(); p += kWarp) out[p] = scale > 0 ? values[p] * scale : 0;
  }
};

template <bool kSinc>
__global__ void __launch_bounds__(kMaxWarps* kWarp, 2) Evaluate(PsfArrays psf, SampledArrays model) {
  const PsfShape& shape = psf.shape;
  const SampledScratch scratch(model.layout);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, fibre = static_cast<int>(blockIdx.y);
  const int first_bin = (blockIdx.x * (blockDim.x / kWarp) + warp) * kBins;
  if (first_bin >= shape.bins) return;
  const SampledWork work = {model.View(), DynamicShared() + warp * scratch.total, scratch};
  const int bins = min(kBins, shape.bins - first_bin);
  const int64_t at = static_cast<int64_t>(fibre) * shape.bins + first_bin;
  if (work.lane() < bins) {
    const int64_t own = at + work.lane();
    work.places()[work.lane()] =
        FindPlace(work.view, fibre, WaveOf(psf, first_bin + work.lane()),
                  {psf.first_column[own], psf.offset_x[own]}, {psf.first_row[own], psf.offset_y[own]});
  }
  if (kSinc) work.ClearLines();
  __syncwarp();
  double* out = psf.spots + at * shape.spot_pixels();
  for (int bin = 0; bin < bins; ++bin) work.FindTerms(bin);
  __syncwarp();
  work.SumTails(bins);
  __syncwarp();
  for (int bin = 0; bin < bins; ++bin, out += shape.spot_pixels()) {
    if (kSinc) work.FindSincWeights(bin);
    __syncwarp();
    const double scale = SpotScale(WarpSum(work.Sum<kSinc>(bin)));
    __syncwarp();
    work.Store(scale, out);
  }
}

}  // namespace

int64_t SpotBytes(const PsfShape& /*shape*/, const SampledShape& model) {
  return int64_t{SampledScratch(model.layout).total} * static_cast<int64_t>(sizeof(double));
}

cudaError_t ConfigureSampledSpots(int shared_bytes) {
  return FirstError({AllowShared(Evaluate<false>, shared_bytes), AllowShared(Evaluate<true>, shared_bytes)});
}

cudaError_t EvaluateSpots(const PsfArrays& psf, const SampledArrays& model, int shared_bytes,
                          cudaStream_t stream) {
  const int64_t bytes = SampledScratch(model.layout).total * int64_t{sizeof(double)};
  const int warps = static_cast<int>(max(int64_t{1}, min(int64_t{kMaxWarps}, shared_bytes / bytes)));
  const dim3 grid((psf.shape.bins + kBins * warps - 1) / (kBins * warps), psf.shape.fibres);
  const auto kernel = model.layout.shift == SubpixelShift::kSinc ? Evaluate<true> : Evaluate<false>;
  return Launch(kernel, grid, warps * kWarp, warps * bytes, stream, psf, model);
}

}  // namespace spexd::cuda
