// An input of products that may be kept warm: a fiberflat or templates.
#ifndef SPEXD_SERVER_INPUTS_WARM_INPUT_H_
#define SPEXD_SERVER_INPUTS_WARM_INPUT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/products/inputs/input_outline.h"
#include "server/admission/warm_cache.h"
#include "server/inputs/job_inputs.h"

namespace spexd {

// Opens a job's file.
using FileOpener = std::function<absl::StatusOr<Source>(FileInput*)>;

class WarmInput {
 public:
  // A file, the hash of one that is kept warm, or neither.
  WarmInput(WarmKind kind, std::optional<FileInput> file, std::string hash)
      : kind_(kind), file_(std::move(file)), hash_(std::move(hash)) {}

  bool asked() const { return file_.has_value() || !hash_.empty(); }
  // The file to be opened; null: there is none.
  FileInput* file() { return file_.has_value() ? &*file_ : nullptr; }

  // Opens the file and reads its headers, no pixels; or finds what its hash names. Errors of `open` alone:
  // what is wrong with the file, or a hash that is not warm (any more), is in status().
  absl::Status Open(WarmCache* cache, const FileOpener& open);
  // Its rows and columns, and the memory that Load takes, with that of the file.
  const InputOutline& outline() const { return outline_; }
  int64_t bytes() const {
    return outline_.decode_bytes + (source_.has_value() ? source_->memory_bytes() : 0);
  }
  // It is not to be loaded, for this reason; null: it is not needed.
  void Drop(absl::Status why = absl::OkStatus());
  // Reads the pixels, or takes them from the warm cache.
  void Load(WarmCache* cache, const std::stop_token& stop);

  const absl::Status& status() const { return status_; }
  // What was found or loaded; null: nothing was asked for, or status() says why there is nothing.
  const WarmCache::Lease* get() const { return lease_.has_value() ? &*lease_ : nullptr; }

 private:
  const WarmKind kind_;
  std::optional<FileInput> file_;
  const std::string hash_;
  std::optional<Source> source_;  // opened, not decoded
  std::optional<WarmCache::Lease> lease_;
  InputOutline outline_;
  absl::Status status_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_INPUTS_WARM_INPUT_H_
