#include "cuda/loader/device_usage.h"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace spexd {
namespace {

// The library stays loaded, because CUDA in this process uses it too.
void* LoadLibrary(const std::string& name) {
  return dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

}  // namespace

// Functions of NVIDIA's libraries, declared as in NVIDIA's documentation. Both interfaces are stable; 0 means
// success.
struct DeviceMonitor::Functions {
  struct Utilization {
    unsigned gpu, memory;  // percent
  };
  struct Memory {
    unsigned long long total, free, used;
  };
  using Device = void*;

  int (*init_driver)(unsigned flags) = nullptr;
  int (*driver_device)(int* device, int index) = nullptr;
  int (*pci_bus_id)(char* text, int bytes, int device) = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*device)(const char* pci_bus_id, Device* device) = nullptr;
  int (*utilization)(Device, Utilization*) = nullptr;
  int (*memory)(Device, Memory*) = nullptr;

  template <typename Function>
  static bool Find(void* library, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library, name));
    return *function != nullptr;
  }
  bool FindAll(void* management, void* driver) {
    return Find(driver, "cuInit", &init_driver) && Find(driver, "cuDeviceGet", &driver_device) &&
           Find(driver, "cuDeviceGetPCIBusId", &pci_bus_id) && Find(management, "nvmlInit_v2", &init) &&
           Find(management, "nvmlShutdown", &shutdown) &&
           Find(management, "nvmlDeviceGetHandleByPciBusId_v2", &device) &&
           Find(management, "nvmlDeviceGetUtilizationRates", &utilization) &&
           Find(management, "nvmlDeviceGetMemoryInfo", &memory);
  }
};

DeviceMonitor::DeviceMonitor(std::unique_ptr<const Functions> functions) : functions_(std::move(functions)) {}

DeviceMonitor::~DeviceMonitor() { functions_->shutdown(); }

std::unique_ptr<DeviceMonitor> DeviceMonitor::Load(const std::string& management, const std::string& driver) {
  void* const management_library = LoadLibrary(management);
  void* const driver_library = LoadLibrary(driver);
  if (management_library == nullptr || driver_library == nullptr) return nullptr;
  auto functions = std::make_unique<Functions>();
  if (!functions->FindAll(management_library, driver_library)) return nullptr;
  if (functions->init_driver(0) != 0 || functions->init() != 0) return nullptr;
  return std::unique_ptr<DeviceMonitor>(new DeviceMonitor(std::move(functions)));
}

// CUDA counts only the devices visible to it, the fastest first; the management library counts all. The two
// are matched by the address on the bus.
DeviceUsage DeviceMonitor::UsageOf(int index) const {
  DeviceUsage usage;
  int driver_device = 0;
  std::array<char, 32> pci_bus_id{};
  Functions::Device device = nullptr;
  if (functions_->driver_device(&driver_device, index) != 0 ||
      functions_->pci_bus_id(pci_bus_id.data(), static_cast<int>(pci_bus_id.size()), driver_device) != 0 ||
      functions_->device(pci_bus_id.data(), &device) != 0) {
    return usage;
  }
  Functions::Utilization utilization{};
  if (functions_->utilization(device, &utilization) == 0) usage.busy = utilization.gpu / 100.0;
  Functions::Memory memory{};
  if (functions_->memory(device, &memory) == 0) usage.used_bytes = static_cast<int64_t>(memory.used);
  return usage;
}

}  // namespace spexd
