#include "cuda/loader/load_cuda_engine.h"

#include <dlfcn.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "cuda/loader/build_identity.h"

namespace spexd {
namespace {

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

absl::StatusOr<std::string> FindModule() {
  const char* named = std::getenv(kCudaModuleVariable);
  if (named != nullptr && *named != '\0') {
    // Without a slash dlopen would search the system's folders for it.
    if (*named != '/') {
      return absl::FailedPreconditionError(
          absl::StrFormat("$%s is \"%s\", must be a full path", kCudaModuleVariable, named));
    }
    if (Exists(named)) return std::string(named);
    return absl::FailedPreconditionError(
        absl::StrFormat("$%s names %s, which is not there", kCudaModuleVariable, named));
  }
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrFormat("/proc/self/exe cannot be read (%s), so %s cannot be found beside the program; name "
                        "its full path in $%s",
                        error.message(), kCudaModuleFile, kCudaModuleVariable));
  }
  const std::filesystem::path folder = program.parent_path();
  const std::vector<std::string> places = {folder / kCudaModuleFile,
                                           folder.parent_path() / "lib/spexd" / kCudaModuleFile};
  for (const std::string& place : places) {
    if (Exists(place)) return place;
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("the CUDA engine is not installed: neither %s is there; $%s can name another place",
                      absl::StrJoin(places, " nor "), kCudaModuleVariable));
}

std::string LoaderError() {
  const char* text = dlerror();
  return text != nullptr ? text : "no reason given";
}

absl::StatusOr<void*> Symbol(void* module, const std::string& path, const char* name) {
  dlerror();
  void* symbol = dlsym(module, name);
  if (symbol != nullptr) return symbol;
  return absl::FailedPreconditionError(
      absl::StrFormat("%s is no CUDA engine of spexd: it lacks %s (%s)", path, name, LoaderError()));
}

absl::Status CheckVersion(void* module, const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(void* symbol, Symbol(module, path, kCudaModuleVersion));
  const char* version = *static_cast<const char* const*>(symbol);
  if (version != nullptr && std::string(version) == kVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s is of version %s, this program of %s; install both from one build", path,
                      version != nullptr ? version : "(none)", kVersion));
}

// The items that differ between two identities "name value; name value; ...".
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

absl::Status CheckBuild(void* module, const std::string& path) {
  const void* symbol = dlsym(module, kCudaModuleBuild);
  const char* build = symbol != nullptr ? *static_cast<const char* const*>(symbol) : nullptr;
  if (build != nullptr && std::string(build) == kBuildIdentity) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s is from another build of version %s (%s); install both from one build", path,
                      kVersion, Difference(build != nullptr ? build : "", kBuildIdentity)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> LoadCudaEngine(const CudaEngineOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(const std::string path, FindModule());
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    const std::string reason = LoaderError();
    return absl::FailedPreconditionError(
        absl::StrFormat("%s cannot be loaded: %s%s", path, reason,
                        absl::StrContains(reason, "libcuda.so") ? " (is the NVIDIA driver installed?)" : ""));
  }
  // Never dlclose'd: the engine, its threads and the CUDA runtime's handlers for the end of the process live
  // in it.
  SPEXD_RETURN_IF_ERROR(CheckVersion(module, path));
  SPEXD_RETURN_IF_ERROR(CheckBuild(module, path));
  SPEXD_ASSIGN_OR_RETURN(void* entry, Symbol(module, path, kCudaModuleEntry));
  absl::StatusOr<std::unique_ptr<Engine>> engine = absl::InternalError(path + " made no engine");
  try {
    reinterpret_cast<MakeCudaEngineFunction*>(entry)(options, &engine);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrFormat("%s: %s", path, error.what()));
  }
  if (engine.ok() && *engine == nullptr) return absl::InternalError(path + " made no engine");
  return engine;
}

}  // namespace spexd
