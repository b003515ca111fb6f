// The checks of this machine.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_MACHINE_CHECKS_H_
#define SPEXD_CLIENT_CLI_DOCTOR_MACHINE_CHECKS_H_

#include "client/cli/doctor/finding.h"

namespace spexd::cli {

// Checks version, processors, memory, the current folder, the CUDA engine and its devices, and Python for
// pictures.
FindingList CheckMachine();

// Lists the environment variables of spex and spexd that are set.
FindingList CheckEnvironment();

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_MACHINE_CHECKS_H_
