#include "cuda/loader/load_cuda_module.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/install_paths.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/base/version.h"
#include "cuda/loader/build_identity.h"
#include "cuda/loader/cuda_module.h"

namespace spexd {
namespace {

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// Returns the shared library that contains this code, such as the extension of the Python package; "" if it
// is in the program itself.
std::string OwnLibrary() {
  Dl_info ignored;
  link_map* map = nullptr;
  const int found = dladdr1(reinterpret_cast<void*>(&OwnLibrary), &ignored, reinterpret_cast<void**>(&map),
                            RTLD_DL_LINKMAP);
  return found != 0 && map != nullptr ? map->l_name : "";
}

absl::StatusOr<std::string> FindModule() {
  const char* named = std::getenv(kCudaModuleVariable);
  if (named != nullptr && *named != '\0') {
    // Without a slash, dlopen would search the system's folders.
    if (*named != '/') {
      return absl::FailedPreconditionError(
          absl::StrFormat("$%s is \"%s\", must be a full path", kCudaModuleVariable, named));
    }
    if (Exists(named)) return std::string(named);
    return absl::FailedPreconditionError(
        absl::StrFormat("$%s names %s, which is not there", kCudaModuleVariable, named));
  }
  const std::string own_library = OwnLibrary();
  std::error_code error;
  const std::filesystem::path own =
      std::filesystem::canonical(own_library.empty() ? "/proc/self/exe" : own_library, error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrFormat("%s cannot be read (%s), so %s cannot be found beside it; name its full path in $%s",
                        own_library.empty() ? "/proc/self/exe" : own_library, error.message(),
                        kCudaModuleFile, kCudaModuleVariable));
  }
  const std::filesystem::path folder = own.parent_path();
  const char* const modules = own_library.empty() ? kModulesFromPrograms : kModulesFromPython;
  const std::vector<std::string> paths = {folder / kCudaModuleFile,
                                          (folder / modules / kCudaModuleFile).lexically_normal()};
  for (const std::string& path : paths) {
    if (Exists(path)) return path;
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("the CUDA engine is not installed: neither %s is there; install spexd-cuda of version "
                      "%s with pip or apt, or name another place in $%s",
                      absl::StrJoin(paths, " nor "), kVersion, kCudaModuleVariable));
}

std::string LoaderError() {
  const char* text = dlerror();
  return text != nullptr ? text : "no reason given";
}

// Lists the items that differ between two identities "name value; name value; ...".
std::string Difference(const std::string& theirs, const std::string& ours) {
  const std::vector<std::string> there = absl::StrSplit(theirs, "; "), here = absl::StrSplit(ours, "; ");
  std::vector<std::string> differences;
  for (size_t k = 0; k < here.size() && there.size() == here.size(); ++k) {
    const std::pair<std::string, std::string> field = absl::StrSplit(here[k], absl::MaxSplits(' ', 1));
    const std::string name = field.first + " ";
    if (there[k] == here[k] || !absl::StartsWith(there[k], name)) continue;
    differences.push_back(
        absl::StrFormat("%s %s, here %s", field.first, there[k].substr(name.size()), field.second));
  }
  if (!differences.empty()) return absl::StrJoin(differences, "; ");
  return absl::StrFormat("identity \"%s\", here \"%s\"", theirs, ours);
}

absl::Status CheckBuild(const CudaModule& module, const std::string& path) {
  const std::string version = module.version != nullptr ? module.version : "(none)";
  if (version != kVersion) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is of version %s, this program of %s; install both from one build", path, version, kVersion));
  }
  const std::string build = module.build != nullptr ? module.build : "";
  if (build == kBuildIdentity) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s is from another build of version %s (%s); install both from one build", path,
                      kVersion, Difference(build, kBuildIdentity)));
}

absl::StatusOr<const CudaModule*> LoadModule() {
  SPEXD_ASSIGN_OR_RETURN(const std::string path, FindModule());
  // Never unloaded with dlclose: it contains the code of live objects and threads, and the CUDA runtime's
  // handlers for the end of the process.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat("%s cannot be loaded: %s", path, LoaderError()));
  }
  const auto* module = static_cast<const CudaModule*>(dlsym(library, kCudaModuleSymbol));
  if (module == nullptr) {
    return absl::FailedPreconditionError(absl::StrFormat("%s is no CUDA engine of spexd: it lacks %s (%s)",
                                                         path, kCudaModuleSymbol, LoaderError()));
  }
  SPEXD_RETURN_IF_ERROR(CheckBuild(*module, path));
  return module;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> LoadCudaEngine(const CudaEngineOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(const CudaModule* module, LoadModule());
  return CatchExceptions([&] { return module->make_engine(options); });
}

absl::StatusOr<std::unique_ptr<Analyser>> LoadCudaAnalyser(const CudaAnalyserOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(const CudaModule* module, LoadModule());
  return CatchExceptions([&] { return module->make_analyser(options); });
}

}  // namespace spexd
