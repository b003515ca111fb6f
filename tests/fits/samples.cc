#include "tests/fits/samples.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"

namespace spexd::testing {
namespace {

LegendreTable Table(double constant, double slope, int coefficients = 4) {
  LegendreTable table{Array<double, 2>({3, coefficients}), 5500, 7800};
  for (int i = 0; i < 3; ++i) {
    table.coeff(i, 0) = constant + 0.013 * i;
    for (int k = 1; k < coefficients; ++k) table.coeff(i, k) = slope / (k * k) + 1e-3 * i;
  }
  return table;
}

std::string BigEndian(int64_t value, int bytes) {
  std::string text;
  for (int k = bytes - 1; k >= 0; --k) text += static_cast<char>(static_cast<uint64_t>(value) >> (8 * k));
  return text;
}

RawTable SampleFibermap(int rows) {
  RawTable table;
  table.rows = rows;
  table.row_bytes = 15;
  for (const std::string& text :
       {std::string("XTENSION= 'BINTABLE'"), std::string("BITPIX  =                    8"),
        std::string("NAXIS   =                    2"), std::string("NAXIS1  =                   15"),
        absl::StrFormat("NAXIS2  = %20d", rows), std::string("PCOUNT  =                    0"),
        std::string("GCOUNT  =                    1"), std::string("TFIELDS =                    3"),
        std::string("TTYPE1  = 'TARGETID'"), std::string("TFORM1  = 'K       '"),
        std::string("TTYPE2  = 'FIBER   '"), std::string("TFORM2  = 'J       '"),
        std::string("TTYPE3  = 'OBJTYPE '"), std::string("TFORM3  = '3A      '"),
        std::string("EXTNAME = 'FIBERMAP'"), std::string("TILEID  =                80605 / kept")}) {
    table.cards.push_back(Card(text));
  }
  for (int i = 0; i < rows; ++i) table.data += BigEndian(39627000051060000 + i, 8) + BigEndian(i, 4) + "TGT";
  return table;
}

}  // namespace

std::string Card(const std::string& text) { return absl::StrFormat("%-80s", text); }

Psf SamplePsf() {
  Psf psf;
  psf.rows = 24;
  psf.columns = 40;
  psf.fibres = 3;
  psf.fibre_min = 0;
  GaussHermite(psf).stamp = {CentredAxis(4), CentredAxis(3)};
  GaussHermiteCore& core = GaussHermite(psf).core();
  core.max_degree_x = 2;
  core.max_degree_y = 1;
  psf.psferr = 0.02;
  psf.wave_min = 5500;
  psf.wave_max = 7800;
  psf.traces.x = Table(20, 0.1, 6);
  psf.traces.y = Table(12, 10, 6);
  psf.traces.x.wave_max = psf.traces.y.wave_max = 7799;
  core.sigma_x = Table(1.1, 0.01);
  core.sigma_y = Table(1.2, 0.02);
  core.terms.push_back({0, 0, Table(1, 0)});
  core.terms.push_back({2, 1, Table(0.01, 0.003)});
  psf.camera = "r3";
  psf.original_psf = "psf-before-shift.fits";
  return psf;
}

PreprocFile SamplePreproc(int rows, int columns) {
  PreprocFile file;
  file.pixels.Assign({rows, columns});
  file.ivar.Assign({rows, columns});
  file.mask.Assign({rows, columns});
  file.readnoise.Assign({rows, columns}, 2.9f);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      file.pixels(r, c) = static_cast<float>(std::sin(0.37 * r) * 20 + std::cos(1.7 * c) * 5 +
                                             0.01 * ((r * 31 + c * 17) % 97));
      file.ivar(r, c) = static_cast<float>(0.1 + 0.001 * ((r * 7 + c * 13) % 41));
    }
  }
  file.mask(2, 3) = 1;
  file.mask(2, 4) = 256;
  file.mask(2, 5) = 512;
  file.mask(2, 6) = 1024;
  file.pixels(5, 5) = std::numeric_limits<float>::quiet_NaN();
  file.pixels(5, 6) = std::numeric_limits<float>::infinity();
  file.ivar(5, 7) = std::numeric_limits<float>::quiet_NaN();
  file.ivar(5, 8) = std::numeric_limits<float>::infinity();
  file.ivar(5, 9) = -1;
  file.ivar(5, 10) = 0;
  for (int i = 0; i < 3; ++i)
    file.fibermap.push_back({39627000051060000 + i, i, i == 1 ? "SKY" : "TGT", 179.5, 0.1 * i});
  file.extra_cards = {Card("CAMERA  = 'r0      '"), Card("EXPTIME =               1000.0"),
                      Card("MJD-OBS =             58899.35")};
  return file;
}

