// Sets the wall clock of a program into which it is preloaded (LD_PRELOAD). It adds nanoseconds to the
// results of clock_gettime, gettimeofday and time: the int64_t in the file that SPEXD_CLOCK_FILE names, which
// may change while the program runs. As if an operator had set a real clock, waits until a wall-clock time
// end by the new time, and monotonic clocks are not affected. libfaketime lacks futex, by which Abseil, and
// so gRPC, waits until a wall-clock time.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

constexpr int64_t kSecond = 1000000000;
constexpr int64_t kSlice = kSecond / 50;  // of a wait: the delay after which it notices a new time

const std::atomic<int64_t>* MapFile() {
  static std::atomic<int64_t> none = 0;
  const char* const path = std::getenv("SPEXD_CLOCK_FILE");
  const int file = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return &none;
  void* const mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? &none : static_cast<const std::atomic<int64_t>*>(mapped);
}

int64_t Offset() {
  static const std::atomic<int64_t>* const offset = MapFile();
  return offset->load();
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

int64_t Nanoseconds(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }
// A time before 1970 has negative seconds; its nanoseconds still count forwards.
timespec Time(int64_t nanoseconds) {
  const int64_t rest = (nanoseconds % kSecond + kSecond) % kSecond;
  return {(nanoseconds - rest) / kSecond, rest};
}

int64_t TrueNow() {
  static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
  timespec now = {};
  next(CLOCK_REALTIME, &now);
  return Nanoseconds(now);
}

using Syscall = long(long, long, long, long, long, long, long);

// Waits by FUTEX_WAIT_BITSET until a wall-clock time, in slices, so that it follows the changed clock.
long WaitOnFutex(Syscall* next, const long* a) {
  const int64_t end = Nanoseconds(*reinterpret_cast<const timespec*>(a[3]));
  for (;;) {
    const int64_t now = TrueNow(), left = end - (now + Offset());
    const bool last = left <= kSlice;
    const timespec until = Time(now + (last ? left : kSlice));
    const long result = next(SYS_futex, a[0], a[1], a[2], reinterpret_cast<long>(&until), a[4], a[5]);
    if (result == 0 || errno != ETIMEDOUT) return result;
    if (last && end <= TrueNow() + Offset()) return result;
  }
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
  const int result = next(clock, time);
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (result == 0 && wall) *time = Time(Nanoseconds(*time) + Offset());
  return result;
}

int gettimeofday(timeval* time, void*) noexcept {
  const timespec now = Time(TrueNow() + Offset());
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) noexcept {
  const time_t now = Time(TrueNow() + Offset()).tv_sec;
  if (out != nullptr) *out = now;
  return now;
}

long syscall(long number, ...) noexcept {
  static auto* const next = Next<Syscall>("syscall");
  va_list arguments;
  va_start(arguments, number);
  long a[6];
  for (long& argument : a) argument = va_arg(arguments, long);
  va_end(arguments);
  const bool wall = number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) != 0 && a[3] != 0;
  return wall ? WaitOnFutex(next, a) : next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

}  // extern "C"
