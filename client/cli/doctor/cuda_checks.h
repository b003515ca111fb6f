// Whether CUDA can be used here, and why not.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_CUDA_CHECKS_H_
#define SPEXD_CLIENT_CLI_DOCTOR_CUDA_CHECKS_H_

#include "client/cli/doctor/finding.h"

namespace spexd::cli {

// The driver with its devices, a line each, and the CUDA engine, which is loaded and started on all of them.
FindingList CheckCuda();

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_CUDA_CHECKS_H_
