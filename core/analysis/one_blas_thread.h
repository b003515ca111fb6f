// OpenBLAS restricted to the calling thread.
#ifndef SPEXD_CORE_ANALYSIS_ONE_BLAS_THREAD_H_
#define SPEXD_CORE_ANALYSIS_ONE_BLAS_THREAD_H_

namespace spexd {

// As long as any of these objects lives, OpenBLAS works in the thread that calls it. Its rounding depends on
// its number of threads, and the functions here are told how many they may use. The last object restores the
// previous number, which OpenBLAS has once for the whole process.
class OneBlasThread {
 public:
  OneBlasThread();
  ~OneBlasThread();
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;
};

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_ONE_BLAS_THREAD_H_
