// A FITS file that CFITSIO builds in memory, HDU by HDU, with checksums.
#ifndef SPEXD_CORE_FITS_HDU_FITS_BUILDER_H_
#define SPEXD_CORE_FITS_HDU_FITS_BUILDER_H_

#include <fitsio.h>

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/fits/hdu/hdu_parts.h"
#include "core/model/frame.h"

namespace spexd {

// Errors are kept: after the first every call does nothing, and Write reports it. Used by one thread.
// The bytes depend on what was added alone: no dates.
class FitsBuilder {
 public:
  // bytes: about how large the file will be, without late pixels.
  explicit FitsBuilder(int64_t bytes);
  ~FitsBuilder();
  FitsBuilder(const FitsBuilder&) = delete;
  FitsBuilder& operator=(const FitsBuilder&) = delete;

  // Begins an image HDU, the primary if it is the first; shape as arrays have it, the last axis runs fastest.
  // bitpix: FLOAT_IMG, DOUBLE_IMG, LONG_IMG or ULONG_IMG (uint32 as int32 with BZERO 2^31).
  void BeginImage(absl::string_view name, int bitpix, const std::vector<int64_t>& shape);
  // Images from here on are Rice-compressed row by row; floats are quantised with dither, exact zeros kept.
  void CompressImages(bool on);
  // The same without loss for floats that are multiples of `step`, a power of two: they become integers.
  void CompressMultiplesOf(double step);
  // Begins a table HDU with columns of these names and TFORMs.
  void BeginTable(absl::string_view name, int64_t rows, const std::vector<std::string>& names,
                  const std::vector<std::string>& forms);
  // A whole table HDU as it is, with fresh checksums.
  void AddRawTable(const RawTable& table);

  // Cards of the HDU begun last, before its data.
  void Text(const char* keyword, const std::string& value, const char* comment);
  // LONGSTRN, where one of these texts or cards (`continued`) may go on in CONTINUE cards. Comes before them.
  void AnnounceLongTexts(std::initializer_list<absl::string_view> texts, bool continued = false);
  void Number(const char* keyword, double value, const char* comment);
  void Integer(const char* keyword, int64_t value, const char* comment);
  void Logical(const char* keyword, bool value, const char* comment);
  void Cards(const std::vector<std::string>& cards);
  // Gives a card that is there already this comment.
  void Comment(const char* keyword, const char* comment);
  // The cards of the HDU begun last, without END and the checksums, which stand for data.
  absl::StatusOr<std::vector<std::string>> HeaderCards();

  // Writes all pixels of the image, or rows [first_row, ...) of a column (both count from 1, as CFITSIO
  // does).
  void Pixels(absl::Span<const float> values);
  void Pixels(absl::Span<const double> values);
  void Pixels(absl::Span<const int32_t> values);
  void Pixels(absl::Span<const uint32_t> values);
  // Gives an image that is not compressed all its pixels, of its own type. They are not read before the file
  // ends, so they must outlive the builder; they then go to the file past CFITSIO, by several threads.
  // HeaderCards can no longer be asked for.
  void LatePixels(absl::Span<const float> values);
  void LatePixels(absl::Span<const double> values);
  void LatePixels(absl::Span<const int32_t> values);
  void LatePixels(absl::Span<const uint32_t> values);
  void ColumnValues(int column, int64_t first_row, absl::Span<const double> values);
  void ColumnValues(int column, int64_t first_row, absl::Span<const int64_t> values);
  void ColumnText(int column, int64_t row, const std::string& text);
  // Bytes of a row of a table as they are on disk, at a position in it; both count from 1.
  void RowBytes(int64_t row, int64_t position, absl::string_view bytes);

  // Ends the file. Its bytes, put together by up to `threads` threads.
  absl::StatusOr<std::string> Bytes(int threads = 1);
  // Ends the file and writes it by up to `threads` threads; see WriteFileAtomically.
  absl::Status Write(const std::string& path, int threads = 1);

 private:
  // Pixels that CFITSIO does not know of: for it the image has no rows.
  struct LateImage {
    NativePixels pixels;
    std::vector<int64_t> shape;
  };

  void PutPixels(int type, const void* values, size_t count);
  void PutLatePixels(int bitpix, const NativePixels& pixels);
  void NameHdu(absl::string_view name);
  absl::Status CfitsioStatus() const;
  absl::StatusOr<std::vector<HduParts>> Finish();  // parts of buffer_, and late pixels
  void Release();

  fitsfile* file_ = nullptr;
  void* buffer_ = nullptr;  // CFITSIO reallocates it
  size_t buffer_size_ = 0;
  int bitpix_ = 0;                        // of the image that was begun last
  std::vector<int64_t> shape_;            // likewise
  std::map<int, LateImage> late_images_;  // by the number of their HDU
  int status_ = 0;                        // CFITSIO's error
  absl::Status error_;                    // this class's error
};

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_FITS_BUILDER_H_
