// The files of warm items.
#ifndef SPEXD_SERVER_INPUTS_WARM_ITEM_H_
#define SPEXD_SERVER_INPUTS_WARM_ITEM_H_

#include <cstdint>
#include <stop_token>

#include "absl/status/statusor.h"
#include "core/fits/hdu/source.h"
#include "server/admission/warm_cache.h"
#include "server/config/options.h"

namespace spexd {

// Returns the limit of the size of an item's file, on disk and inflated.
int64_t MaxFileBytes(const ServerOptions& options, WarmKind kind);

// Returns an upper estimate of the memory of ReadWarmItem, from the file's headers. Cancelled: a stop was
// requested.
absl::StatusOr<int64_t> DecodeBytes(WarmKind kind, const Source& source, const std::stop_token& stop);

// Reads an item from its file. Cancelled: a stop was requested.
absl::StatusOr<WarmItem> ReadWarmItem(WarmKind kind, const Source& source, const std::stop_token& stop);

}  // namespace spexd

#endif  // SPEXD_SERVER_INPUTS_WARM_ITEM_H_
