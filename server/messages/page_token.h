// The tokens of lists that are sent page by page.
#ifndef SPEXD_SERVER_MESSAGES_PAGE_TOKEN_H_
#define SPEXD_SERVER_MESSAGES_PAGE_TOKEN_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/digest/crc32c.h"

namespace spexd {

// Returns the token of the page after the item of number `last`. `rpc`: the name of the call ("ListJobs"). A
// checksum of call and number distinguishes the token from other text and from tokens of other calls.
inline std::string PageToken(absl::string_view rpc, uint64_t last) {
  return absl::StrCat(last, "-", absl::Hex(Crc32c(absl::StrCat(rpc, " ", last)), absl::kZeroPad8));
}

// Returns the number in a token of PageToken; `first_page` for an empty token. InvalidArgument: it is no such
// token.
inline absl::StatusOr<uint64_t> NumberOfPageToken(absl::string_view rpc, absl::string_view token,
                                                  uint64_t first_page) {
  if (token.empty()) return first_page;
  uint64_t number = 0;
  if (absl::SimpleAtoi(token.substr(0, token.find('-')), &number) && PageToken(rpc, number) == token)
    return number;
  return absl::InvalidArgumentError(
      absl::StrCat("page_token is not one that ", rpc,
                   " returned; leave it empty for the first page, and send next_page_token of "
                   "each answer for the next one"));
}

}  // namespace spexd

#endif  // SPEXD_SERVER_MESSAGES_PAGE_TOKEN_H_
