// A job's inputs before they are read: names of files, or bytes that were uploaded.
#ifndef SPEXD_SERVER_JOBS_JOB_INPUTS_H_
#define SPEXD_SERVER_JOBS_JOB_INPUTS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/fits/readers.h"
#include "core/fits/source.h"
#include "server/byte_budget.h"
#include "server/path_policy.h"
#include "server/upload.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

struct FileInput {
  std::string name;                  // the path, or the upload's name
  std::optional<std::string> bytes;  // uploaded; none: to be read from the path

  // The file. Leaves the input without bytes.
  absl::StatusOr<Source> Open(const PathPolicy& paths, int64_t max_bytes);
};

// Pixels and ivar (float32), then mask (int32), each rows x columns.
struct RawInput {
  std::string name;
  int rows = 0;
  int columns = 0;
  std::vector<std::string> cards;
  std::string bytes;

  // The image after the mask rule. Leaves the input without bytes.
  Preproc Decode();
};

struct JobInputs {
  std::optional<FileInput> image;  // or
  std::optional<RawInput> raw_image;
  std::optional<FileInput> psf;  // or
  std::string psf_hash;
  std::optional<FileInput> fibermap;
  ByteBudget::Reservation memory;  // memory of the uploaded bytes
};

// Takes the messages of one Extract stream after its header.
class InputReceiver {
 public:
  // InvalidArgument: a source is missing, of a kind that does not fit, or larger than `max_bytes`.
  static absl::StatusOr<InputReceiver> Make(const v1::JobHeader& header, int64_t max_bytes);

  int64_t declared_bytes() const { return declared_bytes_; }
  const std::vector<std::string>& paths() const { return paths_; }  // the paths that the header names

  // InvalidArgument or DataLoss: see Upload; a chunk of an input that is not uploaded.
  absl::Status Add(const v1::ExtractRequest& message);
  bool complete() const;
  // DataLoss, naming an input that did not end. Call once.
  absl::StatusOr<JobInputs> Finish();

 private:
  absl::Status AddFile(const v1::InputSource& source, v1::Input input, int64_t max_bytes,
                       std::optional<FileInput>* file);
  absl::Status AddRaw(const v1::RawImage& raw, int64_t max_bytes);
  absl::Status Expect(v1::Input input, uint64_t bytes, const std::string& sha256, int64_t max_bytes);

  JobInputs inputs_;
  std::vector<std::string> paths_;
  std::map<v1::Input, std::unique_ptr<Upload>> uploads_;
  std::map<v1::Input, std::string> received_;
  int64_t declared_bytes_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_JOB_INPUTS_H_
