// The CPU engine, which spreads bundles over threads and chooses vector instructions at run time.
#ifndef SPEXD_CORE_EXTRACT_CPU_CPU_ENGINE_H_
#define SPEXD_CORE_EXTRACT_CPU_CPU_ENGINE_H_

#include <cstdint>
#include <memory>

#include "core/extract/engine.h"

namespace spexd {

struct CpuEngineOptions {
  int threads = 0;                  // 0: as many as the process may use
  int64_t max_workspace_bytes = 0;  // 0: half of MachineMemory()
};

std::unique_ptr<Engine> MakeCpuEngine(const CpuEngineOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_CPU_CPU_ENGINE_H_
