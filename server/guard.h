// The catch-all at the boundaries: an exception becomes a Status.
#ifndef SPEXD_SERVER_GUARD_H_
#define SPEXD_SERVER_GUARD_H_

#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace spexd {

// What `body` returns (a Status or StatusOr); ResourceExhausted if memory ran out, Internal for any other
// exception.
template <typename Body>
auto CatchExceptions(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the server ran out of memory for this request");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("internal error: ", error.what()));
  } catch (...) {
    return absl::InternalError("internal error");
  }
}

}  // namespace spexd

#endif  // SPEXD_SERVER_GUARD_H_
