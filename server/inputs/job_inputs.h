// A job's inputs before they are read: names of files, or bytes that were uploaded.
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

// "image", "psf", "fibermap", "fiberflat", "templates", "trace_reference", "spectra", "redrock".
const char* InputName(v1::Input input);
// A source's name as the client gives it: its path, hash, or the upload's or the arrays' name.
const std::string& NameOf(const v1::InputSource& source);

struct FileInput {
  std::string name;                  // the path, or the upload's name
  std::optional<std::string> bytes;  // uploaded; none: to be read from the path
  std::optional<AllowedFile>
      file;  // open between Measure and Open; before, if it is not the client's to name
  int64_t max_bytes = 0;  // its limit, on disk and inflated, which Measure sets

  // Memory that Open will take beside an upload's bytes (those read from the path, and inflated ones), and
  // what readers of headers and tables usually take.
  absl::StatusOr<int64_t> Measure(const PathPolicy& paths, int64_t limit);
  // The file, whose readers take their memory from `memory`; null: memory has no limit. Leaves the input
  // without bytes. Cancelled if a stop is requested. REQUIRES: Measure.
  absl::StatusOr<Source> Open(std::shared_ptr<MemoryAccount> memory, const Workers& workers = {});
};

// The products that a job asks for, and their inputs: a file, or the hash of one that is kept warm, or
// neither.
struct ProductInputs {
  std::vector<Product> asked;
  std::optional<FileInput> fiberflat, templates;
  std::string fiberflat_hash, templates_hash;

  bool asks(Product product) const { return std::find(asked.begin(), asked.end(), product) != asked.end(); }
};

// A source of spectra of an analysis: a file, or the results of a detached job.
struct SpectraSourceInput {
  std::optional<FileInput> file;  // or
  std::string job_id;
  std::optional<FileInput> fiberflat;  // or its hash, or neither
  std::string fiberflat_hash;
};

// An extraction has all but `spectra` and `redrock`; an analysis has these, and the templates of `products`.
struct JobInputs {
  std::string raw_name;
  std::optional<FileInput> image;  // or
  std::optional<RawImage> raw_image;
  std::optional<AllowedFile> raw_file;  // with the bytes of raw_image, if those are not there
  std::optional<FileInput> psf;         // or
  std::string psf_hash;
  std::optional<FileInput> fibermap;
  std::optional<FileInput> trace_reference;  // or its hash, or neither
  std::string trace_reference_hash;
  ProductInputs products;
  std::vector<SpectraSourceInput> spectra;
  std::optional<FileInput> redrock;
  ByteBudget::Reservation memory;  // memory of the uploaded bytes
};

// Takes the messages of one stream of a job (Extract, Submit, Analyse) after its header.
class InputReceiver {
 public:
  // InvalidArgument: a source is missing, of a kind that does not fit, or larger than `max_bytes`.
  static absl::StatusOr<InputReceiver> Make(const v1::JobHeader& header, int64_t max_bytes);
  // REQUIRES: CheckAnalysisHeader of it is OK.
  static absl::StatusOr<InputReceiver> Make(const v1::AnalysisHeader& header, int64_t max_bytes);

  int64_t declared_bytes() const { return declared_bytes_; }
  const std::vector<std::string>& paths() const { return paths_; }  // the paths that the header names

  // `payload`: a chunk's, in pieces, instead of what the message has. InvalidArgument or DataLoss: see
  // Upload; a chunk of an input that is not uploaded.
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
  // Whether Add of this end takes seconds for a large input.
  bool TakesLong(const v1::InputEnd& end) const;
  bool complete() const;
  // DataLoss, naming an input that did not end. Call once.
  absl::StatusOr<JobInputs> Finish();

  // Instead of all that: the inputs of a job whose uploads were kept in files, which `open` opens. DataLoss:
  // a file has not the size that the header declares.
  absl::StatusOr<JobInputs> FromFiles(
      const std::function<absl::StatusOr<AllowedFile>(v1::Input input)>& open);

 private:
  // What is uploaded: of inputs that may be several, which one.
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
  // An input that may be named by its hash.
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
