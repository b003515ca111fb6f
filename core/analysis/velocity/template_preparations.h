// Preparations of a library of templates for frames on one grid, kept with the library.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_TEMPLATE_PREPARATIONS_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_TEMPLATE_PREPARATIONS_H_

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "core/base/threads/mutex.h"

namespace spexd {

// A preparation of templates.
class TemplatePreparation {
 public:
  virtual ~TemplatePreparation() = default;
};

// The last few preparations of each maker: CPUs, or a device by its name. They live as long as the library
// and its copies, which share them. Thread-safe.
class TemplatePreparations {
 public:
  // The newest preparation of the maker that `serves` accepts; null if there is none.
  std::shared_ptr<const TemplatePreparation> Find(
      const std::string& maker, absl::FunctionRef<bool(const TemplatePreparation&)> serves) {
    MutexLock lock(&mutex_);
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
      if (kept->first != maker || !serves(*kept->second)) continue;
      kept_.splice(kept_.begin(), kept_, kept);
      return kept_.front().second;
    }
    return nullptr;
  }
  // Keeps a preparation, and at most `most` of the maker's.
  void Keep(const std::string& maker, std::shared_ptr<const TemplatePreparation> made, size_t most) {
    MutexLock lock(&mutex_);
    kept_.emplace_front(maker, std::move(made));
    size_t count = 0;
    kept_.remove_if([&](const auto& kept) { return kept.first == maker && ++count > most; });
  }

 private:
  Mutex mutex_;
  std::list<std::pair<std::string, std::shared_ptr<const TemplatePreparation>>> kept_
      ABSL_GUARDED_BY(mutex_);  // newest first
};

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_TEMPLATE_PREPARATIONS_H_
