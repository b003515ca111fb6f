// pthread_create of the whole program, which fails when a test says so. Link it into tests of that only, and
// without sanitizers, which replace the function themselves.
#ifndef SPEXD_TESTS_SUPPORT_FAILING_THREADS_H_
#define SPEXD_TESTS_SUPPORT_FAILING_THREADS_H_

namespace spexd::testing {

// While it lives, one std::thread cannot be started, of whatever thread, after `count` others; the error is
// EAGAIN, as where the system allows no more. Threads that gRPC and libmicrohttpd start do not count. There
// must be one at a time.
class FailingThread {
 public:
  explicit FailingThread(int count);
  ~FailingThread();
  FailingThread(const FailingThread&) = delete;
  FailingThread& operator=(const FailingThread&) = delete;

  bool met() const;  // whether it has failed
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_FAILING_THREADS_H_
