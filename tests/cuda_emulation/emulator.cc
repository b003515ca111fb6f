#include "tests/cuda_emulation/emulator.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/cuda_runtime/stream_order.h"

namespace spexd::emulation {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr int kMaxWords = 8;

// Pages followed by a page that must not be accessed.
class GuardedPages {
 public:
  explicit GuardedPages(size_t bytes) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    bytes_ = (bytes + page - 1) / page * page;
    all_ = mmap(nullptr, bytes_ + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all_ == MAP_FAILED) Fail("no memory");
    begin_ = static_cast<std::byte*>(all_) + page;
    mapped_ = bytes_ + 2 * page;
    mprotect(all_, page, PROT_NONE);
    mprotect(begin_ + bytes_, page, PROT_NONE);
  }
  ~GuardedPages() { munmap(all_, mapped_); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  std::byte* begin() const { return begin_; }
  std::byte* end() const { return begin_ + bytes_; }
  size_t bytes() const { return bytes_; }

 private:
  void* all_;
  std::byte* begin_;
  size_t bytes_, mapped_;
};

struct Copy {
  void* to;
  const void* from;
  size_t bytes;
};

class Emulator;

}  // namespace

struct Thread::Private {
  Thread thread;
  std::unique_ptr<GuardedPages> stack = std::make_unique<GuardedPages>(kStackBytes);
  jmp_buf context;
  bool started = false;
  int half = 0;                           // which of the warp's two buffers is in use
  std::vector<std::vector<Copy>> groups;  // groups of copies in progress; the last one is still open
  int copying() const { return static_cast<int>(groups.size()) - 1; }
};

namespace {

using Fiber = Thread::Private;

// Threads that wait for each other.
struct Group {
  int members = 0, arrived = 0;
  const char* what = nullptr;
  bool any = false, was_any = false;
  std::vector<Fiber*> waiting;
};

struct Warp {
  Group group;
  int lanes = 0;
  uint64_t words[2][kWarp * kMaxWords];
};

// One launch. longjmp switches fibers, because it is much faster than swapcontext, which only starts them.
class Emulator {
 public:
  Emulator(const char* name, dim3 grid, int threads, size_t shared_bytes, const std::function<void()>& kernel)
      : name_(name),
        kernel_(kernel),
        shared_bytes_((shared_bytes + 15) / 16 * 16),
        shared_(shared_bytes_),
        random_(static_cast<uint32_t>(Seed() + NextLaunch())) {
    if (threads % kWarp != 0) Fail("the block's threads are no whole number of warps");
    position_.block_size = dim3(static_cast<unsigned>(threads));
    position_.grid_size = grid;
    position_.shared = shared_.end() - shared_bytes_;
    warps_.resize(static_cast<size_t>(threads) / kWarp);
    while (Pool().size() < static_cast<size_t>(threads)) Pool().push_back(std::make_unique<Fiber>());
  }

  static Emulator*& Current() {
    static thread_local Emulator* current = nullptr;
    return current;
  }

  void RunAll() {
    Current() = this;
    this_position = &position_;
    for (position_.block.z = 0; position_.block.z < position_.grid_size.z; ++position_.block.z) {
      for (position_.block.y = 0; position_.block.y < position_.grid_size.y; ++position_.block.y) {
        for (position_.block.x = 0; position_.block.x < position_.grid_size.x; ++position_.block.x)
          RunBlock();
      }
    }
    Current() = nullptr;
    this_position = nullptr;
    this_thread = nullptr;
  }

  void Meet(Group* group, const char* what) {
    if (group->arrived == 0) {
      group->what = what;
    } else if (group->what != what && std::strcmp(group->what, what) != 0) {
      Fail((std::string(what) + " while others wait at " + group->what).c_str());
    }
    Fiber* const self = running_;
    if (++group->arrived < group->members) {
      group->waiting.push_back(self);
      SwitchFrom(self);
    } else {
      Release(group);
      // The last thread to arrive need not be the first to continue.
      if (random_() % 2 == 0) {
        runnable_.push_back(self);
        SwitchFrom(self);
      }
    }
  }

