#include "cuda/runtime/dispatcher.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"

namespace spexd::cuda {

Lease::Lease(Dispatcher* dispatcher, int device, int slot, PsfKey psf, Residency::Taken memory)
    : dispatcher_(dispatcher), device_(device), slot_(slot), psf_(psf), memory_(std::move(memory)) {}

Lease::Lease(Lease&& other) noexcept
    : dispatcher_(std::exchange(other.dispatcher_, nullptr)),
      device_(other.device_),
      slot_(other.slot_),
      psf_(other.psf_),
      memory_(std::move(other.memory_)),
      forget_(other.forget_) {}

void Lease::Release() {
  if (dispatcher_ != nullptr) std::exchange(dispatcher_, nullptr)->Return(*this);
}

// A caller in a queue, which it leaves on destruction.
class Dispatcher::Waiter {
 public:
  Waiter(Dispatcher* dispatcher, bool job) : dispatcher_(dispatcher), job_(job) {
    MutexLock lock(&dispatcher_->mutex_);
    Queue& queue = job_ ? dispatcher_->jobs_ : dispatcher_->preparations_;
    waiter_ = queue.insert(queue.end(), 0);
  }
  ~Waiter() {
    MutexLock lock(&dispatcher_->mutex_);
    (job_ ? dispatcher_->jobs_ : dispatcher_->preparations_).erase(waiter_);
    dispatcher_->Changed();
  }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  bool FirstOf(const Queue& queue) const { return queue.begin() == waiter_; }

 private:
  Dispatcher* const dispatcher_;
  const bool job_;
  Queue::iterator waiter_;
};

Dispatcher::Dispatcher(std::vector<Device> devices) {
  MutexLock lock(&mutex_);
  for (Device& device : devices) {
    std::vector<int> slots(std::max(device.slots, 1));
    // Slots are taken from the end.
    for (size_t k = 0; k < slots.size(); ++k) slots[k] = static_cast<int>(slots.size() - 1 - k);
    devices_.push_back({std::move(slots), 0, true, Residency(device.bytes, std::move(device.new_state))});
  }
}

absl::Status Dispatcher::Check(const Residency::Wish& wish) const {
  MutexLock lock(&mutex_);
  return CheckLocked(wish);
}

absl::Status Dispatcher::CheckLocked(const Residency::Wish& wish) const {
  int64_t most = -1;
  for (const DeviceState& device : devices_) {
    if (!device.open) continue;
    if (device.residency.CouldHold(wish)) return absl::OkStatus();
    most = std::max(most, device.residency.bytes());
  }
  if (most < 0) return absl::UnavailableError("no CUDA device is left that works");
  return absl::ResourceExhaustedError(absl::StrFormat(
      "device memory: %d bytes needed (%d for the PSF on its grid, %d to work in), a device has %d; use a "
      "coarser or shorter grid, smaller bundles or more memory of the device",
      Aligned(wish.psf_bytes) + Aligned(wish.work_bytes), Aligned(wish.psf_bytes), Aligned(wish.work_bytes),
      most));
}

std::optional<Lease> Dispatcher::Grant(const Residency::Wish& wish, bool job) {
  using Rank = std::tuple<int, bool, int, int>;  // jobs, PSF absent, PSFs waiting for their job, index
  std::vector<Rank> ranks;
  for (size_t k = 0; k < devices_.size(); ++k) {
    const DeviceState& device = devices_[k];
    if (!device.open || (job && device.free_slots.empty()) || !device.residency.CouldHold(wish)) continue;
    ranks.emplace_back(device.running, !device.residency.Holds(wish.psf), device.residency.unused(),
                       static_cast<int>(k));
  }
  std::sort(ranks.begin(), ranks.end());
  for (const Rank& rank : ranks) {
    const int index = std::get<3>(rank);
    DeviceState& device = devices_[index];
    std::optional<Residency::Taken> taken = device.residency.Take(wish);
    if (!taken.has_value()) continue;
    int slot = -1;
    if (job) {
      slot = device.free_slots.back();
      device.free_slots.pop_back();
      ++device.running;
    }
    return Lease(this, index, slot, wish.psf, *std::move(taken));
  }
  return std::nullopt;
}

absl::StatusOr<Lease> Dispatcher::Admit(const Residency::Wish& wish, bool job, const std::stop_token& stop) {
  const WakeOnStop wake(stop, &mutex_, &changed_);
  Waiter waiter(this, job);
  while (true) {
    if (stop.stop_requested()) return absl::CancelledError("the job was cancelled");
    bool first = false;
    uint64_t seen = 0;
    {
      Residency::Gone gone;  // destroyed after the lock is released
      MutexLock lock(&mutex_);
      SPEXD_RETURN_IF_ERROR(CheckLocked(wish));
      seen = changes_;
      first = waiter.FirstOf(job ? jobs_ : preparations_);
      if (first) {
        std::optional<Lease> lease = Grant(wish, job);
        gone = TakeGone();
        if (lease.has_value()) return *std::move(lease);
      }
    }
    if (first && Settle()) continue;
    MutexLock lock(&mutex_);
    while (changes_ == seen && !stop.stop_requested()) changed_.Wait(&mutex_);
  }
}

bool Dispatcher::Settle() {
  ResidentStates states;
  {
    MutexLock lock(&mutex_);
    for (const DeviceState& device : devices_) {
      if (!device.open) continue;
      const ResidentStates more = device.residency.Unsettled();
      states.insert(states.end(), more.begin(), more.end());
    }
  }
  bool settled = false;
  for (const auto& state : states) settled |= state->Settle();
  return settled;
}

absl::StatusOr<Lease> Dispatcher::AdmitJob(const Residency::Wish& wish, std::stop_token stop) {
  return Admit(wish, true, stop);
}

absl::StatusOr<Lease> Dispatcher::AdmitPreparation(const Residency::Wish& wish, std::stop_token stop) {
  return Admit(wish, false, stop);
}

void Dispatcher::NoteSettled() {
  MutexLock lock(&mutex_);
  Changed();
}

void Dispatcher::Return(const Lease& lease) {
  Residency::Gone gone;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  DeviceState& device = devices_[lease.device_];
  device.residency.Return(lease.psf_, lease.memory_.work, lease.forget_);
  if (lease.slot_ >= 0) {
    device.free_slots.push_back(lease.slot_);
    --device.running;
  }
  gone = TakeGone();
  Changed();
}

Residency::Gone Dispatcher::TakeGone() {
  Residency::Gone gone;
  for (DeviceState& device : devices_) gone.merge(device.residency.TakeGone());
  return gone;
}

void Dispatcher::Changed() {
  ++changes_;
  changed_.NotifyAll();
}

void Dispatcher::Close(int device) {
  MutexLock lock(&mutex_);
  devices_[device].open = false;
  Changed();
}

bool Dispatcher::HasFreeSlot(int device) const {
  MutexLock lock(&mutex_);
  return !devices_[device].free_slots.empty();
}

int Dispatcher::waiting() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(jobs_.size());
}

Dispatcher::Load Dispatcher::LoadOf(int device) {
  Residency::Gone gone;  // destroyed after the lock is released
  MutexLock lock(&mutex_);
  DeviceState& state = devices_[device];
  const Load load = {state.running, state.residency.psf_bytes(), state.residency.work_bytes()};
  gone = TakeGone();
  return load;
}

}  // namespace spexd::cuda
