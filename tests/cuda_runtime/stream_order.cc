#include "tests/cuda_runtime/stream_order.h"

#include <algorithm>
#include <bit>

#include "absl/strings/str_cat.h"

namespace spexd::testing {

StreamOrder* StreamOrder::current_ = nullptr;

StreamOrder::StreamOrder(const void* memory, size_t bytes)
    : begin_(reinterpret_cast<uintptr_t>(memory)),
      bytes_(bytes),
      reads_(bytes / kWordBytes / 64 + 1),
      writes_(reads_.size()) {
  current_ = this;
}

void StreamOrder::Begin(const char* name, cudaStream_t stream) {
  if (std::find(seen_.begin(), seen_.end(), stream) == seen_.end()) seen_.push_back(stream);
  done_.push_back({name, stream, ++streams_[stream][stream], {}, {}});
  open_ = true;
}

void StreamOrder::End() {
  open_ = false;
  Done& now = done_.back();
  now.reads = TakeWords(&reads_);
  now.writes = TakeWords(&writes_);
  Clock& before = streams_[now.stream];
  for (size_t i = 0; i + 1 < done_.size(); ++i) {
    if (before[done_[i].stream] >= done_[i].number) continue;
    ++unordered_;
    Compare(now, done_[i]);
  }
}

void StreamOrder::Join(cudaStream_t stream, cudaEvent_t event) {
  for (const auto& [other, number] : events_[event]) {
    int& own = streams_[stream][other];
    own = std::max(own, number);
  }
}

StreamOrder::Words StreamOrder::TakeWords(std::vector<uint64_t>* bits) {
  Words words;
  for (size_t i = 0; i < bits->size(); ++i) {
    if ((*bits)[i] == 0) continue;
    words.emplace_back(static_cast<uint32_t>(i), (*bits)[i]);
    (*bits)[i] = 0;
  }
  return words;
}

void StreamOrder::Compare(const Done& now, const Done& before) {
  const auto tell = [&](const Words& a, const Words& b, const char* what) {
    int64_t common = 0, first = -1;
    for (auto of_a = a.begin(), of_b = b.begin(); of_a != a.end() && of_b != b.end();) {
      if (of_a->first == of_b->first) {
        const uint64_t both = of_a->second & of_b->second;
        if (both != 0 && first < 0) first = int64_t{64} * of_a->first + std::countr_zero(both);
        common += std::popcount(both);
      }
      const bool next_a = of_a->first <= of_b->first, next_b = of_b->first <= of_a->first;
      if (next_a) ++of_a;
      if (next_b) ++of_b;
    }
    if (common == 0) return;
    const std::string names = absl::StrCat(before.name, " on stream ", NumberOf(before.stream), " and ",
                                           now.name, " on stream ", NumberOf(now.stream), ": ", what);
    if (!told_.insert(names).second) return;
    races_.push_back(absl::StrCat(names, " ", common * int64_t{kWordBytes}, " bytes, from byte ",
                                  first * int64_t{kWordBytes}, " on"));
  };
  tell(before.writes, now.writes, "both write");
  tell(before.reads, now.writes, "the second writes what the first reads,");
  tell(before.writes, now.reads, "the second reads what the first writes,");
}

int StreamOrder::NumberOf(cudaStream_t stream) const {
  return static_cast<int>(std::find(seen_.begin(), seen_.end(), stream) - seen_.begin());
}

}  // namespace spexd::testing
