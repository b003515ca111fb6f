// OpenBLAS without threads of its own.
#ifndef SPEXD_CORE_ANALYSIS_ONE_BLAS_THREAD_H_
#define SPEXD_CORE_ANALYSIS_ONE_BLAS_THREAD_H_

namespace spexd {

// While any of these lives, OpenBLAS works in the thread that calls it: how many threads it has changes its
// rounding, and functions here are told how many they may use. The last one restores what was before;
// OpenBLAS has one number for the whole process.
class OneBlasThread {
 public:
  OneBlasThread();
  ~OneBlasThread();
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;
};

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_ONE_BLAS_THREAD_H_
