// The stages of a PSF and of a job on a device, enqueued in order on a stream. Nothing here waits, allocates
// or keeps anything.
//
// The device memory of a job is two blocks, both 256-byte aligned: *resident* (a PSF on a grid: coefficients,
// positions and spots) and *workspace* (one job). A job's image is at the start of its workspace: pixels,
// then ivar, float32 [row, column]. Its result is at OutputOffset.
#ifndef SPEXD_CUDA_RUNTIME_PIPELINE_H_
#define SPEXD_CUDA_RUNTIME_PIPELINE_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/extract/engine.h"
#include "core/extract/stage.h"
#include "core/model/coded_image.h"
#include "cuda/kernels/common/side_streams.h"
#include "cuda/plan/extract_plan.h"
#include "cuda/plan/job_shape.h"

namespace spexd::cuda {

// ---- A prepared PSF

// Size of the resident block; its first PackedPsfBytes are what PackPsf wrote.
int64_t ResidentBytes(const PsfShape& shape);
// Computes the positions of all spots from the packed PSF, and each bundle's facts. Copies the facts to
// facts[bundles()], which must be pinned.
cudaError_t EnqueueLocate(const PsfShape& shape, std::byte* resident, BundleFacts* facts,
                          cudaStream_t stream);
// Computes the spots. REQUIRES: EnqueueLocate.
cudaError_t EnqueueSpots(const ExtractPlan& plan, std::byte* resident, cudaStream_t stream);

// ---- An image

// Bytes of an image's pixels and ivar, float32.
inline int64_t ImageBytes(int64_t rows, int64_t columns) {
  return 2 * rows * columns * static_cast<int64_t>(sizeof(float));
}
// Decodes an image whose block (cuda/plan/coded_block.h) was copied to `coded`, which has room for all of
// LayOutDecoding. `decoded` receives pixels, then ivar; the block's report then tells what was found.
cudaError_t EnqueueDecode(const CodedImage& image, std::byte* coded, std::byte* decoded, cudaStream_t stream);

// ---- A job

int64_t WorkspaceBytes(const ExtractPlan& plan, const JobShape& job);
int64_t OutputOffset(const ExtractPlan& plan, const JobShape& job);
int64_t OutputBytes(const ExtractPlan& plan, const JobShape& job);

// Offset in the workspace at which an image can be decoded.
int64_t CodedOffset(const ExtractPlan& plan, const JobShape& job);

// Called in order, each time a stage has been enqueued completely; never for kSpots.
using StageEnqueued = std::function<cudaError_t(Stage stage)>;
// The streams of a job. All work is in the order of `own`; work on `side` ends within its stage.
struct JobStreams {
  cudaStream_t own = nullptr;
  SideStreams side;
};
cudaError_t EnqueueExtract(const ExtractPlan& plan, const JobShape& job, const std::byte* resident,
                           std::byte* workspace, const JobStreams& streams, const StageEnqueued& enqueued);

// A bundle's part of a job's output; `offset` counts from OutputOffset. Bundles follow each other without
// overlapping, each 256-byte aligned. `bundle` counts in the PSF.
struct OutputRange {
  int64_t offset, bytes;
};
OutputRange BundleOutput(const ExtractPlan& plan, const JobShape& job, int bundle);

// Copies the float32 spectra of the fibres asked for from a job's workspace to arrays that begin with the
// first of them. Parts of a job share the arrays.
cudaError_t EnqueueKeep(const ExtractPlan& plan, const JobShape& job, const std::byte* workspace,
                        const FibreRange& asked, const DeviceArrays& to, cudaStream_t stream);

// Converts a bundle's part of a job's output, which must be on the host, to its result, with all its fibres;
// the caller trims.
BundleResult UnpackBundle(const ExtractPlan& plan, const JobShape& job, const std::byte* bundle_output,
                          int bundle);

// Minimum shared memory per block for the spots of a PSF; shared_bytes must be at least this.
int64_t SharedBytesOfSpots(const PsfShape& shape);

// Sets the kernels' attributes on a device (dynamic shared memory). Call once per device, with it current.
cudaError_t ConfigureKernels(int shared_bytes);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_PIPELINE_H_
