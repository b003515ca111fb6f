// Which prepared PSFs lie where in one device's memory, and who makes room for whom. Policy alone: knows no
// CUDA, not thread-safe (see dispatcher.h). It is used under a lock that everybody takes, so nothing here
// asks the device anything: that a PSF is written is noted in its state by whoever finds out.
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

#include "cuda/runtime/block_allocator.h"

namespace spexd::cuda {

// Names a prepared PSF; never used twice.
using PsfKey = uint64_t;

// What the device side keeps of a resident PSF. Thread-safe.
class ResidentState {
 public:
  virtual ~ResidentState() = default;
  // Whether it is known that nothing on the device writes to its memory any more; once so, for good.
  bool settled() const { return settled_; }
  // Finds out whether that is so, and notes it. May ask the device, and so is never called under a lock.
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
    std::weak_ptr<const void> owner;  // the PSF goes once this is gone
    int64_t psf_bytes = 0;
    int64_t work_bytes = 0;
  };
  struct Taken {
    Block psf, work;
    bool make = false;  // the PSF is not there yet: whoever took it makes it
    std::shared_ptr<ResidentState> state;
  };

  // `new_state` makes the state of a PSF about to become resident.
  Residency(int64_t bytes, std::function<std::shared_ptr<ResidentState>()> new_state);

  // Whether the wish could be granted were nothing else there.
  bool CouldHold(const Wish& wish) const;
  // A block to work in and the PSF, pinned; all or nothing. PSFs that nobody holds go first where room is
  // short, those whose owner is gone before, then the least recently used.
  std::optional<Taken> Take(const Wish& wish);
  // Undoes a Take. `forget`: the PSF could not be made, nothing on the device writes to it; it goes once
  // nobody holds it.
  void Return(PsfKey psf, const Block& work, bool forget);

  // Of PSFs that would be free to go were they known to be settled.
  ResidentStates Unsettled() const;
  // PSFs that went since the last call: to be destroyed where no lock is held, as that gives back what they
  // have of the device.
  Gone TakeGone() { return std::exchange(gone_, {}); }

  bool Holds(PsfKey psf) const { return entries_.contains(psf); }
  // PSFs that no job has used yet.
  int unused() const;
  int64_t bytes() const { return blocks_.bytes(); }
  int64_t psf_bytes();  // after dropping those whose owner is gone
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
  // Whether all that could go would leave enough, fragmentation aside.
  bool WorthEvicting(const Wish& wish) const;
  // The one to go first other than `kept`, or end().
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
