// The number of CPUs that a process may use.
#ifndef SPEXD_CORE_BASE_MACHINE_CPUS_H_
#define SPEXD_CORE_BASE_MACHINE_CPUS_H_

namespace spexd {

// The number of CPUs that this process may run on, or fewer if its control group limits their time, such as
// that of a container (see GroupLimit). At least 1.
int AvailableCpus();

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MACHINE_CPUS_H_
