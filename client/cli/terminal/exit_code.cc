#include "client/cli/terminal/exit_code.h"

#include <cstdio>

#include "client/cli/terminal/terminal_text.h"

namespace spexd::cli {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return kUsage;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
      return kServer;
    case absl::StatusCode::kCancelled:
      return kInterrupted;
    default:
      return kInternal;
  }
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "spex: %s\n", ForTerminal(status.message()).c_str());
  return ExitCodeOf(status);
}

}  // namespace spexd::cli
