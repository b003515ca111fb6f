// The files of what is kept warm.
#ifndef SPEXD_SERVER_INPUTS_WARM_ITEM_H_
#define SPEXD_SERVER_INPUTS_WARM_ITEM_H_

#include <cstdint>
#include <stop_token>

#include "absl/status/statusor.h"
#include "core/fits/hdu/source.h"
#include "server/admission/warm_cache.h"
#include "server/config/options.h"

namespace spexd {

// Limit of the bytes of an item's file, also once inflated.
int64_t MaxFileBytes(const ServerOptions& options, WarmKind kind);

// Memory that ReadWarmItem takes, as the file's headers tell: an upper estimate. Cancelled as it is.
absl::StatusOr<int64_t> DecodeBytes(WarmKind kind, const Source& source, const std::stop_token& stop);

// Reads an item from its file. Cancelled if a stop is requested.
absl::StatusOr<WarmItem> ReadWarmItem(WarmKind kind, const Source& source, const std::stop_token& stop);

}  // namespace spexd

#endif  // SPEXD_SERVER_INPUTS_WARM_ITEM_H_
