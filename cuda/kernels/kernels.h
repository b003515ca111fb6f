// The stages' kernels, enqueued on a stream; one function for each file of kernels.
#ifndef SPEXD_CUDA_KERNELS_KERNELS_H_
#define SPEXD_CUDA_KERNELS_KERNELS_H_

#include <cuda_runtime_api.h>

#include "cuda/kernels/side_streams.h"
#include "cuda/kernels/views.h"
#include "cuda/plan/extract_plan.h"

namespace spexd::cuda {

// Lets kernels take so much shared memory (ExtractPlan::shared_bytes, or the most of any); once per device.
cudaError_t ConfigureSpots(int shared_bytes);
cudaError_t ConfigureSolve(int shared_bytes);
cudaError_t ConfigureCovariance(int shared_bytes);
cudaError_t ConfigurePrecision(int shared_bytes);
cudaError_t ConfigureResolution(int shared_bytes);

// Of a prepared PSF.
cudaError_t LocateSpots(const PsfView& psf, cudaStream_t stream);  // places, row_bins, facts
cudaError_t EvaluateSpots(const PsfView& psf, int shared_bytes, cudaStream_t stream);

// Of a job, in this order.
cudaError_t ComputeNormal(const JobView& job, cudaStream_t stream);  // weight, data, pairs, most_weight
cudaError_t FactorAndSolve(const JobView& job, cudaStream_t stream);
cudaError_t FirstWidths(const JobView& job, cudaStream_t stream);
// Pass 0, then kPasses - 1 more, which do work only where the one before asked for it.
cudaError_t ComputeWidths(const JobView& job, int pass, cudaStream_t stream);
cudaError_t InvertSelected(const JobView& job, int pass, cudaStream_t stream);
cudaError_t Regress(const JobView& job, int pass, cudaStream_t stream, const SideStreams& side);
cudaError_t AssemblePrecision(const JobView& job, cudaStream_t stream);
cudaError_t PlanPoles(const JobView& job, cudaStream_t stream);
cudaError_t SquareRoot(const JobView& job, cudaStream_t stream, const SideStreams& side);
cudaError_t ReportSpectra(const JobView& job, cudaStream_t stream);  // flux, ivar, resolution
cudaError_t ComputeModel(const JobView& job, cudaStream_t stream);   // model, chi2
cudaError_t JudgeBins(const JobView& job, cudaStream_t stream);      // mask, chi2pix, pixmask

// Memory that they take. Rows of the covariance's ring, and slots of its window in shared memory, for one
// group:
int CovarianceRingRows(int most_width, int solved_fibres, int band_tiles);
int CovarianceWindowSlots(int usual_width, int solved_fibres, int band_tiles);
// Of shared memory, for a spot of a PSF.
int64_t SpotBytes(const PsfShape& shape);
// Scratch in doubles: the window of the factor of each group and chunk (0 where shared memory will do), and
// of whole stages.
int64_t FactorWindowScratch(const ExtractPlan& plan);
int64_t RegressScratch(const ExtractPlan& plan, int fibres);
int64_t SquareRootScratch(const ExtractPlan& plan, int fibres);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_KERNELS_H_
