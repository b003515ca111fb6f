// The job whose spool is fuzzed.
#ifndef SPEXD_TESTS_FUZZ_SUPPORT_SPOOL_ID_H_
#define SPEXD_TESTS_FUZZ_SUPPORT_SPOOL_ID_H_

#include <string>

#include "server/detached/store/spool_format.h"

namespace spexd::fuzz {

inline std::string SpoolId() { return std::string(kJobIdBytes, 'a'); }

}  // namespace spexd::fuzz

#endif  // SPEXD_TESTS_FUZZ_SUPPORT_SPOOL_ID_H_
