// Named ranges of host time for profilers, which project them to the device; without a profiler they cost
// nothing.
#ifndef SPEXD_CUDA_RUNTIME_NVTX_H_
#define SPEXD_CUDA_RUNTIME_NVTX_H_

#include <nvtx3/nvToolsExt.h>

namespace spexd::cuda {

class NvtxDomain {
 public:
  NvtxDomain() : domain_(nvtxDomainCreateA("spexd")) {}
  ~NvtxDomain() { nvtxDomainDestroy(domain_); }
  NvtxDomain(const NvtxDomain&) = delete;
  NvtxDomain& operator=(const NvtxDomain&) = delete;

  nvtxDomainHandle_t get() const { return domain_; }

 private:
  const nvtxDomainHandle_t domain_;
};

// A range of this thread, from here to the end of its scope.
class NvtxRange {
 public:
  NvtxRange(const NvtxDomain& domain, const char* name) : domain_(domain) { Push(name); }
  ~NvtxRange() { nvtxDomainRangePop(domain_.get()); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

  // Ends this range and begins the next.
  void Next(const char* name) {
    nvtxDomainRangePop(domain_.get());
    Push(name);
  }

 private:
  void Push(const char* name) {
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    nvtxDomainRangePushEx(domain_.get(), &attributes);
  }

  const NvtxDomain& domain_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_NVTX_H_
