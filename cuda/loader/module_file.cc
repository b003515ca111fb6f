#include "cuda/loader/module_file.h"

#include <dlfcn.h>

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
#include "core/base/install_places.h"
#include "core/base/status_macros.h"
#include "core/base/version.h"
#include "cuda/loader/build_identity.h"

namespace spexd {
namespace {

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

absl::StatusOr<std::string> FindModule(const ModuleNames& names) {
  const char* named = std::getenv(names.variable);
  if (named != nullptr && *named != '\0') {
    // Without a slash dlopen would search the system's folders for it.
    if (*named != '/') {
      return absl::FailedPreconditionError(
          absl::StrFormat("$%s is \"%s\", must be a full path", names.variable, named));
    }
    if (Exists(named)) return std::string(named);
    return absl::FailedPreconditionError(
        absl::StrFormat("$%s names %s, which is not there", names.variable, named));
  }
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrFormat("/proc/self/exe cannot be read (%s), so %s cannot be found beside the program; name "
                        "its full path in $%s",
                        error.message(), names.file, names.variable));
  }
  const std::filesystem::path folder = program.parent_path();
  const std::vector<std::string> places = {folder / names.file,
                                           (folder / kModulesFromPrograms / names.file).lexically_normal()};
  for (const std::string& place : places) {
    if (Exists(place)) return place;
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("the %s is not installed: neither %s is there; $%s can name another place", names.what,
                      absl::StrJoin(places, " nor "), names.variable));
}

std::string LoaderError() {
  const char* text = dlerror();
  return text != nullptr ? text : "no reason given";
}

// What an operator can do about a library that is missing.
std::string HintOn(const std::string& reason) {
  if (absl::StrContains(reason, "libcuda.so")) return " (is the NVIDIA driver installed?)";
  if (absl::StrContains(reason, "libcublas") || absl::StrContains(reason, "libcusolver")) {
    return " (is this library of NVIDIA's CUDA toolkit installed, where the system's loader looks or in "
           "$LD_LIBRARY_PATH?)";
  }
  return "";
}

absl::StatusOr<void*> Symbol(void* module, const std::string& path, const ModuleNames& names,
                             const char* name) {
  dlerror();
  void* symbol = dlsym(module, name);
  if (symbol != nullptr) return symbol;
  return absl::FailedPreconditionError(
      absl::StrFormat("%s is no %s of spexd: it lacks %s (%s)", path, names.what, name, LoaderError()));
}

absl::Status CheckVersion(void* module, const std::string& path, const ModuleNames& names) {
  SPEXD_ASSIGN_OR_RETURN(void* symbol, Symbol(module, path, names, names.version));
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

absl::Status CheckBuild(void* module, const std::string& path, const ModuleNames& names) {
  const void* symbol = dlsym(module, names.build);
  const char* build = symbol != nullptr ? *static_cast<const char* const*>(symbol) : nullptr;
  if (build != nullptr && std::string(build) == kBuildIdentity) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrFormat("%s is from another build of version %s (%s); install both from one build", path,
                      kVersion, Difference(build != nullptr ? build : "", kBuildIdentity)));
}

}  // namespace

absl::StatusOr<LoadedModule> LoadModule(const ModuleNames& names) {
  LoadedModule loaded;
  SPEXD_ASSIGN_OR_RETURN(loaded.path, FindModule(names));
  void* module = dlopen(loaded.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    const std::string reason = LoaderError();
    return absl::FailedPreconditionError(
        absl::StrFormat("%s cannot be loaded: %s%s", loaded.path, reason, HintOn(reason)));
  }
  // Never dlclose'd: its objects, its threads and the CUDA runtime's handlers for the end of the process live
  // in it.
  SPEXD_RETURN_IF_ERROR(CheckVersion(module, loaded.path, names));
  SPEXD_RETURN_IF_ERROR(CheckBuild(module, loaded.path, names));
  SPEXD_ASSIGN_OR_RETURN(loaded.entry, Symbol(module, loaded.path, names, names.entry));
  return loaded;
}

}  // namespace spexd
