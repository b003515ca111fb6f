#include "core/fits/hdu/fits_builder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/memory/huge_pages.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/checksum.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/hdu/table_file.h"
#include "core/model/fits_header.h"

namespace spexd {
namespace {

// CFITSIO takes pointers to non-const for the values that it writes.
template <typename T>
T* Mutable(const T* pointer) {
  return const_cast<T*>(pointer);
}

template <typename T>
absl::Span<const char> BytesOf(absl::Span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Sets the size of the slowest axis in the header of an image. By the standard, its first cards are SIMPLE or
// XTENSION, BITPIX, NAXIS and one for each axis, the slowest last.
void SetSlowestAxis(const std::vector<int64_t>& shape, char* header) {
  constexpr size_t kValue = 10;
  const std::string size = absl::StrFormat("%20d", shape[0]);
  size.copy(header + (2 + shape.size()) * kFitsCardBytes + kValue, size.size());
}

// Resizes memory so that its growth reads as zeros, like that of a file: CFITSIO reads table cells that it
// has not written yet. The size is stored before the block.
constexpr size_t kPrefix = alignof(std::max_align_t);

void* ResizeZeroed(void* block, size_t size) {
  char* old = block == nullptr ? nullptr : static_cast<char*>(block) - kPrefix;
  size_t old_size = 0;
  if (old != nullptr) std::memcpy(&old_size, old, sizeof(old_size));
  if (size > SIZE_MAX - kPrefix) return nullptr;
  // New pages of the system are zero already.
  char* grown =
      static_cast<char*>(old == nullptr ? std::calloc(1, size + kPrefix) : std::realloc(old, size + kPrefix));
  if (grown == nullptr) return nullptr;
  if (old == nullptr) AdviseHugePages(grown, size + kPrefix);
  std::memcpy(grown, &size, sizeof(size));
  if (old != nullptr && size > old_size) std::memset(grown + kPrefix + old_size, 0, size - old_size);
  return grown + kPrefix;
}

}  // namespace

FitsBuilder::FitsBuilder(int64_t bytes) {
  // CFITSIO would initialise itself at its first use, and other threads would not wait for that.
  static const int set_up = fits_init_cfitsio();
  status_ = set_up;
  // In CFITSIO's own steps of 2880 bytes, the file would be copied over and over.
  const size_t step = static_cast<size_t>(std::max<int64_t>(bytes, 1 << 20));
  fits_create_memfile(&file_, &buffer_, &buffer_size_, step, ResizeZeroed, &status_);
}

FitsBuilder::~FitsBuilder() {
  Release();
  if (buffer_ != nullptr) std::free(static_cast<char*>(buffer_) - kPrefix);
}

void FitsBuilder::Release() {
  int status = 0;
  if (file_ != nullptr) fits_close_file(file_, &status);
  file_ = nullptr;
}

void FitsBuilder::NameHdu(absl::string_view name) {
  // CFITSIO has already named a compressed image.
  fits_update_key_str(file_, "EXTNAME", std::string(name).c_str(), nullptr, &status_);
  fits_write_record(file_, absl::StrFormat("%-80s", kChecksumCard).c_str(), &status_);
  fits_write_record(file_, absl::StrFormat("%-80s", kDatasumCard).c_str(), &status_);
}

void FitsBuilder::BeginImage(absl::string_view name, int bitpix, const std::vector<int64_t>& shape) {
  std::vector<LONGLONG> axes(shape.rbegin(), shape.rend());
  fits_create_imgll(file_, bitpix, static_cast<int>(axes.size()), axes.data(), &status_);
  NameHdu(name);
  bitpix_ = bitpix;
  shape_ = shape;
}

void FitsBuilder::CompressImages(bool on) {
  fits_set_compression_type(file_, on ? RICE_1 : 0, &status_);
  if (!on) return;
  fits_set_quantize_method(file_, SUBTRACTIVE_DITHER_2, &status_);
  fits_set_quantize_level(file_, 16, &status_);
  fits_set_dither_seed(file_, 1, &status_);  // CFITSIO's default is the clock's
}

void FitsBuilder::CompressMultiplesOf(double step) {
  CompressImages(true);
  fits_set_quantize_method(file_, NO_DITHER, &status_);
  fits_set_quantize_level(file_, static_cast<float>(-step), &status_);  // a negative level is the step itself
}

void FitsBuilder::BeginTable(absl::string_view name, int64_t rows, const std::vector<std::string>& names,
                             const std::vector<std::string>& forms) {
  std::vector<char*> types, formats;
  for (const std::string& text : names) types.push_back(Mutable(text.c_str()));
  for (const std::string& text : forms) formats.push_back(Mutable(text.c_str()));
  fits_create_tbl(file_, BINARY_TBL, rows, static_cast<int>(names.size()), types.data(), formats.data(),
                  nullptr, nullptr, &status_);
  NameHdu(name);
}

void FitsBuilder::AddRawTable(const RawTable& table) {
  if (!error_.ok() || status_ != 0) return;
  absl::StatusOr<std::string> bytes = FileOfTable(table);
  if (!bytes.ok()) {
    error_ = bytes.status();
    return;
  }
  fitsfile* from = nullptr;
  void* memory = bytes->data();
  size_t size = bytes->size();
  fits_open_memfile(&from, "fibermap", READONLY, &memory, &size, 0, nullptr, &status_);
  fits_movabs_hdu(from, 2, nullptr, &status_);
  fits_copy_hdu(from, file_, 0, &status_);
  int ignored = 0;
  if (from != nullptr) fits_close_file(from, &ignored);
}

void FitsBuilder::Text(const char* keyword, const std::string& value, const char* comment) {
  fits_write_key_longstr(file_, keyword, PrintableAscii(value).c_str(), comment, &status_);
}

void FitsBuilder::AnnounceLongTexts(std::initializer_list<absl::string_view> texts, bool continued) {
  constexpr size_t kShort = 60;  // a value of this size certainly fits on one card
  for (const absl::string_view text : texts) continued |= text.size() > kShort;
  if (continued) Text("LONGSTRN", "OGIP 1.0", "long strings go on in CONTINUE cards");
}

void FitsBuilder::Number(const char* keyword, double value, const char* comment) {
  fits_write_record(file_, NumberCard(keyword, value, comment).c_str(), &status_);
}

void FitsBuilder::Integer(const char* keyword, int64_t value, const char* comment) {
  fits_write_key_lng(file_, keyword, value, comment, &status_);
}

void FitsBuilder::Logical(const char* keyword, bool value, const char* comment) {
  fits_write_key_log(file_, keyword, value ? 1 : 0, comment, &status_);
}

void FitsBuilder::Cards(const std::vector<std::string>& cards) {
  for (const std::string& card : cards) fits_write_record(file_, card.c_str(), &status_);
}

void FitsBuilder::Comment(const char* keyword, const char* comment) {
  fits_modify_comment(file_, keyword, comment, &status_);
}

absl::StatusOr<std::vector<std::string>> FitsBuilder::HeaderCards() {
  SPEXD_RETURN_IF_ERROR(error_);
  int count = 0;
  fits_get_hdrspace(file_, &count, nullptr, &status_);
  std::vector<std::string> cards;
  for (int k = 1; k <= count && status_ == 0; ++k) {
    char text[FLEN_CARD] = "";
    fits_read_record(file_, k, text, &status_);
    const absl::string_view keyword = CardKeyword(text);
    if (keyword == "CHECKSUM" || keyword == "DATASUM") continue;
    cards.push_back(absl::StrFormat("%-80s", text));  // CFITSIO drops trailing blanks
  }
  SPEXD_RETURN_IF_ERROR(CfitsioStatus());
  return cards;
}

void FitsBuilder::PutPixels(int type, const void* values, size_t count) {
  fits_write_img(file_, type, 1, static_cast<LONGLONG>(count), Mutable(static_cast<const char*>(values)),
                 &status_);
}

void FitsBuilder::Pixels(absl::Span<const float> values) { PutPixels(TFLOAT, values.data(), values.size()); }
void FitsBuilder::Pixels(absl::Span<const double> values) {
  PutPixels(TDOUBLE, values.data(), values.size());
}
void FitsBuilder::Pixels(absl::Span<const int32_t> values) { PutPixels(TINT, values.data(), values.size()); }
void FitsBuilder::Pixels(absl::Span<const uint32_t> values) {
  PutPixels(TUINT, values.data(), values.size());
}

void FitsBuilder::PutLatePixels(int bitpix, const NativePixels& pixels) {
  if (!error_.ok() || status_ != 0) return;
  int64_t bytes = shape_.empty() ? 0 : static_cast<int64_t>(pixels.width);
  for (const int64_t size : shape_) bytes *= size;
  if (bitpix != bitpix_ || bytes != static_cast<int64_t>(pixels.bytes.size()) ||
      fits_is_compressed_image(file_, &status_) != 0) {
    error_ = absl::InternalError("late pixels that are not all those of a plain image of their type");
    return;
  }
  if (bytes == 0) return;
  int hdu = 0;
  fits_get_hdu_num(file_, &hdu);
  late_images_[hdu] = {pixels, shape_};
  // CFITSIO sees no rows until Finish sets their number.
  fits_modify_key_lng(file_, absl::StrCat("NAXIS", shape_.size()).c_str(), 0, "&", &status_);
}

void FitsBuilder::LatePixels(absl::Span<const float> values) { PutLatePixels(FLOAT_IMG, {BytesOf(values)}); }
void FitsBuilder::LatePixels(absl::Span<const double> values) {
  PutLatePixels(DOUBLE_IMG, {BytesOf(values), sizeof(double)});
}
void FitsBuilder::LatePixels(absl::Span<const int32_t> values) { PutLatePixels(LONG_IMG, {BytesOf(values)}); }
void FitsBuilder::LatePixels(absl::Span<const uint32_t> values) {
  constexpr uint32_t kZero = uint32_t{1} << 31;  // BZERO of unsigned integers
  PutLatePixels(ULONG_IMG, {BytesOf(values), sizeof(uint32_t), kZero});
}

void FitsBuilder::ColumnValues(int column, int64_t first_row, absl::Span<const double> values) {
  fits_write_col(file_, TDOUBLE, column, first_row, 1, static_cast<LONGLONG>(values.size()),
                 Mutable(values.data()), &status_);
}

void FitsBuilder::ColumnValues(int column, int64_t first_row, absl::Span<const int64_t> values) {
  fits_write_col(file_, TLONGLONG, column, first_row, 1, static_cast<LONGLONG>(values.size()),
                 Mutable(values.data()), &status_);
}

void FitsBuilder::ColumnText(int column, int64_t row, const std::string& text) {
  const std::string printable = PrintableAscii(text);
  char* pointer = Mutable(printable.c_str());
  fits_write_col(file_, TSTRING, column, row, 1, 1, &pointer, &status_);
}

void FitsBuilder::RowBytes(int64_t row, int64_t position, absl::string_view bytes) {
  // CFITSIO only reads them.
  auto* const data = reinterpret_cast<unsigned char*>(Mutable(bytes.data()));
  fits_write_tblbytes(file_, row, position, static_cast<LONGLONG>(bytes.size()), data, &status_);
}

absl::Status FitsBuilder::CfitsioStatus() const {
  if (status_ == 0) return absl::OkStatus();
  char text[FLEN_STATUS] = "";
  fits_get_errstatus(status_, text);
  const std::string message = absl::StrFormat("CFITSIO: %s (%d)", text, status_);
  return status_ == MEMORY_ALLOCATION ? absl::ResourceExhaustedError(message) : absl::InternalError(message);
}

absl::StatusOr<std::vector<HduParts>> FitsBuilder::Finish() {
  SPEXD_RETURN_IF_ERROR(error_);
  struct Extent {
    LONGLONG header = 0, data = 0, end = 0;
  };
  int count = 0;
  fits_flush_file(file_, &status_);
  fits_get_num_hdus(file_, &count, &status_);
  std::vector<Extent> extents;
  for (int k = 1; k <= count && status_ == 0; ++k) {
    Extent& extent = extents.emplace_back();
    fits_movabs_hdu(file_, k, nullptr, &status_);
    fits_get_hduaddrll(file_, &extent.header, &extent.data, &extent.end, &status_);
  }
  fits_close_file(file_, &status_);
  file_ = nullptr;
  if (status_ == 0 && (buffer_ == nullptr || extents.back().end > static_cast<LONGLONG>(buffer_size_)))
    status_ = END_OF_FILE;
  SPEXD_RETURN_IF_ERROR(CfitsioStatus());
  std::vector<HduParts> hdus;
  char* const file = static_cast<char*>(buffer_);
  for (const Extent& extent : extents) {
    HduParts& hdu = hdus.emplace_back();
    hdu.header = absl::MakeSpan(file + extent.header, file + extent.data);
    hdu.data = absl::string_view(file + extent.data, static_cast<size_t>(extent.end - extent.data));
    const auto late = late_images_.find(static_cast<int>(hdus.size()));
    if (late == late_images_.end()) continue;
    hdu.pixels = late->second.pixels;
    SetSlowestAxis(late->second.shape, hdu.header.data());
  }
  return hdus;
}

absl::StatusOr<std::string> FitsBuilder::Bytes(int threads) {
  SPEXD_ASSIGN_OR_RETURN(const std::vector<HduParts> hdus, Finish());
  std::string file(static_cast<size_t>(FileBytes(hdus)), '\0');
  SPEXD_RETURN_IF_ERROR(WriteHdus(hdus, threads, [&file](int64_t offset, absl::string_view bytes) {
    bytes.copy(&file[static_cast<size_t>(offset)], bytes.size());
    return absl::OkStatus();
  }));
  return file;
}

absl::Status FitsBuilder::Write(const std::string& path, int threads) {
  const absl::StatusOr<std::vector<HduParts>> hdus = Finish();
  if (!hdus.ok()) {
    return absl::Status(hdus.status().code(),
                        absl::StrCat("cannot write ", path, ": ", hdus.status().message()));
  }
  return WriteFileAtomically(path, FileBytes(*hdus),
                             [&](const PieceWriter& write) { return WriteHdus(*hdus, threads, write); });
}

}  // namespace spexd
