// Which sources a program was built from.
#ifndef SPEXD_CORE_BASE_BUILD_VERSION_H_
#define SPEXD_CORE_BASE_BUILD_VERSION_H_

#include <string>

namespace spexd {

// The commit's first twelve digits, with "-dirty" if files had been changed; "" if it was not known at build
// time.
std::string BuildCommit();

// "0.1.0+e87ffdf12ab3", or "0.1.0".
std::string BuildVersion();

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_BUILD_VERSION_H_
