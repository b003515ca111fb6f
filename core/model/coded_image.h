// A preprocessed CCD image as files hold it: rows of scaled integers in Rice coding (FITS standard 4.0,
// sections 10.2 and 10.4.1). It has a fifth of the bytes of an Image. Engines whose devices can decode take
// it in place of an Image.
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
  // bits are those of the integer stored + zero.
  double scale = 1, zero = 0;
  int64_t begin = 0;    // the row's first byte among those of CodedImage::pieces
  int32_t size = 0;     // number of the row's bytes
  int32_t random = -1;  // index of the first pixel's random number; -1: no dithering
  int32_t blank = 0;    // the integer that stands for NaN, if has_blank
  bool has_blank = false;
  bool exact_zeros = false;  // kStoredZero (core/fits/images/coding.h) stands for 0
  // The bytes are the pixels themselves: float32 in the host's byte order, beginning at a multiple of 4. Rows
  // of one value are plain, because they cannot be quantised.
  bool plain = false;
};

// How a plane's rows are coded.
struct CodedPlane {
  int32_t byte_pix = 4;  // bytes of a stored integer: 1, 2 or 4
  int32_t block = 32;    // number of integers that share a code, 1 to 4096
};

// A stretch of bytes in a file's memory or in a row of CodedImage::plain.
struct CodedPiece {
  int64_t begin = 0;  // position among the bytes of all pieces
  absl::string_view bytes;
};

struct CodedImage {
  static constexpr int kMaxPlanes = 3;
  // The largest size of a coded image. Larger images are decoded on the host.
  static constexpr int64_t kMaxBytesPerPixel = 4;

  int rows = 0, columns = 0;       // size of the CCD
  std::vector<CodedPlane> planes;  // pixels, ivar and, unless no pixel is flagged, the mask
  std::vector<std::string> names;  // names of the planes for messages, such as "preproc.fits, HDU IVAR"
  std::vector<CodedRow> coded;     // [plane, row]
  std::vector<float> randoms;      // the standard's sequence of random numbers, if any plane is dithered
  std::vector<CodedPiece> pieces;  // all bytes in order; up to 3 unused ones lie between two pieces
  int64_t byte_count = 0;
  std::shared_ptr<const void> file;       // owner of the memory in which pieces lie
  std::vector<std::vector<float>> plain;  // rows that were decoded on the host
};

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_CODED_IMAGE_H_
