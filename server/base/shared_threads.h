// How many threads a job may use for work that several jobs do at the same time.
#ifndef SPEXD_SERVER_BASE_SHARED_THREADS_H_
#define SPEXD_SERVER_BASE_SHARED_THREADS_H_

#include <algorithm>
#include <atomic>

namespace spexd {

// Divides threads evenly among those who work at the time when one begins. Safe to use from many threads.
class SharedThreads {
 public:
  explicit SharedThreads(int all) : all_(all) {}

  // A part in the work, as long as it lives.
  class Share {
   public:
    explicit Share(SharedThreads* of) : of_(of), threads_(std::max(of->all_ / ++of->sharers_, 1)) {}
    ~Share() { --of_->sharers_; }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;
    int threads() const { return threads_; }  // at least 1

   private:
    SharedThreads* const of_;
    const int threads_;
  };

 private:
  const int all_;
  std::atomic<int> sharers_{0};
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_SHARED_THREADS_H_
