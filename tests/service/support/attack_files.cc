#include "tests/service/support/attack_files.h"

#include <libdeflate.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/fits/samples.h"

namespace spexd::testing {
namespace {

constexpr double kFirst = 6000, kLast = 6040;

std::string BigEndian(uint64_t value, int bytes) {
  std::string text;
  for (int k = bytes - 1; k >= 0; --k) text += static_cast<char>(value >> (8 * k));
  return text;
}

std::string Number(const std::string& keyword, int64_t value) {
  return absl::StrFormat("%-8s= %20d", keyword, value);
}
std::string Text(const std::string& keyword, const std::string& value) {
  return absl::StrFormat("%-8s= '%-8s'", keyword, value);
}

std::string FlatImageHdu(const std::string& name, int rows, int columns) {
  // The first value, then 5 bits for each block of 32 pixels that all equal the previous pixel.
  const int64_t blocks = (int64_t{rows} * columns + 31) / 32;
  const std::string tile(static_cast<size_t>(4 + (5 * blocks + 7) / 8), '\0');
  const auto bytes = static_cast<int64_t>(tile.size());
  return HduBytes({Text("XTENSION", "BINTABLE"),
                   Number("BITPIX", 8),
                   Number("NAXIS", 2),
                   Number("NAXIS1", 8),
                   Number("NAXIS2", 1),
                   Number("PCOUNT", bytes),
                   Number("GCOUNT", 1),
                   Number("TFIELDS", 1),
                   Text("TTYPE1", "COMPRESSED_DATA"),
                   Text("TFORM1", absl::StrFormat("1PB(%d)", bytes)),
                   "ZIMAGE  =                    T",
                   Text("ZCMPTYPE", "RICE_1"),
                   Number("ZBITPIX", -32),
                   Number("ZNAXIS", 2),
                   Number("ZNAXIS1", columns),
                   Number("ZNAXIS2", rows),
                   Number("ZTILE1", columns),
                   Number("ZTILE2", rows),
                   Text("ZNAME1", "BLOCKSIZE"),
                   Number("ZVAL1", 32),
                   Text("ZNAME2", "BYTEPIX"),
                   Number("ZVAL2", 4),
                   Text("ZQUANTIZ", "NO_DITHER"),
                   Number("ZSCALE", 1),
                   Number("ZZERO", 0),
                   Text("EXTNAME", name)},
                  BigEndian(static_cast<uint64_t>(bytes), 4) + BigEndian(0, 4) + tile);
}

std::string EmptyPrimary() {
  return HduBytes({"SIMPLE  =                    T", Number("BITPIX", 8), Number("NAXIS", 0)});
}

}  // namespace

std::string Gzipped(const std::string& bytes) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(1), &libdeflate_free_compressor);
  std::string zipped(libdeflate_gzip_compress_bound(compressor.get(), bytes.size()), '\0');
  zipped.resize(
      libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(), zipped.data(), zipped.size()));
  return zipped;
}

std::string FlatFrame(int rows, int columns) {
  return Gzipped(EmptyPrimary() + FlatImageHdu("IMAGE", rows, columns) + FlatImageHdu("IVAR", rows, columns));
}

std::string ManyTermsPsf(int fibres, int coefficients) {
  constexpr int kDegree = 15;
  const std::string values(static_cast<size_t>(fibres) * coefficients, '\1');
  const std::string domain =
      BigEndian(std::bit_cast<uint64_t>(kFirst), 8) + BigEndian(std::bit_cast<uint64_t>(kLast), 8);
  std::vector<std::string> names = {"X", "Y", "GHSIGX", "GHSIGY"};
  for (int i = 0; i <= kDegree; ++i) {
    for (int j = 0; j <= kDegree; ++j) names.push_back(absl::StrFormat("GH-%d-%d", i, j));
  }
  std::string rows;
  for (const std::string& name : names) rows += absl::StrFormat("%-8s", name) + domain + values;
  const auto row_bytes = static_cast<int64_t>(8 + domain.size() + values.size());
  return Gzipped(EmptyPrimary() + HduBytes({Text("XTENSION", "BINTABLE"),
                                            Number("BITPIX", 8),
                                            Number("NAXIS", 2),
                                            Number("NAXIS1", row_bytes),
                                            Number("NAXIS2", static_cast<int64_t>(names.size())),
                                            Number("PCOUNT", 0),
                                            Number("GCOUNT", 1),
                                            Number("TFIELDS", 4),
                                            Text("TTYPE1", "PARAM"),
                                            Text("TFORM1", "8A"),
                                            Text("TTYPE2", "WAVEMIN"),
                                            Text("TFORM2", "D"),
                                            Text("TTYPE3", "WAVEMAX"),
                                            Text("TFORM3", "D"),
                                            Text("TTYPE4", "COEFF"),
                                            Text("TFORM4", absl::StrFormat("%dB", values.size())),
                                            Text("EXTNAME", "PSF"),
                                            Text("PSFTYPE", "GAUSS-HERMITE"),
                                            Number("PSFVER", 2),
                                            Number("NPIX_X", 80),
                                            Number("NPIX_Y", 60),
                                            Number("HSIZEX", 3),
                                            Number("HSIZEY", 3),
                                            Number("GHDEGX", kDegree),
                                            Number("GHDEGY", kDegree),
                                            Number("FIBERMIN", 0),
                                            Number("FIBERMAX", fibres - 1)},
                                           rows));
}

Psf StraightPsf(int rows, int columns, int fibres) {
  const auto constant = [fibres](double value) {
    LegendreTable table{Array<double, 2>({fibres, 2}), kFirst, kLast};
    for (int i = 0; i < fibres; ++i) table.coeff(i, 0) = value;
    return table;
  };
  Psf psf;
  psf.rows = rows;
  psf.columns = columns;
  psf.fibres = fibres;
  GaussHermite(psf).stamp = {CentredAxis(3), CentredAxis(3)};
  psf.wave_min = kFirst;
  psf.wave_max = kLast;
  psf.traces.x = constant(0);
  psf.traces.y = constant(0.5 * rows);
  for (int i = 0; i < fibres; ++i) {
    psf.traces.x.coeff(i, 0) = 4 + 7 * (i % 10);
    psf.traces.y.coeff(i, 1) = 0.5 * rows - 4;
  }
  GaussHermiteCore& core = GaussHermite(psf).core();
  core.sigma_x = core.sigma_y = constant(1);
  core.terms.push_back({0, 0, constant(1)});
  return psf;
}

}  // namespace spexd::testing
