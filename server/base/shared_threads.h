// The division of threads among jobs that do the same kind of work at the same time.
#ifndef SPEXD_SERVER_BASE_SHARED_THREADS_H_
#define SPEXD_SERVER_BASE_SHARED_THREADS_H_

#include <algorithm>
#include <atomic>

namespace spexd {

// Gives each job that begins an even share of the threads, by the number of jobs at work at that moment. Safe
// to use from many threads.
class SharedThreads {
 public:
  explicit SharedThreads(int all) : all_(all) {}

  // A job's share while it works.
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
