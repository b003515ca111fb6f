// Whether this machine has what spex needs.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_MACHINE_CHECKS_H_
#define SPEXD_CLIENT_CLI_DOCTOR_MACHINE_CHECKS_H_

#include "client/cli/doctor/finding.h"

namespace spexd::cli {

// Version, processors, memory, the current folder, the CUDA engine and its devices, Python for pictures.
FindingList CheckMachine();

// The variables of the environment that spex and spexd read, as far as they are set: a line each.
FindingList CheckEnvironment();

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_MACHINE_CHECKS_H_
