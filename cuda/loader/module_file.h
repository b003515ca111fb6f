// Finds and loads a module of spexd's own, and checks that it is of the program's build.
#ifndef SPEXD_CUDA_LOADER_MODULE_FILE_H_
#define SPEXD_CUDA_LOADER_MODULE_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace spexd {

// Names of a module; all literals.
struct ModuleNames {
  const char* what;      // as messages name it: "CUDA engine"
  const char* file;      // "libspexd_cuda.so"
  const char* variable;  // environment variable that may name its full path
  const char* entry;     // its exported function
  const char* version;   // the exported version (const char*), which must be kVersion
  const char* build;     // the exported build identity, which must be kBuildIdentity
};

struct LoadedModule {
  std::string path;
  void* entry = nullptr;
};

// Looks for the file in this order: the variable's (then nowhere else), the folder of the program, lib/spexd
// of the installation (core/base/install_places.h). The module stays loaded until the process ends.
// FailedPrecondition, in words that an operator can act on: it is not there (names the places), cannot be
// loaded, is another library, or is of another version or build.
absl::StatusOr<LoadedModule> LoadModule(const ModuleNames& names);

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_MODULE_FILE_H_
