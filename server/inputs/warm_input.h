// An input of products that may be warm: a fiberflat or templates.
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

// It is opened while the job has its slot and loaded afterwards.
class WarmInput {
 public:
  // The input is a file, a warm one named by its hash, or neither.
  WarmInput(WarmKind kind, std::optional<FileInput> file, std::string hash)
      : kind_(kind), file_(std::move(file)), hash_(std::move(hash)) {}

  bool asked() const { return file_.has_value() || !hash_.empty(); }
  // The file to measure and open; null: there is none.
  FileInput* file() { return file_.has_value() ? &*file_ : nullptr; }

  // Opens the file and reads its headers but no pixels, or finds the hash. Returns only errors of `open`. If
  // the file is wrong or the hash is not warm, status() says so.
  absl::Status Open(WarmCache* cache, const FileOpener& open);
  // The rows and columns of the array, and the memory that Load takes, including that of the file.
  const InputOutline& outline() const { return outline_; }
  int64_t bytes() const {
    return outline_.decode_bytes + (source_.has_value() ? source_->memory_bytes() : 0);
  }
  // Drops the input, so that it is not loaded, for the reason `why`. OK: it is not needed.
  void Drop(absl::Status why = absl::OkStatus());
  // Reads the pixels, or takes them from the warm cache.
  void Load(WarmCache* cache, const std::stop_token& stop);

  const absl::Status& status() const { return status_; }
  // The item that was found or loaded; null: none was asked for, or status() says why there is none.
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
