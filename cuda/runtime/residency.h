// Decides which prepared PSFs lie where in one device's memory, and which are evicted for others. It is
// policy only: it uses no CUDA and is not thread-safe (see dispatcher.h). It runs under the dispatcher's lock
// and so never queries the device. Whoever finds out that a PSF has been written notes this in the PSF's
// state.
#ifndef SPEXD_CUDA_RUNTIME_RESIDENCY_H_
#define SPEXD_CUDA_RUNTIME_RESIDENCY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/memory/block_allocator.h"

namespace spexd::cuda {

// The key of a prepared PSF, never used twice.
using PsfKey = uint64_t;

// The device side's state of a resident PSF. Thread-safe.
class ResidentState {
 public:
  virtual ~ResidentState() = default;
  // Whether the device is known to no longer write to the PSF's memory. Once true, it stays true.
  bool settled() const { return settled_; }
  // Finds out whether the PSF is settled, and notes it. May query the device, and so is never called under a
  // lock.
  virtual bool Settle() = 0;

 protected:
  void NoteSettled() { settled_ = true; }

 private:
  std::atomic<bool> settled_ = false;
};
using ResidentStates = std::vector<std::shared_ptr<ResidentState>>;

class Residency {
  struct Entry;

 public:
  using Gone = std::multimap<PsfKey, Entry>;

  struct Wish {
    PsfKey psf = 0;
    std::weak_ptr<const void> owner;  // the PSF can be removed once its owner is gone
    int64_t psf_bytes = 0;
    int64_t work_bytes = 0;
  };
  struct Taken {
    Block psf, work;
    bool make = false;  // the PSF is not there yet: the caller of Take makes it
    std::shared_ptr<ResidentState> state;
  };

  // `new_state` makes the state of a PSF about to become resident.
  Residency(int64_t bytes, std::function<std::shared_ptr<ResidentState>()> new_state);

  // Whether the wish could be granted if nothing else were there.
  bool CouldHold(const Wish& wish) const;
  // Takes a block to work in and the PSF, which is then pinned: both or neither. If room is short, PSFs that
  // nobody holds are evicted: first those whose owner is gone, then the least recently used.
  std::optional<Taken> Take(const Wish& wish);
  // Undoes a Take. `forget`: the PSF could not be made and nothing on the device writes to it; it is removed
  // once nobody holds it.
  void Return(PsfKey psf, const Block& work, bool forget);

  // States of PSFs that could be evicted if they were known to be settled.
  ResidentStates Unsettled() const;
  // PSFs removed since the last call. Destroy them while holding no lock, because that frees their device
  // resources.
  Gone TakeGone() { return std::exchange(gone_, {}); }

  bool Holds(PsfKey psf) const { return entries_.contains(psf); }
  // Number of PSFs that no job has used yet.
  int unused() const;
  int64_t bytes() const { return blocks_.bytes(); }
  int64_t psf_bytes();  // after dropping PSFs whose owner is gone
  int64_t work_bytes() const { return work_bytes_; }

 private:
  struct Entry {
    std::weak_ptr<const void> owner;
    Block block;
    std::shared_ptr<ResidentState> state;
    int pins = 0;
    bool forget = false;
    bool used = false;
    uint64_t last_use = 0;
  };
  using Entries = std::map<PsfKey, Entry>;

  static bool Evictable(const Entry& entry) { return entry.pins == 0 && entry.state->settled(); }
  Entries::iterator Drop(Entries::iterator entry);
  void DropDead();
  // Whether evicting all that is possible would leave enough room, fragmentation aside.
  bool WorthEvicting(const Wish& wish) const;
  // The PSF to be evicted first, other than `kept`; or end().
  Entries::iterator LeastRecent(PsfKey kept);
  std::optional<Taken> TryTake(const Wish& wish);

  BlockAllocator blocks_;
  const std::function<std::shared_ptr<ResidentState>()> new_state_;
  Entries entries_;
  Gone gone_;
  int64_t work_bytes_ = 0;
  uint64_t clock_ = 0;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_RESIDENCY_H_
