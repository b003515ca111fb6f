#include "server/inputs/job_inputs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/model/fits_header.h"
#include "core/model/psf.h"
#include "core/traces/shifts/reference.h"
#include "proto/product_part.h"

namespace spexd {
namespace {

absl::Status CheckCard(const std::string& card, int index) {
  if (card.size() != kFitsCardBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "image.raw.header_cards[%d] has %d characters, must be %d", index, card.size(), kFitsCardBytes));
  }
  if (std::any_of(card.begin(), card.end(), [](char c) { return c < ' ' || c > '~'; })) {
    return absl::InvalidArgumentError(
        absl::StrFormat("image.raw.header_cards[%d] has a character that FITS does not allow", index));
  }
  return absl::OkStatus();
}

absl::Status CheckSide(const char* field, uint32_t value) {
  if (value >= 1 && value <= static_cast<uint32_t>(kMaxCcdSide)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("image.raw.%s is %d, must be 1 to %d", field, value, kMaxCcdSide));
}

// Returns the memory that readers of a file of `bytes` usually take for its headers and tables.
int64_t UsualStructureBytes(int64_t bytes) {
  constexpr int64_t kUsualBytes = int64_t{8} << 20;
  return std::min(2 * bytes, kUsualBytes);
}

}  // namespace

const char* InputName(v1::Input input) {
  switch (input) {
    case v1::INPUT_IMAGE:
      return "image";
    case v1::INPUT_PSF:
      return "psf";
    case v1::INPUT_FIBERMAP:
      return "fibermap";
    case v1::INPUT_FIBERFLAT:
      return "fiberflat";
    case v1::INPUT_TEMPLATES:
      return "templates";
    case v1::INPUT_TRACE_REFERENCE:
      return "trace_reference";
    case v1::INPUT_SPECTRA:
      return "spectra";
    case v1::INPUT_REDROCK:
      return "redrock";
    default:
      return "unspecified input";
  }
}

const std::string& NameOf(const v1::InputSource& source) {
  if (source.has_path()) return source.path();
  if (source.has_upload()) return source.upload().name();
  return source.has_raw() ? source.raw().name() : source.psf_hash();
}

absl::StatusOr<int64_t> FileInput::Measure(const PathPolicy& paths, int64_t limit) {
  max_bytes = limit;
  const SourceLimits limits{max_bytes, nullptr};
  if (bytes.has_value()) {
    const int64_t size = static_cast<int64_t>(bytes->size());
    const int64_t inflated = Source::FirstInflatedBytes(*bytes, *bytes, size, limits);
    return inflated + UsualStructureBytes(std::max(size, inflated));
  }
  if (!file.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(file, paths.Open(name, max_bytes));
  }
  const int64_t size = file->bytes();
  const int64_t inflated = Source::FirstInflatedBytes(file->Peek(0), file->Peek(size - 4), size, limits);
  return size + inflated + UsualStructureBytes(std::max(size, inflated));
}

absl::StatusOr<Source> FileInput::Open(std::shared_ptr<MemoryAccount> memory, const Workers& workers) {
  const SourceLimits limits{max_bytes, std::move(memory), workers.stop, workers.threads};
  if (bytes.has_value()) return Source::FromBytes(name, *std::exchange(bytes, std::nullopt), limits);
  const AllowedFile open = *std::exchange(file, std::nullopt);
  return Source::FromOpenFile(name, open.descriptor(), open.bytes(), limits);
}

std::string InputReceiver::Key::Name() const {
  if (index == 0 && input != v1::INPUT_SPECTRA) return InputName(input);
  return absl::StrFormat("%s[%d]", InputName(input), index);
}

absl::Status InputReceiver::Expect(const Key& key, uint64_t bytes, const std::string& sha256) {
  if (bytes < 1) return absl::InvalidArgumentError(absl::StrFormat("%s: an upload of 0 bytes", key.Name()));
  if (bytes > static_cast<uint64_t>(max_bytes_)) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: an upload of %d bytes, the server's limit is %d",
                                                      key.Name(), bytes, max_bytes_));
  }
  uploads_[key] = std::make_unique<Upload>(key.Name(), bytes, sha256);
  declared_bytes_ += static_cast<int64_t>(bytes);
  return absl::OkStatus();
}

absl::Status InputReceiver::AddFile(const v1::InputSource& source, const Key& key,
                                    std::optional<FileInput>* file) {
  switch (source.source_case()) {
    case v1::InputSource::kPath:
      *file = FileInput{source.path(), std::nullopt, std::nullopt};
      paths_.push_back(source.path());
      return absl::OkStatus();
    case v1::InputSource::kUpload:
      *file = FileInput{source.upload().name(), std::string(), std::nullopt};
      return Expect(key, source.upload().bytes(), source.upload().sha256());
    case v1::InputSource::SOURCE_NOT_SET:
      return absl::InvalidArgumentError(absl::StrFormat("%s: no source is set", key.Name()));
    default:
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: %s", key.Name(),
          source.has_raw()        ? "raw arrays are only for the image"
          : source.has_psf_hash() ? "psf_hash is only for the PSF"
                                  : "content_hash is only for fiberflat, templates and trace_reference"));
  }
}

