#include "server/jobs/job_inputs.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/model/psf.h"

namespace spexd {
namespace {

constexpr size_t kCardBytes = 80;
constexpr int64_t kRawBytesPerPixel = 12;

const char* NameOf(v1::Input input) {
  switch (input) {
    case v1::INPUT_IMAGE:
      return "image";
    case v1::INPUT_PSF:
      return "psf";
    case v1::INPUT_FIBERMAP:
      return "fibermap";
    default:
      return "unspecified input";
  }
}

absl::Status CheckCard(const std::string& card, int index) {
  if (card.size() != kCardBytes) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "image.raw.header_cards[%d] has %d characters, must be %d", index, card.size(), kCardBytes));
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

}  // namespace

absl::StatusOr<Source> FileInput::Open(const PathPolicy& paths, int64_t max_bytes) {
  std::string content;
  if (bytes.has_value()) {
    content = *std::move(bytes);
    bytes.reset();
  } else {
    SPEXD_ASSIGN_OR_RETURN(content, paths.ReadFile(name, max_bytes));
  }
  return Source::FromBytes(name, std::move(content), SourceLimits{max_bytes});
}

Preproc RawInput::Decode() {
  Preproc preproc;
  preproc.image.pixels.Assign({rows, columns});
  preproc.image.ivar.Assign({rows, columns});
  preproc.image_cards = std::move(cards);
  const size_t plane = static_cast<size_t>(rows) * static_cast<size_t>(columns) * sizeof(float);
  for (size_t k = 0, count = plane / sizeof(float); k < count; ++k) {
    float pixel, ivar;
    int32_t mask;
    std::memcpy(&pixel, bytes.data() + k * sizeof(float), sizeof(float));
    std::memcpy(&ivar, bytes.data() + plane + k * sizeof(float), sizeof(float));
    std::memcpy(&mask, bytes.data() + 2 * plane + k * sizeof(float), sizeof(int32_t));
    if (!IsUsable(pixel, ivar, mask)) continue;
    preproc.image.pixels.flat()[k] = pixel;
    preproc.image.ivar.flat()[k] = ivar;
  }
  std::string().swap(bytes);
  return preproc;
}

absl::Status InputReceiver::Expect(v1::Input input, uint64_t bytes, const std::string& sha256,
                                   int64_t max_bytes) {
  if (bytes < 1)
    return absl::InvalidArgumentError(absl::StrFormat("%s: an upload of 0 bytes", NameOf(input)));
  if (bytes > static_cast<uint64_t>(max_bytes)) {
    return absl::InvalidArgumentError(absl::StrFormat("%s: an upload of %d bytes, the server's limit is %d",
                                                      NameOf(input), bytes, max_bytes));
  }
  uploads_[input] = std::make_unique<Upload>(NameOf(input), bytes, sha256);
  declared_bytes_ += static_cast<int64_t>(bytes);
  return absl::OkStatus();
}

absl::Status InputReceiver::AddFile(const v1::InputSource& source, v1::Input input, int64_t max_bytes,
                                    std::optional<FileInput>* file) {
  switch (source.source_case()) {
    case v1::InputSource::kPath:
      *file = FileInput{source.path(), std::nullopt};
      paths_.push_back(source.path());
      return absl::OkStatus();
    case v1::InputSource::kUpload:
      *file = FileInput{source.upload().name(), std::string()};
      return Expect(input, source.upload().bytes(), source.upload().sha256(), max_bytes);
    case v1::InputSource::SOURCE_NOT_SET:
      return absl::InvalidArgumentError(absl::StrFormat("%s: no source is set", NameOf(input)));
    default:
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: %s", NameOf(input),
          source.has_raw() ? "raw arrays are only for the image" : "psf_hash is only for the PSF"));
  }
}

