#include "cuda/analysis/sky/sky_on_device.h"

#include <algorithm>
#include <limits>

#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "cuda/analysis/sky/sky_arrays.h"
#include "cuda/analysis/sky/sky_rounds.h"
#include "cuda/analysis/stream_timer.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/memory/copies.h"
#include "cuda/memory/on_device.h"

namespace spexd::cuda {
namespace {

constexpr char kSky[] = "sky";

SkyModelArgs ArgsOf(const SkyArrays& arrays, const SpectraArrays& spectra, size_t sky_fibres) {
  SkyModelArgs args;
  args.spectra.fibres = static_cast<int>(spectra.fibres);
  args.spectra.bins = static_cast<int>(spectra.bins);
  args.spectra.flux = spectra.flux;
  args.spectra.ivar = spectra.ivar;
  args.spectra.resolution = spectra.resolution;
  args.spectra.wave = arrays.wave;
  args.spectra.sky_fibres = static_cast<int>(sky_fibres);
  args.spectra.sky_fibre = arrays.sky_fibre;
  args.fit = arrays.fit;
  args.model = arrays.model;
  return args;
}

// The results in the layout of the device.
struct Results {
  SkyRounds rounds;
  std::vector<double> deconvolved, extra, throughput;
  std::vector<int32_t> few, is_dropped;
  PinnedBuffer images;
  float *model, *variance, *flux, *ivar;  // [fibre, bin], in `images`
  double seconds = 0;                     // that the device took
};

absl::Status TakeHostMemory(AnalysisDevice* device, int64_t values, Results* results) {
  SPEXD_ASSIGN_OR_RETURN(results->images, device->pinned->Take(4 * values * int64_t{sizeof(float)}));
  float* next = reinterpret_cast<float*>(results->images.data());
  for (float** image : {&results->model, &results->variance, &results->flux, &results->ivar}) {
    *image = next;
    next += values;
  }
  return absl::OkStatus();
}

cudaError_t CopyResults(const SkyArrays& arrays, const SpectraArrays& spectra, size_t sky_fibres,
                        cudaStream_t stream, Results* results) {
  const size_t bytes = static_cast<size_t>(spectra.fibres * spectra.bins) * sizeof(float);
  const auto image = [&](const float* from, float* to) {
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
  };
  return FirstError(
      {CopyDown(arrays.fit.sky, spectra.bins, &results->deconvolved, stream),
       CopyDown(arrays.model.extra, spectra.bins, &results->extra, stream),
       CopyDown(arrays.throughput, spectra.fibres, &results->throughput, stream),
       image(arrays.model.model, results->model), image(arrays.model.variance, results->variance),
       image(spectra.flux, results->flux), image(spectra.ivar, results->ivar),
       CopyDown(arrays.fit.few, spectra.bins, &results->few, stream),
       CopyDown(arrays.fit.is_dropped, static_cast<int64_t>(sky_fibres), &results->is_dropped, stream),
       cudaStreamSynchronize(stream)});
}

// Converts a fibre's results to the types of core/analysis.
void TakeFibre(const Results& results, const std::vector<bool>& without, int64_t i, Sky* sky) {
  const int64_t bins = sky->flux.shape(1);
  for (int64_t j = 0; j < bins; ++j) {
    const size_t k = static_cast<size_t>(i * bins + j);
    const double variance = results.variance[k];
    sky->statistical_ivar(i, j) = variance > 0 ? 1 / variance : 0;
    sky->flux(i, j) = results.flux[k];
    sky->ivar(i, j) = results.ivar[k];
    sky->model(i, j) = without[j] ? 0 : results.model[k];
    sky->model_variance(i, j) =
        without[j] ? std::numeric_limits<double>::infinity() : variance + results.extra[j];
    if (without[j]) sky->mask(i, j) |= kMaskBadSky;
  }
}

absl::StatusOr<Sky> TakeResults(Results results, const UsableSpectra& usable,
                                const std::vector<int>& sky_fibres, const SkyOptions& options) {
  Sky sky;
  sky.rounds = results.rounds.rounds;
  sky.rejected = results.rounds.rejected;
  sky.mask = usable.mask;
  for (Array<double, 2>* image :
       {&sky.model, &sky.model_variance, &sky.statistical_ivar, &sky.flux, &sky.ivar}) {
    image->Reshape(usable.flux.shape());
  }
  for (size_t i = 0; i < sky_fibres.size(); ++i) {
    if (results.is_dropped[i] == 0) sky.sky_fibres.push_back(sky_fibres[i]);
  }
  const std::vector<bool> without = BinsWithoutSky(std::vector<bool>(results.few.begin(), results.few.end()));
  const Workers workers = {options.threads, options.stop};
  SPEXD_RETURN_IF_ERROR(ParallelFor(usable.fibres(), workers, [&](int64_t i) {
    TakeFibre(results, without, i, &sky);
    return absl::OkStatus();
  }));
  sky.deconvolved = std::move(results.deconvolved);
  sky.throughput = std::move(results.throughput);
  return sky;
}

// Does everything that needs the device, up to the results in host memory. REQUIRES: the device is current,
// its mutex held.
absl::Status FitOnDevice(AnalysisDevice* device, const UsableSpectra& usable, FrameOnDevice* frame,
                         const std::vector<int>& fibres, const SkyOptions& options, Results* results) {
  SPEXD_ASSIGN_OR_RETURN(const SpectraArrays spectra, frame->Arrays(usable));
  frame->Outdate();
  const auto lay_out = [&](Carver* carver) {
    return LayOutSky(static_cast<int>(spectra.fibres), static_cast<int>(spectra.bins),
                     static_cast<int>(fibres.size()), carver);
  };
  Carver count(nullptr);
  lay_out(&count);
  SPEXD_ASSIGN_OR_RETURN(const DeviceMemory::Block block, device->memory.Take(count.bytes()));
  Carver carver(block.data());
  const SkyArrays arrays = lay_out(&carver);
  const SkyModelArgs args = ArgsOf(arrays, spectra, fibres.size());

  StreamTimer timer;
  const cudaStream_t stream = device->stream.get();
  const IdleGuard idle(stream);
  SPEXD_CUDA_RETURN_IF_ERROR(FirstError({ConfigureSky(), CopyUp(usable.wave, arrays.wave, stream),
                                         CopyUp(fibres, arrays.sky_fibre, stream)}),
                             device->name, kSky);
  timer.Start(stream);
  SPEXD_ASSIGN_OR_RETURN(results->rounds,
                         FitSkyRounds({args.spectra, args.fit}, options, device->name, stream));
  cudaError_t error =
      FinishSky(args, results->rounds, options, {spectra.flux, spectra.ivar, arrays.throughput}, stream);
  timer.Stop(stream);
  error = FirstError({error, CopyResults(arrays, spectra, fibres.size(), stream, results)});
  SPEXD_CUDA_RETURN_IF_ERROR(error, device->name, kSky);
  results->seconds = timer.Seconds();
  return absl::OkStatus();
}

}  // namespace

bool SkyFits(const AnalysisDevice& device, const UsableSpectra& spectra, const std::vector<int>& sky_fibres) {
  constexpr int64_t kWithoutAsking = 40 << 10;  // dynamic shared memory that any kernel may take
  const int64_t fibres = static_cast<int64_t>(sky_fibres.size());
  return 8 * spectra.fibres() <= kWithoutAsking && 8 * fibres <= kWithoutAsking &&
         SkyShiftBytes(fibres) <= device.shared_bytes && SkyLineBytes(spectra.bins()) <= device.shared_bytes;
}

absl::StatusOr<Sky> FitSkyOnDevice(AnalysisDevice* device, const UsableSpectra& usable, FrameOnDevice* frame,
                                   const std::vector<int>& sky_fibres, const SkyOptions& options,
                                   double* seconds) {
  const std::vector<int> fibres = SkyFibresWithData(usable, sky_fibres);
  if (fibres.empty()) return absl::FailedPreconditionError("sky: no sky fibre has data");
  const OnDevice current(device->name.index);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), device->name, kSky);
  SPEXD_RETURN_IF_ERROR(frame->Stage(usable, {options.threads, options.stop}));
  Results results;
  SPEXD_RETURN_IF_ERROR(TakeHostMemory(device, usable.flux.size(), &results));
  {
    const MutexLock lock(&device->mutex);
    SPEXD_RETURN_IF_ERROR(FitOnDevice(device, usable, frame, fibres, options, &results));
  }
  *seconds = results.seconds;
  return TakeResults(std::move(results), usable, fibres, options);
}

}  // namespace spexd::cuda
