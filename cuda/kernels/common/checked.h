// Whether this is a checked build, which poisons workspaces and waits for each kernel, so that errors name
// their stage.
#ifndef SPEXD_CUDA_KERNELS_COMMON_CHECKED_H_
#define SPEXD_CUDA_KERNELS_COMMON_CHECKED_H_

namespace spexd::cuda {

#ifdef SPEXD_CUDA_CHECKED
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_COMMON_CHECKED_H_
