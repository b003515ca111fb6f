// An image that the CUDA engine has taken over from the host.
#ifndef SPEXD_CUDA_RUNTIME_CUDA_IMAGE_H_
#define SPEXD_CUDA_RUNTIME_CUDA_IMAGE_H_

#include <memory>

#include "core/extract/engine.h"
#include "core/model/coded_image.h"
#include "cuda/memory/device_memory.h"
#include "cuda/memory/pinned_pool.h"
#include "cuda/plan/coded_block.h"

namespace spexd::cuda {

struct CudaImage : public LoadedImage {
  // The decoding's report, complete once a device has decoded the image. REQUIRES: a coded image.
  DecodeReport* report() const { return LayOutCoded(*coded, staged.data()).report; }

  const void* engine = nullptr;  // the engine that made it; no other one takes it
  int rows = 0, columns = 0;
  std::shared_ptr<const CodedImage> coded;  // null: the image was not coded
  PinnedBuffer staged;                      // pixels, then ivar; or the block of a coded image
  // The device (CUDA's index) that holds `decoded`: pixels, then ivar. -1: none.
  int device = -1;
  DeviceMemory::Block decoded;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_CUDA_IMAGE_H_