  Warp& warp() { return warps_[running_->thread.index.x / kWarp]; }
  Group& block() { return block_; }
  Fiber* running() { return running_; }
  bool Toss() { return random_() % 2 == 0; }
  const char* name() const { return name_; }

 private:
  // Counts this host thread's launches, so that each launch has its own order.
  static uint64_t NextLaunch() {
    static thread_local uint64_t launches = 0;
    return launches++;
  }

  static std::vector<std::unique_ptr<Fiber>>& Pool() {
    static thread_local std::vector<std::unique_ptr<Fiber>> pool;
    return pool;
  }

  static void Release(Group* group) {
    Emulator* const emulator = Current();
    group->arrived = 0;
    group->was_any = std::exchange(group->any, false);
    emulator->runnable_.insert(emulator->runnable_.end(), group->waiting.begin(), group->waiting.end());
    group->waiting.clear();
  }

  // Runs a fiber, which lives from launch to launch; each iteration is one thread of one block.
  static void FiberMain() {
    while (true) {
      Emulator* emulator = Current();
      emulator->kernel_();
      emulator = Current();
      emulator->Leave();
    }
  }

  void Leave() {
    Fiber* const self = running_;
    for (const std::vector<Copy>& group : self->groups) {
      if (!group.empty()) Fail("copies were never waited for");
    }
    Warp& own = warp();
    if (own.group.arrived > 0) Fail((std::string("leaves while others wait at ") + own.group.what).c_str());
    --own.group.members;
    if (--block_.members > 0 && block_.arrived == block_.members) Release(&block_);
    SwitchFrom(self);
  }

  void RunBlock() {
    std::memset(position_.shared, 0xff, shared_bytes_);
    const int threads = static_cast<int>(position_.block_size.x);
    for (Warp& warp : warps_) {
      warp.group = Group();
      warp.group.members = kWarp;
    }
    block_ = Group();
    block_.members = threads;
    runnable_.clear();
    for (int t = 0; t < threads; ++t) {
      Fiber* const fiber = Pool()[static_cast<size_t>(t)].get();
      fiber->thread.index = {static_cast<unsigned>(t), 0, 0};
      fiber->thread.lane = t % kWarp;
      fiber->thread.own = fiber;
      fiber->half = 0;
      fiber->groups.assign(1, std::vector<Copy>());
      runnable_.push_back(fiber);
    }
    if (_setjmp(home_) == 0) SwitchFrom(nullptr);
    if (block_.members != 0) {
      std::string what = "threads wait for each other in vain:";
      if (block_.arrived > 0) what += std::string(" at ") + block_.what;
      for (const Warp& warp : warps_) {
        if (warp.group.arrived > 0) what += std::string(" at ") + warp.group.what;
      }
      Fail(what.c_str());
    }
  }

  // Switches to another fiber, or back to the caller if there is none.
  void SwitchFrom(Fiber* self) {
    if (self != nullptr && _setjmp(self->context) != 0) return;
    if (runnable_.empty()) _longjmp(home_, 1);
    std::swap(runnable_[random_() % runnable_.size()], runnable_.back());
    running_ = runnable_.back();
    runnable_.pop_back();
    this_thread = &running_->thread;
    if (running_->started) _longjmp(running_->context, 1);
    running_->started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = running_->stack->begin();
    context.uc_stack.ss_size = running_->stack->bytes();
    context.uc_link = nullptr;
    makecontext(&context, &FiberMain, 0);
    setcontext(&context);
  }

  const char* const name_;
  const std::function<void()>& kernel_;
  const size_t shared_bytes_;
  const GuardedPages shared_;
  std::minstd_rand random_;
  Position position_;
  std::vector<Warp> warps_;
  Group block_;
  std::vector<Fiber*> runnable_;
  Fiber* running_ = nullptr;
  jmp_buf home_;
};

void Do(const std::vector<Copy>& group) {
  for (const Copy& copy : group) std::memcpy(copy.to, copy.from, copy.bytes);
}

}  // namespace

