// The reader of preprocessed frames: plain and tile-compressed images, gzipped files. What the header tells
// of the memory that decoding takes must hold, as the server reserves that and no more.
#include <cmath>

#include "core/fits/readers.h"
#include "tests/fuzz/support/fuzz_check.h"

namespace spexd::fuzz {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;        // of an inflated file; larger ones only take longer
constexpr int64_t kMostDecodeBytes = int64_t{8} << 20;  // a server refuses what its budget has no room for

void RequireMaskRule(const Image& image) {
  const absl::Span<const float> pixels = image.pixels.flat(), ivar = image.ivar.flat();
  for (size_t k = 0; k < pixels.size(); ++k) {
    Require(
        std::isfinite(pixels[k]) && std::isfinite(ivar[k]) && ivar[k] >= 0 && (ivar[k] > 0 || pixels[k] == 0),
        "pixels are usable or 0");
  }
}

// What a decoder on a device relies on.
void ReadCoded(const Source& source, const PreprocHeader& header) {
  const HeapMeter meter;
  const absl::StatusOr<CodedImage> image = ReadPreprocCoded(source);
  RequireHeapWithin(meter, StructureBytes(static_cast<int64_t>(source.bytes().size())) + *header.coded_bytes,
                    "a frame's coded rows");
  RequireGoodError(image.status());
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

void ReadAsPreproc(const Source& source) {
  const auto size = static_cast<int64_t>(source.bytes().size());
  absl::StatusOr<PreprocHeader> header = absl::UnknownError("");
  {
    const HeapMeter meter;
    header = ReadPreprocHeader(source);
    RequireHeapWithin(meter, StructureBytes(size), "a frame's header");
  }
  RequireGoodError(header.status());
  if (!header.ok()) return;
  if (header->coded_bytes.has_value() && *header->coded_bytes <= kMostDecodeBytes) ReadCoded(source, *header);
  if (header->decode_bytes > kMostDecodeBytes) return;
  const HeapMeter meter;
  const absl::StatusOr<Image> image = ReadPreprocImage(source);
  RequireHeapWithin(meter, StructureBytes(size) + header->decode_bytes, "a frame's image");
  RequireGoodError(image.status());
  if (!image.ok()) return;
  Require(image->rows() == header->rows && image->columns() == header->columns,
          "the header tells the image's size");
  RequireMaskRule(*image);
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spexd;
  const absl::StatusOr<Source> source =
      Source::FromBytes("frame.fits", std::string(reinterpret_cast<const char*>(data), size),
                        SourceLimits{fuzz::kMostBytes, nullptr});
  fuzz::RequireGoodError(source.status());
  if (source.ok()) fuzz::ReadAsPreproc(*source);
  return 0;
}
