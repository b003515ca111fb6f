// Number of CPUs that can be used.
#ifndef SPEXD_CORE_BASE_MACHINE_CPUS_H_
#define SPEXD_CORE_BASE_MACHINE_CPUS_H_

namespace spexd {

// CPUs that this process may use, at least 1: those that it may run on, or fewer if its control group limits
// their time (see GroupLimit), as a container with a limit of CPUs does.
int AvailableCpus();

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MACHINE_CPUS_H_
