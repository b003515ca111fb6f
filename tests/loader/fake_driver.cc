// Replaces libcuda.so.1 and libnvidia-ml.so.1. There are two devices, which CUDA counts in the opposite
// order. CUDA's second device is a part of a divided device, and does not report how busy it is.
#include <cstdio>
#include <cstring>

namespace {

constexpr char kFirst[] = "0000:0A:00.0", kSecond[] = "0000:0B:00.0";
struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
int first, second;

}  // namespace

extern "C" {

int cuInit(unsigned) { return 0; }
int cuDeviceGet(int* device, int index) {
  *device = 10 + index;
  return index < 2 ? 0 : 101;
}
int cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::snprintf(text, static_cast<size_t>(bytes), "%s", device == 10 ? kSecond : kFirst);
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 13010;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}
int cuDeviceGetName(char* text, int bytes, int device) {
  std::snprintf(text, static_cast<size_t>(bytes), "%s", device == 10 ? "Fake H9" : "Fake H9 MIG 1g.18gb");
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = device == 10 ? 9000 : 1000;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 3 : -1;
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  std::snprintf(text, bytes, "580.1");
  return 0;
}
int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* pci_bus_id, void** device) {
  *device = std::strcmp(pci_bus_id, kFirst) == 0 ? &first : &second;
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* utilization) {
  utilization->gpu = 75;
  return device == &second ? 0 : 3;  // 3: not supported
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  memory->used = device == &second ? 2000 : 1000;
  return 0;
}

}  // extern "C"
