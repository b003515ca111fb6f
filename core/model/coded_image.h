// A preprocessed CCD image as files hold it: rows of scaled integers in Rice coding (FITS standard 4.0,
// sections 10.2 and 10.4.1). A fifth of the bytes of an Image; engines whose devices decode take it in its
// position.
#ifndef SPEXD_CORE_MODEL_CODED_IMAGE_H_
#define SPEXD_CORE_MODEL_CODED_IMAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace spexd {

struct CodedRow {
  // A pixel is (stored - random + 0.5) * scale + zero with dithering, else stored * scale + zero. A mask's
  // bits are those of stored + zero.
  double scale = 1, zero = 0;
  int64_t begin = 0;    // the row's first byte among those of CodedImage::pieces ...
  int32_t size = 0;     // ... and how many there are
  int32_t random = -1;  // index of the first pixel's random number; -1: no dithering
  int32_t blank = 0;    // stands for NaN, if has_blank
  bool has_blank = false;
  bool exact_zeros = false;  // kStoredZero (core/fits/images/coding.h) stands for 0
  // The bytes are the pixels, float32 as the host holds them, beginning at a multiple of 4. Rows of one value
  // are so, which cannot be quantised.
  bool plain = false;
};

// How a plane's rows are coded.
struct CodedPlane {
  int32_t byte_pix = 4;  // bytes of a stored integer: 1, 2 or 4
  int32_t block = 32;    // integers that share a code, 1 to 4096
};

// Bytes that lie in a file's memory, or in a row of CodedImage::plain.
struct CodedPiece {
  int64_t begin = 0;  // among those of all pieces
  absl::string_view bytes;
};

struct CodedImage {
  static constexpr int kMaxPlanes = 3;
  // Images that take more are not worth it.
  static constexpr int64_t kMaxBytesPerPixel = 4;

  int rows = 0, columns = 0;       // of the CCD
  std::vector<CodedPlane> planes;  // pixels, ivar and, unless no pixel is flagged, the mask
  std::vector<std::string> names;  // of the planes, for messages: "preproc.fits, HDU IVAR"
  std::vector<CodedRow> coded;     // [plane, row]
  std::vector<float> randoms;      // the standard's sequence of random numbers, if any plane is dithered
  std::vector<CodedPiece> pieces;  // all bytes; up to 3 that nobody uses between two of them
  int64_t byte_count = 0;
  std::shared_ptr<const void> file;       // in which pieces lie
  std::vector<std::vector<float>> plain;  // rows that were decoded
};

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_CODED_IMAGE_H_