Frame SampleFrame(int fibres, int bins) {
  Frame frame;
  frame.grid = MakeWavelengthGrid(5760, 5760 + (bins - 1) * 0.8, 0.8).value();
  frame.fibres = {0, fibres};
  Spectra& s = frame.spectra;
  s.flux.Assign({fibres, bins});
  s.ivar.Assign({fibres, bins});
  s.mask.Assign({fibres, bins});
  s.chi2pix.Assign({fibres, bins});
  s.resolution.Assign({fibres, kResolutionDiagonals, bins});
  for (int64_t k = 0; k < s.flux.size(); ++k) {
    s.flux.flat()[k] = 100 * std::sin(0.1f * k);
    s.ivar.flat()[k] = 0.01f + 0.001f * (k % 5);
    s.chi2pix.flat()[k] = 1 + 0.1f * (k % 3);
  }
  for (int64_t k = 0; k < s.resolution.size(); ++k) s.resolution.flat()[k] = 0.01f * (k % 7);
  s.mask(0, 1) = kMaskSomeBadPix | kMaskNoData;
  s.mask(1, 2) = 0x80000001u;
  FrameOrigin& origin = frame.origin;
  origin.image_cards = {Card("CAMERA  = 'r0      '           / camera"),
                        Card("EXPTIME =               1000.0"),
                        Card("LONGTEXT= 'a value that is so long that it needs another card, whic&'"),
                        Card("CONTINUE  'h goes on here'"), Card("COMMENT a comment that is kept"),
                        // Cards that must not be carried over
                        Card("BITPIX  =                   16"), Card("NAXIS1  =                 4114"),
                        Card("BZERO   =                32768"), Card("ZCMPTYPE= 'RICE_1  '"),
                        Card("TTYPE1  = 'X'"), Card("CHECKSUM= 'abc     '"), Card("EXTNAME = 'IMAGE   '"),
                        Card("BUNIT   = 'electron'"), Card("CRPIX1  =                  1.0"),
                        Card("CRVAL1  =                  1.0"), Card("CTYPE1  = 'PIXEL   '"),
                        Card("DATE    = '2020-02-19'"), Card("bad key = 1"), Card("IN_PSF  = 'other.fits'")};
  origin.input_image = "preproc-r0-00051060.fits";
  origin.input_psf =
      "/a/rather/long/path/to/the/calibration/of/the/night/20200219/psfnight/exposures/psf-r0-00051060.fits";
  origin.original_psf = "psf-r0-before.fits";
  origin.heliocentric_factor = 1.0000712345678901;
  origin.psferr = 0.01;
  origin.version = "0.1.0";
  origin.fibermap = SampleFibermap(fibres);
  Scores scores;
  for (int i = 0; i < fibres; ++i) {
    scores.sum_counts.push_back(1000.5 + i);
    scores.median_counts.push_back(10.25 * i);
    scores.median_snr.push_back(0.1 * i);
    scores.median_chi2pix.push_back(0.8);
    scores.outliers_chi2pix.push_back(0.01 * i);
  }
  frame.scores = scores;
  return frame;
}

Truth SampleTruth() {
  Truth truth{{0, 2}, {5700.0, 5700.2, 5700.4}, Array<float, 2>({2, 3})};
  for (int k = 0; k < 6; ++k) truth.flux.flat()[k] = 1.5f * k;
  return truth;
}

std::string HduBytes(const std::vector<std::string>& cards, const std::string& data) {
  std::string bytes;
  for (const std::string& card : cards) bytes += Card(card);
  bytes += Card("END");
  bytes.resize((bytes.size() + 2879) / 2880 * 2880, ' ');
  bytes += data;
  bytes.resize((bytes.size() + 2879) / 2880 * 2880, '\0');
  return bytes;
}

Source Load(const std::string& path) { return Source::FromFile(path).value(); }

}  // namespace spexd::testing
