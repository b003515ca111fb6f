#include "cuda/plan/coded_block.h"

#include <algorithm>

#include "core/fits/images/coding.h"
#include "cuda/memory/carver.h"

namespace spexd::cuda {
namespace {

constexpr int64_t kWord = sizeof(uint32_t);

}  // namespace

CodedBlock LayOutCoded(int64_t rows, int64_t randoms, int64_t bytes, std::byte* block) {
  Carver carver(block);
  CodedBlock coded;
  coded.report = carver.Take<DecodeReport>(1);
  coded.rows = carver.Take<CodedRow>(rows);
  coded.randoms = carver.Take<float>(randoms);
  coded.words = carver.Take<uint32_t>((bytes + kWord - 1) / kWord);
  coded.bytes = carver.bytes();
  return coded;
}

CodedBlock LayOutCoded(const CodedImage& image, std::byte* block) {
  return LayOutCoded(static_cast<int64_t>(image.coded.size()), static_cast<int64_t>(image.randoms.size()),
                     image.byte_count, block);
}

namespace {

DecodeArrays Behind(const CodedBlock& coded, int64_t pixels, std::byte* block) {
  Carver carver(block);
  carver.Take<std::byte>(coded.bytes);
  DecodeArrays arrays;
  arrays.coded = coded;
  arrays.mask = carver.Take<uint16_t>(pixels);
  arrays.bytes = carver.bytes();
  return arrays;
}

}  // namespace

DecodeArrays LayOutDecoding(const CodedImage& image, std::byte* block) {
  return Behind(LayOutCoded(image, block), int64_t{image.rows} * image.columns, block);
}

int64_t MostDecodeBytes(int ccd_rows, int ccd_columns) {
  const int64_t pixels = int64_t{ccd_rows} * ccd_columns;
  const CodedBlock coded = LayOutCoded(int64_t{CodedImage::kMaxPlanes} * ccd_rows, kDitherRandoms,
                                       CodedImage::kMaxBytesPerPixel * pixels, nullptr);
  return Behind(coded, pixels, nullptr).bytes;
}

void PackCoded(const CodedImage& image, std::byte* block) {
  const CodedBlock coded = LayOutCoded(image, block);
  std::copy(image.coded.begin(), image.coded.end(), coded.rows);
  std::copy(image.randoms.begin(), image.randoms.end(), coded.randoms);
}

}  // namespace spexd::cuda
