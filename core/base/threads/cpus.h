// Number of CPUs that can be used.
#ifndef SPEXD_CORE_BASE_THREADS_CPUS_H_
#define SPEXD_CORE_BASE_THREADS_CPUS_H_

namespace spexd {

// CPUs that this process may run on, at least 1; in a container they can be fewer than the machine has.
int AvailableCpus();

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_THREADS_CPUS_H_
