// A FITS file with checksums that CFITSIO builds in memory, HDU by HDU.
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

// Builds a file. Errors are kept: after the first one every call does nothing, and Write reports it. Not
// thread-safe. The bytes depend only on what was added; they have no dates.
class FitsBuilder {
 public:
  // bytes: the approximate size of the file without late pixels.
  explicit FitsBuilder(int64_t bytes);
  ~FitsBuilder();
  FitsBuilder(const FitsBuilder&) = delete;
  FitsBuilder& operator=(const FitsBuilder&) = delete;

  // Begins an image HDU, which is the primary if it is the first. `shape` is that of an array, whose last
  // axis runs fastest. bitpix: FLOAT_IMG, DOUBLE_IMG, LONG_IMG or ULONG_IMG (uint32 as int32 with BZERO
  // 2^31).
  void BeginImage(absl::string_view name, int bitpix, const std::vector<int64_t>& shape);
  // Turns Rice compression, row by row, on or off for the images that follow. Floats are quantised with
  // dithering; exact zeros are kept.
  void CompressImages(bool on);
  // Turns on Rice compression without loss for floats that are multiples of `step`, a power of two: they
  // become integers.
  void CompressMultiplesOf(double step);
  // Begins a table HDU with columns of these names and TFORMs.
  void BeginTable(absl::string_view name, int64_t rows, const std::vector<std::string>& names,
                  const std::vector<std::string>& forms);
  // Adds a whole table HDU unchanged, except for new checksums.
  void AddRawTable(const RawTable& table);

  // Adds a card to the HDU begun last. Cards come before its data.
  void Text(const char* keyword, const std::string& value, const char* comment);
  // Adds LONGSTRN if one of these texts, or of the cards (`continued`), may continue in CONTINUE cards. Call
  // it before adding them.
  void AnnounceLongTexts(std::initializer_list<absl::string_view> texts, bool continued = false);
  void Number(const char* keyword, double value, const char* comment);
  void Integer(const char* keyword, int64_t value, const char* comment);
  void Logical(const char* keyword, bool value, const char* comment);
  void Cards(const std::vector<std::string>& cards);
  // Gives an existing card this comment.
  void Comment(const char* keyword, const char* comment);
  // The cards of the HDU begun last, without END and the checksums, which depend on the data.
  absl::StatusOr<std::vector<std::string>> HeaderCards();

  // Pixels writes all pixels of the image. ColumnValues writes rows [first_row, ...) of a column, and
  // ColumnText one row. Columns and rows count from 1, as in CFITSIO.
  void Pixels(absl::Span<const float> values);
  void Pixels(absl::Span<const double> values);
  void Pixels(absl::Span<const int32_t> values);
  void Pixels(absl::Span<const uint32_t> values);
  // Gives an uncompressed image all its pixels, of its own type. They are read when the file ends, so they
  // must outlive the builder; several threads then write them to the file without CFITSIO. HeaderCards must
  // not be called afterwards.
  void LatePixels(absl::Span<const float> values);
  void LatePixels(absl::Span<const double> values);
  void LatePixels(absl::Span<const int32_t> values);
  void LatePixels(absl::Span<const uint32_t> values);
  void ColumnValues(int column, int64_t first_row, absl::Span<const double> values);
  void ColumnValues(int column, int64_t first_row, absl::Span<const int64_t> values);
  void ColumnText(int column, int64_t row, const std::string& text);
  // Writes bytes, as they are on disk, into a row of a table from a position on. Both count from 1.
  void RowBytes(int64_t row, int64_t position, absl::string_view bytes);

  // Ends the file and returns its bytes, which up to `threads` threads put together.
  absl::StatusOr<std::string> Bytes(int threads = 1);
  // Ends the file and writes it on up to `threads` threads (WriteFileAtomically).
  absl::Status Write(const std::string& path, int threads = 1);

 private:
  // An image whose pixels CFITSIO does not know: CFITSIO sees an image without rows.
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
  int bitpix_ = 0;                        // that of the image begun last
  std::vector<int64_t> shape_;            // that of the image begun last
  std::map<int, LateImage> late_images_;  // key: number of the HDU
  int status_ = 0;                        // CFITSIO's error
  absl::Status error_;                    // this class's error
};

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_FITS_BUILDER_H_