absl::Status InputReceiver::AddRaw(const v1::RawImage& raw) {
  SPEXD_RETURN_IF_ERROR(CheckSide("rows", raw.rows()));
  SPEXD_RETURN_IF_ERROR(CheckSide("columns", raw.columns()));
  RawImage input;
  input.rows = static_cast<int>(raw.rows());
  input.columns = static_cast<int>(raw.columns());
  for (int k = 0; k < raw.header_cards_size(); ++k) {
    SPEXD_RETURN_IF_ERROR(CheckCard(raw.header_cards(k), k));
    input.cards.push_back(raw.header_cards(k));
  }
  inputs_.raw_image = std::move(input);
  inputs_.raw_name = raw.name();
  return Expect({v1::INPUT_IMAGE}, uint64_t{raw.rows()} * raw.columns() * kRawBytesPerPixel, "");
}

absl::Status InputReceiver::AddWarm(const v1::InputSource& source, const Key& key,
                                    std::optional<FileInput>* file, std::string* hash) {
  if (!source.has_content_hash()) return AddFile(source, key, file);
  *hash = source.content_hash();
  if (!hash->empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s: content_hash is empty", key.Name()));
}

absl::Status InputReceiver::AddProducts(const v1::ProductRequest& request) {
  ProductInputs& products = inputs_.products;
  for (const ProductInfo& info : kProducts) {
    if (Asks(request, info)) products.asked.push_back(info.product);
  }
  if (products.asked.empty())
    return absl::InvalidArgumentError("products: none is asked for; set sky, lines or templates");
  if (request.has_templates()) {
    SPEXD_RETURN_IF_ERROR(
        AddWarm(request.templates(), {v1::INPUT_TEMPLATES}, &products.templates, &products.templates_hash));
  }
  if (!request.has_fiberflat()) return absl::OkStatus();
  return AddWarm(request.fiberflat(), {v1::INPUT_FIBERFLAT}, &products.fiberflat, &products.fiberflat_hash);
}

absl::StatusOr<InputReceiver> InputReceiver::Make(const v1::JobHeader& header, int64_t max_bytes) {
  InputReceiver receiver(max_bytes);
  JobInputs& inputs = receiver.inputs_;
  if (header.image().has_raw()) {
    SPEXD_RETURN_IF_ERROR(receiver.AddRaw(header.image().raw()));
  } else {
    SPEXD_RETURN_IF_ERROR(receiver.AddFile(header.image(), {v1::INPUT_IMAGE}, &inputs.image));
  }
  if (header.psf().has_psf_hash()) {
    if (header.psf().psf_hash().empty()) return absl::InvalidArgumentError("psf.psf_hash is empty");
    inputs.psf_hash = header.psf().psf_hash();
  } else {
    SPEXD_RETURN_IF_ERROR(receiver.AddFile(header.psf(), {v1::INPUT_PSF}, &inputs.psf));
  }
  if (header.has_fibermap())
    SPEXD_RETURN_IF_ERROR(receiver.AddFile(header.fibermap(), {v1::INPUT_FIBERMAP}, &inputs.fibermap));
  if (header.has_trace_reference()) {
    receiver.max_bytes_ = std::min(max_bytes, kMaxReferenceBytes);
    SPEXD_RETURN_IF_ERROR(receiver.AddWarm(header.trace_reference(), {v1::INPUT_TRACE_REFERENCE},
                                           &inputs.trace_reference, &inputs.trace_reference_hash));
    receiver.max_bytes_ = max_bytes;
  }
  if (header.has_products()) SPEXD_RETURN_IF_ERROR(receiver.AddProducts(header.products()));
  return receiver;
}

absl::Status InputReceiver::AddSpectra(const v1::SpectraSource& source, uint32_t index) {
  const Key key{v1::INPUT_SPECTRA, index};
  SpectraSourceInput& input = inputs_.spectra.emplace_back();
  if (source.has_fiberflat()) {
    SPEXD_RETURN_IF_ERROR(
        AddWarm(source.fiberflat(), {v1::INPUT_FIBERFLAT, index}, &input.fiberflat, &input.fiberflat_hash));
  }
  if (source.has_job_id()) {
    input.job_id = source.job_id();
    return absl::OkStatus();
  }
  v1::InputSource file;
  if (source.has_path()) file.set_path(source.path());
  if (source.has_upload()) *file.mutable_upload() = source.upload();
  return AddFile(file, key, &input.file);
}

absl::StatusOr<InputReceiver> InputReceiver::Make(const v1::AnalysisHeader& header, int64_t max_bytes) {
  InputReceiver receiver(max_bytes);
  for (int k = 0; k < header.spectra_size(); ++k)
    SPEXD_RETURN_IF_ERROR(receiver.AddSpectra(header.spectra(k), static_cast<uint32_t>(k)));
  if (header.has_templates()) {
    ProductInputs& products = receiver.inputs_.products;
    SPEXD_RETURN_IF_ERROR(receiver.AddWarm(header.templates(), {v1::INPUT_TEMPLATES}, &products.templates,
                                           &products.templates_hash));
  }
  if (header.has_redrock()) {
    SPEXD_RETURN_IF_ERROR(receiver.AddFile(header.redrock(), {v1::INPUT_REDROCK}, &receiver.inputs_.redrock));
  }
  return receiver;
}

absl::StatusOr<Upload*> InputReceiver::Find(const Key& key) {
  const auto upload = uploads_.find(key);
  if (upload != uploads_.end()) return upload->second.get();
  return absl::InvalidArgumentError(
      absl::StrFormat("a chunk or end of %s came, which the header does not upload", key.Name()));
}

absl::Status InputReceiver::AddChunk(const v1::InputChunk& chunk,
                                     absl::Span<const absl::string_view> payload) {
  SPEXD_ASSIGN_OR_RETURN(Upload* const upload, Find({chunk.input(), chunk.index()}));
  return upload->Append(chunk.offset(), payload);
}

bool InputReceiver::TakesLong(const v1::InputEnd& end) const {
  const auto upload = uploads_.find({end.input(), end.index()});
  return upload != uploads_.end() && upload->second->FinishTakesLong(end.sha256());
}

absl::Status InputReceiver::AddEnd(const v1::InputEnd& end) {
  const Key key{end.input(), end.index()};
  SPEXD_ASSIGN_OR_RETURN(Upload* const upload, Find(key));
  const auto crc32c = end.has_crc32c() ? std::make_optional(end.crc32c()) : std::nullopt;
  SPEXD_ASSIGN_OR_RETURN(received_[key], upload->Finish(end.sha256(), crc32c));
  return absl::OkStatus();
}

bool InputReceiver::complete() const {
  return std::all_of(uploads_.begin(), uploads_.end(),
                     [](const auto& upload) { return upload.second->finished(); });
}

absl::StatusOr<JobInputs> InputReceiver::Finish() {
  for (const auto& [key, upload] : uploads_) {
    if (!upload->finished()) {
      return absl::DataLossError(absl::StrFormat("%s: the stream ended after %d bytes of the input",
                                                 key.Name(), upload->received()));
    }
  }
  for (auto& [key, bytes] : received_) {
    if (FileInput* const file = FileOf(key)) {
      file->bytes = std::move(bytes);
    } else {
      inputs_.raw_image->bytes = std::move(bytes);
    }
  }
  return std::move(inputs_);
}

FileInput* InputReceiver::FileOf(const Key& key) {
  const bool of_spectra = key.index < inputs_.spectra.size();
  switch (key.input) {
    case v1::INPUT_PSF:
      return &*inputs_.psf;
    case v1::INPUT_FIBERMAP:
      return &*inputs_.fibermap;
    case v1::INPUT_FIBERFLAT:
      return of_spectra ? &*inputs_.spectra[key.index].fiberflat : &*inputs_.products.fiberflat;
    case v1::INPUT_TEMPLATES:
      return &*inputs_.products.templates;
    case v1::INPUT_TRACE_REFERENCE:
      return &*inputs_.trace_reference;
    case v1::INPUT_SPECTRA:
      return &*inputs_.spectra[key.index].file;
    case v1::INPUT_REDROCK:
      return &*inputs_.redrock;
    default:
      return inputs_.image.has_value() ? &*inputs_.image : nullptr;
  }
}

absl::StatusOr<JobInputs> InputReceiver::FromFiles(
    const std::function<absl::StatusOr<AllowedFile>(v1::Input input)>& open) {
  for (const auto& [key, upload] : uploads_) {
    SPEXD_ASSIGN_OR_RETURN(AllowedFile kept, open(key.input));
    if (static_cast<uint64_t>(kept.bytes()) != upload->declared()) {
      return absl::DataLossError(absl::StrFormat("%s: the file that was kept has %d bytes, %d came",
                                                 key.Name(), kept.bytes(), upload->declared()));
    }
    if (FileInput* const file = FileOf(key)) {
      file->bytes.reset();
      file->file = std::move(kept);
    } else {
      inputs_.raw_file = std::move(kept);
    }
  }
  return std::move(inputs_);
}

}  // namespace spexd
