// Replaces pthread_create of the whole program with a version that fails when a test asks for it. Link it
// only into such tests, and not with sanitizers, which replace the function themselves.
#ifndef SPEXD_TESTS_SUPPORT_FAILING_THREADS_H_
#define SPEXD_TESTS_SUPPORT_FAILING_THREADS_H_

namespace spexd::testing {

// While it exists, one std::thread of the program cannot be started, after `count` others. The error is
// EAGAIN, as if the system allowed no more threads. Threads that gRPC and libmicrohttpd start do not count.
// Only one may exist at a time.
class FailingThread {
 public:
  explicit FailingThread(int count);
  ~FailingThread();
  FailingThread(const FailingThread&) = delete;
  FailingThread& operator=(const FailingThread&) = delete;

  bool met() const;  // whether a thread has failed to start
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_FAILING_THREADS_H_