absl::Status InputReceiver::AddRaw(const v1::RawImage& raw, int64_t max_bytes) {
  SPEXD_RETURN_IF_ERROR(CheckSide("rows", raw.rows()));
  SPEXD_RETURN_IF_ERROR(CheckSide("columns", raw.columns()));
  RawInput input;
  input.name = raw.name();
  input.rows = static_cast<int>(raw.rows());
  input.columns = static_cast<int>(raw.columns());
  for (int k = 0; k < raw.header_cards_size(); ++k) {
    SPEXD_RETURN_IF_ERROR(CheckCard(raw.header_cards(k), k));
    input.cards.push_back(raw.header_cards(k));
  }
  inputs_.raw_image = std::move(input);
  return Expect(v1::INPUT_IMAGE, uint64_t{raw.rows()} * raw.columns() * kRawBytesPerPixel, "", max_bytes);
}

absl::StatusOr<InputReceiver> InputReceiver::Make(const v1::JobHeader& header, int64_t max_bytes) {
  InputReceiver receiver;
  if (header.image().has_raw()) {
    SPEXD_RETURN_IF_ERROR(receiver.AddRaw(header.image().raw(), max_bytes));
  } else {
    SPEXD_RETURN_IF_ERROR(
        receiver.AddFile(header.image(), v1::INPUT_IMAGE, max_bytes, &receiver.inputs_.image));
  }
  if (header.psf().has_psf_hash()) {
    if (header.psf().psf_hash().empty()) return absl::InvalidArgumentError("psf.psf_hash is empty");
    receiver.inputs_.psf_hash = header.psf().psf_hash();
  } else {
    SPEXD_RETURN_IF_ERROR(receiver.AddFile(header.psf(), v1::INPUT_PSF, max_bytes, &receiver.inputs_.psf));
  }
  if (header.has_fibermap()) {
    SPEXD_RETURN_IF_ERROR(
        receiver.AddFile(header.fibermap(), v1::INPUT_FIBERMAP, max_bytes, &receiver.inputs_.fibermap));
  }
  return receiver;
}

absl::Status InputReceiver::Add(const v1::ExtractRequest& message) {
  if (!message.has_chunk() && !message.has_end()) {
    return absl::InvalidArgumentError(message.has_header() ? "a second header came"
                                                           : "an empty message came");
  }
  const v1::Input input = message.has_chunk() ? message.chunk().input() : message.end().input();
  const auto upload = uploads_.find(input);
  if (upload == uploads_.end()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a chunk or end of %s came, which the header does not upload", NameOf(input)));
  }
  if (message.has_chunk()) return upload->second->Append(message.chunk().offset(), message.chunk().payload());
  const v1::InputEnd& end = message.end();
  const auto crc32c = end.has_crc32c() ? std::make_optional(end.crc32c()) : std::nullopt;
  SPEXD_ASSIGN_OR_RETURN(received_[input], upload->second->Finish(end.sha256(), crc32c));
  return absl::OkStatus();
}

bool InputReceiver::complete() const {
  return std::all_of(uploads_.begin(), uploads_.end(),
                     [](const auto& upload) { return upload.second->finished(); });
}

absl::StatusOr<JobInputs> InputReceiver::Finish() {
  for (const auto& [input, upload] : uploads_) {
    if (!upload->finished()) {
      return absl::DataLossError(absl::StrFormat("%s: the stream ended after %d bytes of the input",
                                                 NameOf(input), upload->received()));
    }
  }
  for (auto& [input, bytes] : received_) {
    if (input == v1::INPUT_IMAGE && inputs_.raw_image.has_value()) {
      inputs_.raw_image->bytes = std::move(bytes);
    } else if (input == v1::INPUT_IMAGE) {
      inputs_.image->bytes = std::move(bytes);
    } else if (input == v1::INPUT_PSF) {
      inputs_.psf->bytes = std::move(bytes);
    } else {
      inputs_.fibermap->bytes = std::move(bytes);
    }
  }
  return std::move(inputs_);
}

}  // namespace spexd
