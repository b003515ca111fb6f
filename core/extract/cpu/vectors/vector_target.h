// The name of the vector instructions that the engine uses on this machine.
#ifndef SPEXD_CORE_EXTRACT_CPU_VECTORS_VECTOR_TARGET_H_
#define SPEXD_CORE_EXTRACT_CPU_VECTORS_VECTOR_TARGET_H_

namespace spexd::cpu {

const char* VectorTargetName();

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_VECTORS_VECTOR_TARGET_H_
