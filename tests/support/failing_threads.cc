#include "tests/support/failing_threads.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <thread>

namespace {

using Routine = void* (*)(void*);

// Number of threads that can still be started before one fails; negative: it has failed, or none is to fail.
std::atomic<int> threads_left = -1;
std::atomic<bool> failed = false;
// The routine with which each std::thread begins, learned from a first thread.
std::atomic<Routine> of_std_threads = nullptr;
thread_local bool learning = false;

}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, Routine routine,
                              void* argument) noexcept {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (learning) of_std_threads = routine;
  if (threads_left >= 0 && routine == of_std_threads && threads_left-- == 0) {
    failed = true;
    return EAGAIN;
  }
  return real(thread, attributes, routine, argument);
}

namespace spexd::testing {

FailingThread::FailingThread(int count) {
  learning = true;
  std::thread([] {}).join();
  learning = false;
  failed = false;
  threads_left = count;
}

FailingThread::~FailingThread() { threads_left = -1; }

bool FailingThread::met() const { return failed; }

}  // namespace spexd::testing
