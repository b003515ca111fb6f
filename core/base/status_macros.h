// Early return on absl::Status errors.
#ifndef SPEXD_CORE_BASE_STATUS_MACROS_H_
#define SPEXD_CORE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define SPEXD_RETURN_IF_ERROR(expression)                                 \
  do {                                                                    \
    if (absl::Status spexd_status_ = (expression); !spexd_status_.ok()) { \
      return spexd_status_;                                               \
    }                                                                     \
  } while (false)

#define SPEXD_CONCAT_INNER_(a, b) a##b
#define SPEXD_CONCAT_(a, b) SPEXD_CONCAT_INNER_(a, b)

// Example: SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadPsf(source));
#define SPEXD_ASSIGN_OR_RETURN(declaration, expression) \
  SPEXD_ASSIGN_OR_RETURN_IMPL_(SPEXD_CONCAT_(spexd_value_, __LINE__), declaration, expression)
#define SPEXD_ASSIGN_OR_RETURN_IMPL_(temporary, declaration, expression) \
  auto temporary = (expression);                                         \
  if (!temporary.ok()) return std::move(temporary).status();             \
  declaration = *std::move(temporary)

#endif  // SPEXD_CORE_BASE_STATUS_MACROS_H_
