// The symbol that libspexd_cuda.so exports. Exceptions do not cross modules.
#include "core/base/threads/guard.h"
#include "core/base/version.h"
#include "cuda/analysis/analyser/cuda_analyser.h"
#include "cuda/loader/build_identity.h"
#include "cuda/loader/cuda_module.h"
#include "cuda/runtime/cuda_engine.h"

const spexd::CudaModule SpexdCudaModule = {
    .version = spexd::kVersion,
    .build = spexd::kBuildIdentity,
    .make_engine =
        [](const spexd::CudaEngineOptions& options) {
          return spexd::CatchExceptions([&] { return spexd::cuda::MakeCudaEngine(options); });
        },
    .make_analyser =
        [](const spexd::CudaAnalyserOptions& options) {
          return spexd::CatchExceptions([&] { return spexd::cuda::MakeCudaAnalyser(options); });
        },
};
