// What a device is asked to do for a PSF and for a job: the stages in order, enqueued on a stream. Nothing
// here waits, allocates or keeps anything.
//
// Memory is two blocks of device memory, both 256-byte aligned: *resident* (a PSF on a grid: coefficients,
// places and spots) and *workspace* (one job). A job's image is at the start of its workspace: pixels, then
// ivar, float32 [row, column]; its result is at OutputOffset.
#ifndef SPEXD_CUDA_RUNTIME_PIPELINE_H_
#define SPEXD_CUDA_RUNTIME_PIPELINE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/extract/engine.h"
#include "core/extract/stage.h"
#include "cuda/kernels/side_streams.h"
#include "cuda/plan/extract_plan.h"
#include "cuda/plan/job_shape.h"

namespace spexd::cuda {

// ---- A prepared PSF

// Whole size of the resident block; its first PackedPsfBytes are what PackPsf wrote.
int64_t ResidentBytes(const PsfShape& shape);
// Places of all spots from the packed PSF, and what they say of each bundle; copies that to facts[bundles()],
// which must be pinned.
cudaError_t EnqueueLocate(const PsfShape& shape, std::byte* resident, BundleFacts* facts,
                          cudaStream_t stream);
// The spots themselves. REQUIRES: EnqueueLocate.
cudaError_t EnqueueSpots(const ExtractPlan& plan, std::byte* resident, cudaStream_t stream);

// ---- A job

int64_t ImageBytes(const PsfShape& shape);  // pixels and ivar, as copied to the start of the workspace
int64_t WorkspaceBytes(const ExtractPlan& plan, const JobShape& job);
int64_t OutputOffset(const ExtractPlan& plan, const JobShape& job);
int64_t OutputBytes(const ExtractPlan& plan, const JobShape& job);
// Called when a stage has been enqueued whole, in order; kSpots is not among them.
using StageEnqueued = std::function<cudaError_t(Stage stage)>;
// All is in the order of `own`; what runs beside it there, on `side`, ends within its stage.
struct JobStreams {
  cudaStream_t own = nullptr;
  SideStreams side;
};
cudaError_t EnqueueExtract(const ExtractPlan& plan, const JobShape& job, const std::byte* resident,
                           std::byte* workspace, const JobStreams& streams, const StageEnqueued& enqueued);

// Where one bundle's part of a job's output lies, from OutputOffset on. Bundles follow each other without
// overlapping, each 256-byte aligned. `bundle` counts in the PSF.
struct OutputRange {
  int64_t offset, bytes;
};
OutputRange BundleOutput(const ExtractPlan& plan, const JobShape& job, int bundle);

// One bundle of a job's output from its part of it, once that is on the host: all its fibres; the caller
// trims.
BundleResult UnpackBundle(const ExtractPlan& plan, const JobShape& job, const std::byte* bundle_output,
                          int bundle);

// Of shared memory, that a block takes for the spots of a PSF at least: shared_bytes must be as much.
int64_t SharedBytesOfSpots(const PsfShape& shape);

// Sets what kernels need of a device (dynamic shared memory); once per device, with it current.
cudaError_t ConfigureKernels(int shared_bytes);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_PIPELINE_H_
