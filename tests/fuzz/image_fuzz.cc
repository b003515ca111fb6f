// The reader of preprocessed frames: plain and tile-compressed images, gzipped files. Decoding must not take
// more memory than the header says, because the server reserves just that.
#include <cmath>

#include "core/fits/readers.h"
#include "tests/fuzz/support/fuzz_check.h"
#include "tests/fuzz/support/read_metered.h"

namespace spexd::fuzz {
namespace {

constexpr int64_t kMaxDecodeBytes = kBudgetBytes / 2;

void RequireMaskRule(const Image& image) {
  const absl::Span<const float> pixels = image.pixels.flat(), ivar = image.ivar.flat();
  for (size_t k = 0; k < pixels.size(); ++k) {
    Require(
        std::isfinite(pixels[k]) && std::isfinite(ivar[k]) && ivar[k] >= 0 && (ivar[k] > 0 || pixels[k] == 0),
        "pixels are usable or 0");
  }
}

// Checks what a decoder on a device relies on.
void ReadCoded(absl::string_view bytes, const PreprocHeader& header) {
  const auto image = ReadMetered(bytes, "a frame's coded rows",
                                 [](const Source& source) { return ReadPreprocCoded(source); });
  if (!image.ok()) return;
  Require(image->coded.size() == image->planes.size() * static_cast<size_t>(header.rows),
          "each plane has all rows");
  for (const CodedRow& row : image->coded) {
    Require(row.begin >= 0 && row.size >= 0 && row.begin + row.size <= image->byte_count,
            "rows lie in the bytes");
    Require(!row.plain || (row.begin % 4 == 0 && row.size == 4 * header.columns),
            "plain rows are whole, and aligned");
    Require(row.random < 0 || row.random + header.columns <= static_cast<int64_t>(image->randoms.size()),
            "rows have random numbers enough");
  }
}

void ReadAsPreproc(absl::string_view bytes) {
  const auto header =
      ReadMetered(bytes, "a frame's header", [](const Source& source) { return ReadPreprocHeader(source); });
  if (!header.ok()) return;
  if (header->coded_bytes.has_value() && *header->coded_bytes <= kMaxDecodeBytes) ReadCoded(bytes, *header);
  if (header->decode_bytes > kMaxDecodeBytes) return;
  const auto image =
      ReadMetered(bytes, "a frame's image", [&header](const Source& source) -> absl::StatusOr<Image> {
        const HeapMeter meter;
        absl::StatusOr<Image> read = ReadPreprocImage(source);
        RequireHeapWithin(meter,
                          StructureBytes(static_cast<int64_t>(source.bytes().size())) + header->decode_bytes,
                          "an image beside what its header announces");
        return read;
      });
  if (!image.ok()) return;
  Require(image->rows() == header->rows && image->columns() == header->columns,
          "the header tells the image's size");
  RequireMaskRule(*image);
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spexd::fuzz::ReadAsPreproc({reinterpret_cast<const char*>(data), size});
  return 0;
}
