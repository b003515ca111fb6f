#include "cuda/analysis/sky/sky_rounds.h"

#include "absl/strings/str_format.h"
#include "cuda/kernels/common/first_error.h"

namespace spexd::cuda {
namespace {

absl::StatusOr<SkyCounts> TakeRound(const SkyArgs& args, const SkyChunks& chunks, double rejection,
                                    bool first, const DeviceName& device, cudaStream_t stream) {
  SkyCounts counts;
  const cudaError_t error =
      FirstError({SolveSky(args, chunks, stream), RejectSky(args, rejection, first, stream),
                  cudaMemcpyAsync(&counts, args.fit.counts, sizeof(counts), cudaMemcpyDeviceToHost, stream),
                  cudaStreamSynchronize(stream)});
  SPEXD_CUDA_RETURN_IF_ERROR(error, device, "sky");
  return counts;
}

}  // namespace

absl::StatusOr<SkyRounds> FitSkyRounds(const SkyArgs& args, const SkyOptions& options,
                                       const DeviceName& device, cudaStream_t stream) {
  SPEXD_CUDA_RETURN_IF_ERROR(BeginSky(args, stream), device, "sky");
  SkyRounds result;
  result.chunks = ChunksOf(args.spectra.bins);
  while (result.rounds < kMaxSkyRounds) {
    if (options.stop.stop_requested()) return absl::CancelledError("sky: cancelled");
    ++result.rounds;
    absl::StatusOr<SkyCounts> counts =
        TakeRound(args, result.chunks, options.rejection, result.rounds == 1, device, stream);
    if (counts.ok() && result.chunks.count > 1 && (counts->bad_seams != 0 || counts->singular != 0)) {
      result.chunks = OneChunk(args.spectra.bins);
      counts = TakeRound(args, result.chunks, options.rejection, result.rounds == 1, device, stream);
    }
    if (!counts.ok()) return counts.status();
    if (counts->singular != 0) {
      return absl::FailedPreconditionError(
          absl::StrFormat("sky: the equations of %d sky fibres are singular", args.spectra.sky_fibres));
    }
    result.rejected += counts->rejected;
    if (counts->rejected == 0 && counts->dropped == 0) break;
  }
  return result;
}

cudaError_t FinishSky(const SkyModelArgs& args, const SkyRounds& rounds, const SkyOptions& options,
                      const SkyOutput& output, cudaStream_t stream) {
  const bool systematic = options.systematic_variance && args.spectra.sky_fibres > 1;
  return FirstError({InvertSky({args.spectra, args.fit}, rounds.chunks, stream), CarrySky(args, stream),
                     FindSystematicVariance(args, systematic, stream),
                     FindThroughput(args, options.line_throughput, output.throughput, stream),
                     SubtractSky(args, output, stream)});
}

}  // namespace spexd::cuda
