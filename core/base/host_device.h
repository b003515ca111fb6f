// Marks functions that CPU and GPU code share.
#ifndef SPEXD_CORE_BASE_HOST_DEVICE_H_
#define SPEXD_CORE_BASE_HOST_DEVICE_H_

#ifdef __CUDACC__
#define SPEXD_HOST_DEVICE __host__ __device__
#else
#define SPEXD_HOST_DEVICE
#endif

#endif  // SPEXD_CORE_BASE_HOST_DEVICE_H_
