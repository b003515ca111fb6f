// Compares the kernels that decode images, called directly, with the decoder of core/fits: the same bits,
// whatever CFITSIO's settings.
#include "cuda/kernels/decode.h"

#include <fitsio.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/fits/readers.h"
#include "cuda/plan/coded_block.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temp_folder.h"

namespace spexd::cuda {
namespace {

constexpr int kRows = 70, kColumns = 77;  // several warps, the last of which is not full

struct DecodeCase {
  std::string name;
  int dither;     // CFITSIO's name of the method
  bool wild;      // whether pixels need many bits and values are missing
  int mask_type;  // type of the MASK; 0: no MASK
  void (*write_mask)(fitsfile* file, const std::vector<int>& mask, int* status);
};

// CFITSIO compresses only integers of the image's own type.
template <typename T, int kType>
void WriteMask(fitsfile* file, const std::vector<int>& mask, int* status) {
  std::vector<T> values(mask.begin(), mask.end());
  fits_write_img(file, kType, 1, static_cast<LONGLONG>(values.size()), values.data(), status);
}

struct Planes {
  std::vector<float> pixels, ivar;
  std::vector<int> mask;
};

Planes MakePlanes(bool wild, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> noise;
  Planes planes;
  for (int k = 0; k < kRows * kColumns; ++k) {
    float pixel = 100 + 20 * noise(random);
    if (wild && random() % 50 == 0) pixel *= std::exp(3 * noise(random));
    if (wild && random() % 40 == 0) pixel = std::numeric_limits<float>::quiet_NaN();
    if (wild && random() % 40 == 0) pixel = 0;
    planes.pixels.push_back(k < kColumns ? 7 : pixel);  // a constant row
    const float ivar = random() % 30 == 0 ? 0 : 0.01f * (1 + 0.1f * noise(random));
    planes.ivar.push_back(k % 29 == 0 ? -ivar : ivar);
    planes.mask.push_back(random() % 20 == 0 ? static_cast<int>(random() % (wild ? 1024 : 4)) : 0);
  }
  return planes;
}

void WriteFrame(const Planes& planes, const DecodeCase& of, const std::string& path) {
  fitsfile* file = nullptr;
  int status = 0;
  long axes[2] = {kColumns, kRows};
  float nan = std::numeric_limits<float>::quiet_NaN();
  fits_create_file(&file, path.c_str(), &status);
  fits_set_compression_type(file, RICE_1, &status);
  fits_set_quantize_method(file, of.dither, &status);
  fits_set_quantize_level(file, 16, &status);
  fits_set_dither_seed(file, 17, &status);
  const auto floats = [&](const char* name, std::vector<float> values) {
    fits_create_img(file, FLOAT_IMG, 2, axes, &status);
    fits_update_key(file, TSTRING, "EXTNAME", const_cast<char*>(name), nullptr, &status);
    fits_write_imgnull(file, TFLOAT, 1, kRows * kColumns, values.data(), &nan, &status);
  };
  floats("IMAGE", planes.pixels);
  floats("IVAR", planes.ivar);
  if (of.mask_type != 0) {
    fits_create_img(file, of.mask_type, 2, axes, &status);
    fits_update_key(file, TSTRING, "EXTNAME", const_cast<char*>("MASK"), nullptr, &status);
    of.write_mask(file, planes.mask, &status);
  }
  fits_close_file(file, &status);
  ASSERT_EQ(status, 0);
}

struct Decoded {
  Image image;  // includes the count for the report
  uint32_t damage = 0;
};

Decoded DecodeByKernels(const CodedImage& coded) {
  const size_t pixels = static_cast<size_t>(coded.rows) * static_cast<size_t>(coded.columns);
  alignas(256) static std::byte block[1 << 20];
  EXPECT_LE(LayOutCoded(coded, nullptr).bytes, static_cast<int64_t>(sizeof(block)));
  EXPECT_LE(LayOutDecoding(coded, nullptr).bytes, MostDecodeBytes(coded.rows, coded.columns));
  std::memset(block, 0xff, sizeof(block));
  PackCoded(coded, block);
  *LayOutCoded(coded, block).report = {};
  auto* const bytes = reinterpret_cast<std::byte*>(LayOutCoded(coded, block).words);
  for (const CodedPiece& piece : coded.pieces)
    std::memcpy(bytes + piece.begin, piece.bytes.data(), piece.bytes.size());
  std::vector<uint16_t> mask(pixels);
  Decoded decoded;
  decoded.image.pixels.Assign({coded.rows, coded.columns});
  decoded.image.ivar.Assign({coded.rows, coded.columns});
  DecodeArgs args = {};
  args.rows = coded.rows;
  args.columns = coded.columns;
  args.planes = static_cast<int>(coded.planes.size());
  std::copy(coded.planes.begin(), coded.planes.end(), args.plane);
  args.coded = LayOutCoded(coded, block);
  args.mask = mask.data();
  args.image = {decoded.image.pixels.data(), decoded.image.ivar.data()};
  EXPECT_EQ(DecodeImage(args, nullptr), cudaSuccess);
  decoded.damage = args.coded.report->damage;
  decoded.image.negative_ivar = args.coded.report->negative_ivar;
  return decoded;
}

class Decode : public ::testing::TestWithParam<DecodeCase> {
 protected:
  Source Frame() {
    WriteFrame(MakePlanes(GetParam().wild, 5), GetParam(), folder_ / "frame.fits");
    return Source::FromFile(folder_ / "frame.fits").value();
  }
  testing::TempFolder folder_;
};

TEST_P(Decode, GivesTheBitsOfTheHostsDecoder) {
  const Source frame = Frame();
  const absl::StatusOr<CodedImage> coded = ReadPreprocCoded(frame);
  ASSERT_TRUE(coded.ok()) << coded.status();
  const Image expected = ReadPreprocImage(frame).value();
  const Decoded decoded = DecodeByKernels(*coded);
  EXPECT_EQ(decoded.damage, kNoDamage);
  EXPECT_EQ(decoded.image.negative_ivar, expected.negative_ivar);
  EXPECT_GT(expected.negative_ivar, 100);
  EXPECT_THAT(decoded.image.pixels.flat(), ::testing::Pointwise(::testing::Eq(), expected.pixels.flat()));
  EXPECT_THAT(decoded.image.ivar.flat(), ::testing::Pointwise(::testing::Eq(), expected.ivar.flat()));
}

TEST_P(Decode, NotesTheFirstRowWhoseBytesEndTooEarly) {
  CodedImage coded = ReadPreprocCoded(Frame()).value();
  coded.coded[kRows + 11].size -= 3;
  coded.coded[kRows + 40].size = 1;
  EXPECT_EQ(DecodeByKernels(coded).damage, static_cast<uint32_t>(kRows + 11));
}

INSTANTIATE_TEST_SUITE_P(
    Settings, Decode,
    ::testing::Values(DecodeCase{"DitherWithExactZeros", SUBTRACTIVE_DITHER_2, true, LONG_IMG,
                                 WriteMask<int, TINT>},
                      DecodeCase{"Dither", SUBTRACTIVE_DITHER_1, true, SHORT_IMG, WriteMask<short, TSHORT>},
                      DecodeCase{"NoDither", NO_DITHER, true, BYTE_IMG, WriteMask<unsigned char, TBYTE>},
                      DecodeCase{"UnsignedMask", SUBTRACTIVE_DITHER_2, false, USHORT_IMG,
                                 WriteMask<unsigned short, TUSHORT>},
                      DecodeCase{"NoMask", SUBTRACTIVE_DITHER_2, false, 0, nullptr}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spexd::cuda
