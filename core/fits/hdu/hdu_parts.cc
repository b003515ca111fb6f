#include "core/fits/hdu/hdu_parts.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/byte_order.h"
#include "core/fits/hdu/checksum.h"
#include "core/model/fits_header.h"

namespace spexd {
namespace {

// The size of a piece, which stays in the cache between its conversion and its write. It is a number of whole
// blocks, so that each piece has a pixel.
constexpr int64_t kWriteBytes = 364 * kFitsBlockBytes;

// A stretch of an HDU's data.
struct Piece {
  const HduParts* hdu = nullptr;
  int64_t begin = 0, bytes = 0;  // position and size within the data
  int64_t offset = 0;            // position in the file
  uint32_t sum = 0;
};

int64_t DataBytes(const HduParts& hdu) {
  const auto pixels = static_cast<int64_t>(hdu.pixels.bytes.size());
  return static_cast<int64_t>(hdu.data.size()) + FitsPadded(pixels);
}

std::vector<Piece> CutData(absl::Span<const HduParts> hdus) {
  std::vector<Piece> pieces;
  int64_t offset = 0;
  for (const HduParts& hdu : hdus) {
    offset += static_cast<int64_t>(hdu.header.size());
    const int64_t bytes = DataBytes(hdu);
    for (int64_t begin = 0; begin < bytes; begin += kWriteBytes) {
      pieces.push_back({&hdu, begin, std::min(kWriteBytes, bytes - begin), offset + begin});
    }
    offset += bytes;
  }
  return pieces;
}

template <typename Bits>
void Convert(absl::Span<const char> from, Bits flipped, char* to) {
  for (size_t k = 0; k < from.size(); k += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, &from[k], sizeof(Bits));
    bits = SwapBigEndian(static_cast<Bits>(bits ^ flipped));
    std::memcpy(to + k, &bits, sizeof(Bits));
  }
}

// The converted bytes of a piece of pixels, with zeros behind the last one.
std::string Converted(const Piece& piece) {
  const NativePixels& pixels = piece.hdu->pixels;
  std::string bytes(static_cast<size_t>(piece.bytes), '\0');
  const absl::Span<const char> from =
      pixels.bytes.subspan(static_cast<size_t>(piece.begin), static_cast<size_t>(piece.bytes));
  if (pixels.width == sizeof(uint64_t)) {
    Convert<uint64_t>(from, 0, bytes.data());
  } else {
    Convert<uint32_t>(from, pixels.flipped, bytes.data());
  }
  return bytes;
}

absl::Status WritePiece(const PieceWriter& write, Piece* piece) {
  const bool as_it_is = !piece->hdu->data.empty();
  const std::string converted = as_it_is ? "" : Converted(*piece);
  const absl::string_view bytes =
      as_it_is ? piece->hdu->data.substr(static_cast<size_t>(piece->begin), static_cast<size_t>(piece->bytes))
               : converted;
  piece->sum = OnesComplementSum(bytes);
  return write(piece->offset, bytes);
}

}  // namespace

int64_t FileBytes(absl::Span<const HduParts> hdus) {
  int64_t bytes = 0;
  for (const HduParts& hdu : hdus) bytes += static_cast<int64_t>(hdu.header.size()) + DataBytes(hdu);
  return bytes;
}

absl::Status WriteHdus(absl::Span<const HduParts> hdus, int threads, const PieceWriter& write) {
  std::vector<Piece> pieces = CutData(hdus);
  SPEXD_RETURN_IF_ERROR(ParallelFor(static_cast<int64_t>(pieces.size()), threads, [&](int64_t k) {
    return WritePiece(write, &pieces[static_cast<size_t>(k)]);
  }));
  int64_t offset = 0;
  auto piece = pieces.cbegin();
  for (const HduParts& hdu : hdus) {
    uint32_t sum = 0;
    for (; piece != pieces.cend() && piece->hdu == &hdu; ++piece) sum = AddOnesComplement(sum, piece->sum);
    const int64_t data_bytes = DataBytes(hdu);
    SPEXD_RETURN_IF_ERROR(WriteChecksums(hdu.header, data_bytes > 0, sum));
    SPEXD_RETURN_IF_ERROR(write(offset, absl::string_view(hdu.header.data(), hdu.header.size())));
    offset += static_cast<int64_t>(hdu.header.size()) + data_bytes;
  }
  return absl::OkStatus();
}

}  // namespace spexd
