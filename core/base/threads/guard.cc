#include "core/base/threads/guard.h"

#include <exception>
#include <new>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace spexd {
namespace {

// Made while there is memory. Copies share it.
const absl::Status* const kOutOfMemory = new absl::Status(absl::ResourceExhaustedError("out of memory"));
const absl::Status* const kNoThread =
    new absl::Status(absl::ResourceExhaustedError("no further thread can be started"));

absl::Status Internal(const char* what) noexcept {
  try {
    return absl::InternalError(absl::StrCat("internal error: ", what));
  } catch (...) {
    return OutOfMemory();
  }
}

}  // namespace

absl::Status OutOfMemory() noexcept { return *kOutOfMemory; }

absl::Status StatusOfException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) return *kNoThread;
    return Internal(error.what());
  } catch (const std::exception& error) {
    return Internal(error.what());
  } catch (...) {
    return Internal("not a standard exception");
  }
}

}  // namespace spexd
