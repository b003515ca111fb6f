// The job whose event log is fuzzed.
#ifndef SPEXD_TESTS_FUZZ_SUPPORT_EVENT_LOG_ID_H_
#define SPEXD_TESTS_FUZZ_SUPPORT_EVENT_LOG_ID_H_

#include <string>

#include "server/detached/store/event_log_format.h"

namespace spexd::fuzz {

inline std::string EventLogId() { return std::string(kJobIdBytes, 'a'); }

}  // namespace spexd::fuzz

#endif  // SPEXD_TESTS_FUZZ_SUPPORT_EVENT_LOG_ID_H_
