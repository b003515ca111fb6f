#include "cuda/loader/driver_facts.h"

#include <dlfcn.h>

#include <array>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace spexd {
namespace {

// Constants of CUDA's driver interface, which is stable; 0 means success.
constexpr int kMajorAttribute = 75, kMinorAttribute = 76;
constexpr int kNoDevice = 100, kVersionMismatch = 803;

// The library stays loaded, because CUDA in this process uses it too.
void* LoadForGood(const std::string& name) {
  return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

template <typename Function>
bool Look(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

struct DriverCalls {
  int (*init)(unsigned flags) = nullptr;
  int (*version)(int* version) = nullptr;
  int (*count)(int* count) = nullptr;
  int (*get)(int* device, int index) = nullptr;
  int (*name)(char* text, int bytes, int device) = nullptr;
  int (*memory)(size_t* bytes, int device) = nullptr;
  int (*attribute)(int* value, int attribute, int device) = nullptr;

  bool LookAll(void* library) {
    return Look(library, "cuInit", &init) && Look(library, "cuDriverGetVersion", &version) &&
           Look(library, "cuDeviceGetCount", &count) && Look(library, "cuDeviceGet", &get) &&
           Look(library, "cuDeviceGetName", &name) && Look(library, "cuDeviceTotalMem_v2", &memory) &&
           Look(library, "cuDeviceGetAttribute", &attribute);
  }
};

// Returns the driver's version; "" if the management library does not report it.
std::string VersionBy(const std::string& management) {
  void* const library = LoadForGood(management);
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*version)(char* text, unsigned bytes) = nullptr;
  std::array<char, 96> text{};
  if (library == nullptr || !Look(library, "nvmlInit_v2", &init) ||
      !Look(library, "nvmlShutdown", &shutdown) || !Look(library, "nvmlSystemGetDriverVersion", &version) ||
      init() != 0) {
    return "";
  }
  const bool told = version(text.data(), static_cast<unsigned>(text.size() - 1)) == 0;
  shutdown();
  return told ? text.data() : "";
}

DriverDevice DeviceAt(const DriverCalls& calls, int index) {
  DriverDevice facts;
  int device = 0;
  std::array<char, 256> name{};
  size_t bytes = 0;
  if (calls.get(&device, index) != 0) return facts;
  if (calls.name(name.data(), static_cast<int>(name.size() - 1), device) == 0) facts.name = name.data();
  if (calls.memory(&bytes, device) == 0) facts.memory_bytes = static_cast<int64_t>(bytes);
  calls.attribute(&facts.major, kMajorAttribute, device);
  calls.attribute(&facts.minor, kMinorAttribute, device);
  facts.mig = facts.name.find(" MIG ") != std::string::npos;
  return facts;
}

}  // namespace

absl::StatusOr<DriverFacts> AskDriver(const std::string& management, const std::string& driver) {
  void* const library = LoadForGood(driver);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrFormat("NVIDIA's driver is not installed (%s is not found)", driver));
  }
  DriverCalls calls;
  if (!calls.LookAll(library))
    return absl::FailedPreconditionError(absl::StrCat(driver, " lacks functions of NVIDIA's driver"));
  DriverFacts facts;
  facts.version = VersionBy(management);
  if (calls.version(&facts.cuda_version) != 0) facts.cuda_version = 0;
  const int error = calls.init(0);
  if (error == kNoDevice) return facts;
  if (error != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "NVIDIA's driver cannot start: error %d of cuInit%s", error,
        error == kVersionMismatch ? ", its library and the kernel's module differ in version" : ""));
  }
  int count = 0;
  if (calls.count(&count) != 0) count = 0;
  for (int index = 0; index < count; ++index) facts.devices.push_back(DeviceAt(calls, index));
  return facts;
}

}  // namespace spexd
