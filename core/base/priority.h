// The range of a job's priority.
#ifndef SPEXD_CORE_BASE_PRIORITY_H_
#define SPEXD_CORE_BASE_PRIORITY_H_

namespace spexd {

inline constexpr int kMaxPriority = 10;  // the highest priority; the lowest is -kMaxPriority

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_PRIORITY_H_