void Run(const char* kernel_name, cudaStream_t stream, dim3 grid, int threads, size_t shared_bytes,
         const std::function<void()>& kernel) {
  const testing::StreamOrder::Operation operation(kernel_name, stream);
  Emulator(kernel_name, grid, threads, shared_bytes, kernel).RunAll();
}

namespace {

constexpr int64_t kAlwaysShared = 48 << 10;

struct Allowed {
  std::mutex mutex;
  std::map<const void*, int64_t> bytes;
};
Allowed& TheAllowed() {
  static Allowed allowed;
  return allowed;
}

}  // namespace

void AllowShared(const void* kernel, int bytes) {
  const std::lock_guard lock(TheAllowed().mutex);
  TheAllowed().bytes[kernel] = bytes;
}

bool MayTakeShared(const void* kernel, int64_t bytes) {
  const std::lock_guard lock(TheAllowed().mutex);
  const auto found = TheAllowed().bytes.find(kernel);
  return bytes <=
         (found == TheAllowed().bytes.end() ? kAlwaysShared : std::max(kAlwaysShared, found->second));
}

uint64_t Seed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("SPEXD_EMULATION_SEED");
    const uint64_t chosen =
        given != nullptr ? std::strtoull(given, nullptr, 10) : uint64_t{std::random_device()()};
    std::printf("SPEXD_EMULATION_SEED=%llu\n", static_cast<unsigned long long>(chosen));
    return chosen;
  }();
  return seed;
}

const uint64_t* Exchange(const char* what, const uint64_t* words, int count) {
  Emulator* const emulator = Emulator::Current();
  Warp& warp = emulator->warp();
  if (warp.group.members != kWarp) Fail("lanes of the warp have left");
  if (count > kMaxWords) Fail("too many words");
  Fiber* const self = emulator->running();
  uint64_t* const buffer = warp.words[self->half];
  self->half = 1 - self->half;
  std::memcpy(buffer + self->thread.lane * count, words, static_cast<size_t>(count) * sizeof(uint64_t));
  emulator->Meet(&warp.group, what);
  return buffer;
}

void MeetWarp(const char* what) {
  Emulator* const emulator = Emulator::Current();
  if (emulator->warp().group.members != kWarp) Fail("lanes of the warp have left");
  emulator->Meet(&emulator->warp().group, what);
}

bool MeetBlock(const char* what, bool value) {
  Emulator* const emulator = Emulator::Current();
  emulator->block().any |= value;
  emulator->Meet(&emulator->block(), what);
  return emulator->block().was_any;
}

void CopyLater(void* to, const void* from, size_t bytes) {
  Emulator* const emulator = Emulator::Current();
  if (reinterpret_cast<uintptr_t>(to) % bytes != 0 || reinterpret_cast<uintptr_t>(from) % bytes != 0)
    Fail("a copy is not aligned");
  testing::StreamOrder::Read(from, bytes);
  const Copy copy = {to, from, bytes};
  if (emulator->Toss()) {
    Do({copy});
  } else {
    std::memset(to, 0xff, bytes);  // nobody may read it before it has arrived
    emulator->running()->groups.back().push_back(copy);
  }
}

void EndCopyGroup() { Emulator::Current()->running()->groups.emplace_back(); }

void WaitForCopies(int pending_groups) {
  Fiber* const self = Emulator::Current()->running();
  while (self->copying() > pending_groups) {
    Do(self->groups.front());
    self->groups.erase(self->groups.begin());
  }
}

void Fail(const char* what) {
  const Emulator* const emulator = Emulator::Current();
  if (emulator != nullptr && this_position != nullptr && this_thread != nullptr) {
    const uint3 block = this_position->block;
    std::fprintf(stderr, "kernel %s, block %u %u %u, thread %u (seed %llu): ", emulator->name(), block.x,
                 block.y, block.z, this_thread->index.x, static_cast<unsigned long long>(Seed()));
  }
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

}  // namespace spexd::emulation
