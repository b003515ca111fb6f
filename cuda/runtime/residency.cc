#include "cuda/runtime/residency.h"

#include <iterator>
#include <utility>

namespace spexd::cuda {

Residency::Residency(int64_t bytes, std::function<std::shared_ptr<ResidentState>()> new_state)
    : blocks_(bytes), new_state_(std::move(new_state)) {}

bool Residency::CouldHold(const Wish& wish) const {
  const int64_t psf = Aligned(wish.psf_bytes);
  return psf <= bytes() && Aligned(wish.work_bytes) <= bytes() - psf;
}

Residency::Entries::iterator Residency::Drop(Entries::iterator entry) {
  blocks_.Return(entry->second.block);
  const auto next = std::next(entry);
  gone_.insert(entries_.extract(entry));
  return next;
}

void Residency::DropDead() {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const bool dead = entry->second.owner.expired() && Evictable(entry->second);
    entry = dead ? Drop(entry) : std::next(entry);
  }
}

bool Residency::WorthEvicting(const Wish& wish) const {
  int64_t room = blocks_.free_bytes();
  for (const auto& [psf, entry] : entries_) {
    if (psf == wish.psf || Evictable(entry)) room += entry.block.bytes;
  }
  return Aligned(wish.psf_bytes) + Aligned(wish.work_bytes) <= room;
}

Residency::Entries::iterator Residency::LeastRecent(PsfKey kept) {
  auto oldest = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->first == kept || !Evictable(entry->second)) continue;
    if (oldest == entries_.end() || entry->second.last_use < oldest->second.last_use) oldest = entry;
  }
  return oldest;
}

std::optional<Residency::Taken> Residency::TryTake(const Wish& wish) {
  Taken taken;
  auto entry = entries_.find(wish.psf);
  taken.make = entry == entries_.end();
  if (taken.make) {
    const std::optional<Block> block = blocks_.Take(wish.psf_bytes);
    if (!block.has_value()) return std::nullopt;
    taken.psf = *block;
  }
  const std::optional<Block> work = blocks_.Take(wish.work_bytes, BlockAllocator::End::kHigh);
  if (!work.has_value()) {
    if (taken.make) blocks_.Return(taken.psf);
    return std::nullopt;
  }
  taken.work = *work;
  work_bytes_ += work->bytes;
  if (taken.make) {
    entry = entries_.emplace(wish.psf, Entry()).first;
    entry->second.owner = wish.owner;
    entry->second.block = taken.psf;
    entry->second.state = new_state_();
  }
  ++entry->second.pins;
  entry->second.last_use = ++clock_;
  entry->second.used |= wish.work_bytes > 0;
  taken.psf = entry->second.block;
  taken.state = entry->second.state;
  return taken;
}

std::optional<Residency::Taken> Residency::Take(const Wish& wish) {
  DropDead();
  // A PSF that could not be made is of no use to other jobs. It is removed when the jobs that hold it end.
  if (const auto entry = entries_.find(wish.psf); entry != entries_.end() && entry->second.forget)
    return std::nullopt;
  while (true) {
    if (std::optional<Taken> taken = TryTake(wish); taken.has_value()) return taken;
    if (!WorthEvicting(wish)) return std::nullopt;
    auto entry = LeastRecent(wish.psf);
    if (entry == entries_.end()) {
      // Perhaps only the PSF itself is in the way, with free memory on both sides. Then it can be made
      // elsewhere.
      entry = entries_.find(wish.psf);
      if (entry == entries_.end() || !Evictable(entry->second)) return std::nullopt;
    }
    Drop(entry);
  }
}

void Residency::Return(PsfKey psf, const Block& work, bool forget) {
  blocks_.Return(work);
  work_bytes_ -= work.bytes;
  const auto entry = entries_.find(psf);
  if (entry == entries_.end()) return;
  entry->second.forget |= forget;
  if (--entry->second.pins == 0 && entry->second.forget) Drop(entry);
}

ResidentStates Residency::Unsettled() const {
  ResidentStates states;
  for (const auto& [psf, entry] : entries_) {
    if (entry.pins == 0 && !entry.state->settled()) states.push_back(entry.state);
  }
  return states;
}

int Residency::unused() const {
  int count = 0;
  for (const auto& [psf, entry] : entries_) count += entry.used ? 0 : 1;
  return count;
}

int64_t Residency::psf_bytes() {
  DropDead();
  int64_t bytes = 0;
  for (const auto& [psf, entry] : entries_) bytes += entry.block.bytes;
  return bytes;
}

}  // namespace spexd::cuda
