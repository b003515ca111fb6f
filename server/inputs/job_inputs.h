// A job's inputs before they are read: names of files, or uploaded bytes.
#ifndef SPEXD_SERVER_INPUTS_JOB_INPUTS_H_
#define SPEXD_SERVER_INPUTS_JOB_INPUTS_H_

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/memory/memory_account.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/source.h"
#include "core/job/raw_image.h"
#include "core/products/analyse.h"
#include "server/admission/byte_budget.h"
#include "server/admission/path_policy.h"
#include "server/messages/upload.h"
#include "spexd/v1/analysis.pb.h"
#include "spexd/v1/extraction.pb.h"

namespace spexd {

// Returns "image", "psf", "fibermap", "fiberflat", "templates", "trace_reference", "spectra" or "redrock".
const char* InputName(v1::Input input);
// Returns the name that the client gives a source: its path, its psf_hash, or the name of the upload or of
// the arrays.
const std::string& NameOf(const v1::InputSource& source);

// A file: uploaded, or to be read from a path.
struct FileInput {
  std::string name;                  // the path, or the upload's name
  std::optional<std::string> bytes;  // uploaded bytes; nullopt: the file is read from the path
  std::optional<AllowedFile>
      file;  // set between Measure and Open; already before Measure if the client did not name the file
  int64_t max_bytes = 0;  // the limit of its size, on disk and inflated; set by Measure

  // Opens the path of a file that is not uploaded. Returns the memory that Open will take in addition to
  // uploaded bytes (for bytes read from the path and for inflated ones) and that readers of headers and
  // tables usually take.
  absl::StatusOr<int64_t> Measure(const PathPolicy& paths, int64_t limit);
  // Opens the file as a source; moves the bytes out of this input. Readers take their memory from `memory`;
  // null: without limit. Cancelled: a stop was requested. REQUIRES: Measure was OK.
  absl::StatusOr<Source> Open(std::shared_ptr<MemoryAccount> memory, const Workers& workers = {});
};

// The products that a job asks for, and their inputs. Each input is a file, the hash of a warm one, or
// neither.
struct ProductInputs {
  std::vector<Product> asked;
  std::optional<FileInput> fiberflat, templates;
  std::string fiberflat_hash, templates_hash;

  bool asks(Product product) const { return std::find(asked.begin(), asked.end(), product) != asked.end(); }
};

// A source of spectra of an analysis: a file, or the results of a detached job. `fiberflat` or its hash may
// be set, or neither.
struct SpectraSourceInput {
  std::optional<FileInput> file;  // nullopt: job_id is set
  std::string job_id;
  std::optional<FileInput> fiberflat;
  std::string fiberflat_hash;
};

// The inputs of a job. An extraction has all but `spectra` and `redrock`. An analysis has these and the
// templates of `products`.
struct JobInputs {
  std::string raw_name;
  std::optional<FileInput> image;  // nullopt: raw_image is set
  std::optional<RawImage> raw_image;
  std::optional<AllowedFile> raw_file;  // the bytes of raw_image if it has none
  std::optional<FileInput> psf;         // nullopt: psf_hash is set
  std::string psf_hash;
  std::optional<FileInput> fibermap;
  std::optional<FileInput> trace_reference;  // this, its hash, or neither is set
  std::string trace_reference_hash;
  ProductInputs products;
  std::vector<SpectraSourceInput> spectra;
  std::optional<FileInput> redrock;
  ByteBudget::Reservation memory;  // memory of the uploaded bytes
};

// Receives the inputs of a job: the messages of a stream of Extract, Submit or Analyse after its header.
class InputReceiver {
 public:
  // InvalidArgument: a source is missing, of the wrong kind, or larger than `max_bytes`.
  static absl::StatusOr<InputReceiver> Make(const v1::JobHeader& header, int64_t max_bytes);
  // Errors as above. REQUIRES: CheckAnalysisHeader(header) is OK.
  static absl::StatusOr<InputReceiver> Make(const v1::AnalysisHeader& header, int64_t max_bytes);

  int64_t declared_bytes() const { return declared_bytes_; }        // of all uploads
  const std::vector<std::string>& paths() const { return paths_; }  // the paths that the header names

  // Adds a message. `payload`: the payload of a chunk, in pieces, which replaces that of the message.
  // InvalidArgument: a chunk of an input that is not uploaded. InvalidArgument, DataLoss: see Upload.
  template <typename Request>
  absl::Status Add(const Request& message, absl::Span<const absl::string_view> payload) {
    if (message.has_chunk()) return AddChunk(message.chunk(), payload);
    if (message.has_end()) return AddEnd(message.end());
    return absl::InvalidArgumentError(message.has_header() ? "a second header came"
                                                           : "an empty message came");
  }
  template <typename Request>
  absl::Status Add(const Request& message) {
    const absl::string_view payload = message.chunk().payload();
    return Add(message, absl::MakeConstSpan(&payload, 1));
  }
  // Whether Add may take seconds for this end, because of a SHA-256 of a large input.
  bool TakesLong(const v1::InputEnd& end) const;
  bool complete() const;
  // Returns the inputs. Call it once. DataLoss names an input that did not end.
  absl::StatusOr<JobInputs> Finish();

  // Returns the inputs of a job whose uploads were kept in files, which `open` opens, without any messages.
  // DataLoss: a file does not have the size that the header declares.
  absl::StatusOr<JobInputs> FromFiles(
      const std::function<absl::StatusOr<AllowedFile>(v1::Input input)>& open);

 private:
  // An uploaded input, with its index if there may be several of it.
  struct Key {
    v1::Input input;
    uint32_t index = 0;

    std::string Name() const;  // "psf", "spectra[1]"
    auto operator<=>(const Key& other) const = default;
  };

  explicit InputReceiver(int64_t max_bytes) : max_bytes_(max_bytes) {}
  absl::Status AddChunk(const v1::InputChunk& chunk, absl::Span<const absl::string_view> payload);
  absl::Status AddEnd(const v1::InputEnd& end);
  absl::StatusOr<Upload*> Find(const Key& key);
  FileInput* FileOf(const Key& key);
  absl::Status AddFile(const v1::InputSource& source, const Key& key, std::optional<FileInput>* file);
  absl::Status AddProducts(const v1::ProductRequest& request);
  // Adds an input that may be named by its hash.
  absl::Status AddWarm(const v1::InputSource& source, const Key& key, std::optional<FileInput>* file,
                       std::string* hash);
  absl::Status AddRaw(const v1::RawImage& raw);
  absl::Status AddSpectra(const v1::SpectraSource& source, uint32_t index);
  absl::Status Expect(const Key& key, uint64_t bytes, const std::string& sha256);

  int64_t max_bytes_;  // of an upload
  JobInputs inputs_;
  std::vector<std::string> paths_;
  std::map<Key, std::unique_ptr<Upload>> uploads_;
  std::map<Key, std::string> received_;
  int64_t declared_bytes_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_INPUTS_JOB_INPUTS_H_
