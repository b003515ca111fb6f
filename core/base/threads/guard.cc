#include "core/base/threads/guard.h"

#include <exception>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace spexd {
namespace {

absl::Status Internal(const char* what) {
  return absl::InternalError(absl::StrCat("internal error: ", what));
}

}  // namespace

absl::Status StatusOfException() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again)
      return absl::ResourceExhaustedError("no further thread can be started");
    return Internal(error.what());
  } catch (const std::exception& error) {
    return Internal(error.what());
  } catch (...) {
    return Internal("not a standard exception");
  }
}

}  // namespace spexd
