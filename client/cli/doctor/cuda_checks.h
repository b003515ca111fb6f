// The checks of CUDA on this machine.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_CUDA_CHECKS_H_
#define SPEXD_CLIENT_CLI_DOCTOR_CUDA_CHECKS_H_

#include "client/cli/doctor/finding.h"

namespace spexd::cli {

// Checks the driver and its devices, with a finding for each, and the CUDA engine, which is loaded and
// started on all devices.
FindingList CheckCuda();

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_CUDA_CHECKS_H_
