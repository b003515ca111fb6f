// The sources that a program was built from.
#ifndef SPEXD_CORE_BASE_BUILD_VERSION_H_
#define SPEXD_CORE_BASE_BUILD_VERSION_H_

#include <string>

namespace spexd {

// The first twelve digits of the commit, with "-dirty" if files had been changed; "" if the commit was
// unknown at build time.
std::string BuildCommit();

// The version and the commit, such as "0.1.0+e87ffdf12ab3"; "0.1.0" if the commit is unknown.
std::string BuildVersion();

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_BUILD_VERSION_H_
