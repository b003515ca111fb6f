// Decides which job runs where, and when: gives out the job slots and memory of all devices, in the order of
// the jobs' arrival, from whichever device is free. It is policy only: it uses no CUDA, and never queries a
// device under its lock, so that a device that hangs delays only the jobs that wait for it. Thread-safe.
#ifndef SPEXD_CUDA_RUNTIME_DISPATCHER_H_
#define SPEXD_CUDA_RUNTIME_DISPATCHER_H_

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "cuda/runtime/residency.h"

namespace spexd::cuda {

class Dispatcher;

// A slot on a device, returned on destruction. Devices are counted from 0 among those of the engine.
class Lease {
 public:
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&&) = delete;
  ~Lease() { Release(); }

  int device() const { return device_; }
  int slot() const { return slot_; }  // -1: none was asked for
  const Residency::Taken& memory() const { return memory_; }
  // Marks the PSF as one that could not be made, or is not worth its memory: it is removed once nobody holds
  // it.
  void ForgetPsf() { forget_ = true; }
  void KeepPsf() { forget_ = false; }
  void Release();

 private:
  friend class Dispatcher;
  Lease(Dispatcher* dispatcher, int device, int slot, PsfKey psf, Residency::Taken memory);

  Dispatcher* dispatcher_;
  int device_, slot_;
  PsfKey psf_;
  Residency::Taken memory_;
  bool forget_ = false;
};

class Dispatcher {
 public:
  struct Device {
    int slots = 1;
    int64_t bytes = 0;
    std::function<std::shared_ptr<ResidentState>()> new_state;
  };
  struct Load {
    int running = 0;
    int64_t psf_bytes = 0, work_bytes = 0;
  };

  explicit Dispatcher(std::vector<Device> devices);

  // Returns OK if an open device could grant the wish with nothing else on it. ResourceExhausted, naming
  // bytes needed and available; Unavailable if no device is open.
  absl::Status Check(const Residency::Wish& wish) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Waits for a slot and memory, behind every job that came before. Takes the device with the fewest jobs,
  // and among equals one that has the PSF. Errors as Check; Cancelled when a stop is requested.
  absl::StatusOr<Lease> AdmitJob(const Residency::Wish& wish, std::stop_token stop)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits for memory only, behind other preparations but beside the jobs. REQUIRES: wish.work_bytes == 0.
  absl::StatusOr<Lease> AdmitPreparation(const Residency::Wish& wish, std::stop_token stop)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Reports that a device has finished writing a PSF, which may make room for those who wait. Callable from
  // any thread; does not query a device.
  void NoteSettled() ABSL_LOCKS_EXCLUDED(mutex_);
  // Closes a device that failed permanently: no later lease is on it.
  void Close(int device) ABSL_LOCKS_EXCLUDED(mutex_);

  bool HasFreeSlot(int device) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Number of jobs that wait for a device.
  int waiting() const ABSL_LOCKS_EXCLUDED(mutex_);
  // A device's load, as far as it is known without asking the device.
  Load LoadOf(int device) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class Lease;
  struct DeviceState {
    std::vector<int> free_slots;
    int running = 0;
    bool open = true;
    Residency residency;
  };
  using Queue = std::list<int>;
  class Waiter;

  absl::StatusOr<Lease> Admit(const Residency::Wish& wish, bool job, const std::stop_token& stop)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckLocked(const Residency::Wish& wish) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<Lease> Grant(const Residency::Wish& wish, bool job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes PSFs that nobody holds find out whether the device still writes to them. Returns whether some can
  // be evicted now that could not be before.
  bool Settle() ABSL_LOCKS_EXCLUDED(mutex_);
  void Return(const Lease& lease) ABSL_LOCKS_EXCLUDED(mutex_);
  Residency::Gone TakeGone() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;  // counts changes that waiting threads may need to know
  std::vector<DeviceState> devices_ ABSL_GUARDED_BY(mutex_);
  Queue jobs_ ABSL_GUARDED_BY(mutex_), preparations_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_DISPATCHER_H_
