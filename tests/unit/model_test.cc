#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/digest/sha256.h"
#include "core/model/fibre_range.h"
#include "core/model/frame.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/spots/gauss_hermite_formula.h"
#include "core/model/wavelength_grid.h"
#include "tests/support/matchers.h"

namespace spexd {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The length of numpy.arange(wmin, wmax + dw/2, dw), and the SHA-256 of its little-endian values.
struct NumpyGrid {
  double wmin, wmax, dw;
  int count;
  const char* sha256;
};
constexpr NumpyGrid kNumpyGrids[] = {
    {5760, 7620, 0.8, 2326, "7b9cc7023bac48d9b64646459e1b56ba3354f79381c8dfc3fde7b884c699ac6a"},
    {3600, 5800, 0.8, 2751, "9fef48b7370028ece18d92186fde9019a5a739432b111381ee38daf6c3af10e8"},
    {7520, 9824, 0.8, 2881, "5314871f57de4ee0ff2d32ce7a9aecad8fcf9ae75aafba39d4be6f29b9ac053e"},
    {5760, 7620, 0.1, 18601, "09373405d67b1b80b8cb2723de15d01c44a8dfc596e1c7a901ad95e898447c48"},
    {6000.3, 6100.7, 0.35, 288, "a472326e402d29ef80d7a10162647a891432deb56e143ecac8c54821305690ca"},
    {5760, 5760, 0.8, 1, "55cc397ac5efc92012dee395423dcc479bce0cbfe41851b3e31b4c2a20706e41"},
    {5760, 5760.3, 0.8, 1, "55cc397ac5efc92012dee395423dcc479bce0cbfe41851b3e31b4c2a20706e41"},
    {5760, 5760.4, 0.8, 1, "55cc397ac5efc92012dee395423dcc479bce0cbfe41851b3e31b4c2a20706e41"},
    {4000.1, 4010.9, 2.5, 5, "59bcc7a835107b6b9c7a5f75543f2a91809086e223373fb652c7643295081023"},
    {3600, 9824, 0.4, 15561, "6383a03f0688e1aad01ce6e45dfbfcd732f71b97a1a1a5efb69f223ebc171441"},
    {5000, 5000.9, 0.3, 4, "d1a6d97a5130dd9739c2ca9ee5b0fb817a942468d034d15d6db48b29eed078c9"},
};

TEST(WavelengthGrid, EqualsNumpyArangeToTheBit) {
  for (const NumpyGrid& expected : kNumpyGrids) {
    SCOPED_TRACE(absl::StrFormat("%g,%g,%g", expected.wmin, expected.wmax, expected.dw));
    const auto grid = MakeWavelengthGrid(expected.wmin, expected.wmax, expected.dw);
    ASSERT_TRUE(grid.ok()) << grid.status();
    EXPECT_EQ(grid->count, expected.count);
    const std::vector<double> values = grid->Values();
    std::string bytes(values.size() * sizeof(double), '\0');
    std::memcpy(bytes.data(), values.data(), bytes.size());
    EXPECT_EQ(Sha256Hex(bytes), expected.sha256);
  }
}

TEST(WavelengthGrid, NamesWhatIsWrong) {
  const auto message = [](double wmin, double wmax, double dw) {
    const auto grid = MakeWavelengthGrid(wmin, wmax, dw);
    EXPECT_EQ(grid.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(grid.status().message());
  };
  EXPECT_THAT(message(7620, 5760, 0.8), HasSubstr("7620,5760,0.8: wmax must not be less than wmin"));
  EXPECT_THAT(message(5760, 7620, 0), HasSubstr("dw must be greater than 0"));
  EXPECT_THAT(message(5760, 7620, -0.8), HasSubstr("dw must be greater than 0"));
  EXPECT_THAT(message(-1, 7620, 0.8), HasSubstr("wmin must be greater than 0"));
  EXPECT_THAT(message(kNan, 7620, 0.8), HasSubstr("finite"));
  EXPECT_THAT(message(5760, kInfinity, 0.8), HasSubstr("finite"));
  EXPECT_THAT(message(5760, 7620, kNan), HasSubstr("finite"));
  EXPECT_THAT(message(5000, 6000, 1e-4), AllOf(HasSubstr("1e+07 bins"), HasSubstr("1000000")));
  EXPECT_THAT(message(5000, 5000, 1e-15), HasSubstr("rounding"));
}

TEST(WavelengthGrid, IsParsedFromText) {
  const auto grid = ParseWavelengthGrid("5760,7620,0.8");
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(*grid, *MakeWavelengthGrid(5760, 7620, 0.8));
  for (const char* text : {"", "5760", "5760,7620", "5760,7620,0.8,1", "5760,7620,x", "a,b,c"}) {
    EXPECT_THAT(std::string(ParseWavelengthGrid(text).status().message()),
                AllOf(HasSubstr(text), HasSubstr("wmin,wmax,dw")));
  }
}

TEST(WavelengthGrid, ScalesWithABarycentricFactor) {
  const WavelengthGrid grid = MakeWavelengthGrid(5760, 7620, 0.8)->Scaled(1 / 1.0001);
  EXPECT_DOUBLE_EQ(grid.first, 5760 / 1.0001);
  EXPECT_NEAR(grid.last(), 7620 / 1.0001, 1e-9);
  EXPECT_EQ(grid.count, 2326);
}

TEST(FibreRange, IntersectsWithAnother) {
  EXPECT_EQ(Intersect({13, 19}, {25, 25}), (FibreRange{25, 7}));
  EXPECT_TRUE(Intersect({0, 5}, {5, 5}).empty());
  EXPECT_EQ((FibreRange{13, 19}.end()), 32);
}

TEST(Image, TakesThePixelsThatTheMaskRuleAllows) {
  EXPECT_TRUE(IsUsable(1, 1, 0));
  EXPECT_TRUE(IsUsable(-1, 1e-30f, 256));
  EXPECT_FALSE(IsUsable(1, 1, 256 | 1));
  for (int bit = 0; bit <= 9; ++bit) EXPECT_EQ(IsUsable(1, 1, int64_t{1} << bit), bit == 8) << bit;
  EXPECT_TRUE(IsUsable(1, 1, int64_t{1} << 10));
  EXPECT_FALSE(IsUsable(1, 0, 0));
  EXPECT_FALSE(IsUsable(1, -1, 0));
  EXPECT_FALSE(IsUsable(std::nanf(""), 1, 0));
  EXPECT_FALSE(IsUsable(1, std::nanf(""), 0));
  EXPECT_FALSE(IsUsable(INFINITY, 1, 0));
  EXPECT_FALSE(IsUsable(1, INFINITY, 0));
}

LegendreTable Constant(int fibres, double value) {
  LegendreTable table;
  table.coeff.Assign({fibres, 1}, value);
  table.wave_min = 5000;
  table.wave_max = 6000;
  return table;
}

Psf SmallPsf() {
  Psf psf;
  psf.rows = 100;
  psf.columns = 50;
  psf.fibres = 2;
  GaussHermite(psf).stamp = {CentredAxis(4), CentredAxis(4)};
  GaussHermiteCore& core = GaussHermite(psf).core();
  core.max_degree_x = core.max_degree_y = 1;
  psf.wave_min = 5000;
  psf.wave_max = 6000;
  psf.traces.x = psf.traces.y = Constant(2, 20);
  core.sigma_x = core.sigma_y = Constant(2, 1);
  core.terms = {{0, 0, Constant(2, 1)}};
  return psf;
}

TEST(Legendre, EqualsNumpyLegval) {
  LegendreTable table;
  table.wave_min = 5543;
  table.wave_max = 7826;
  table.coeff.Assign({2, 7});
  const double coefficients[] = {2041.25, -6.5, 2.25, 0.0875, -1.75, 0.15625, -0.2265625};
  std::copy_n(coefficients, 7, table.coeff.Row(1).begin());
  const double expected[][2] = {{5543, 2047.77968750000010},    {5543.25, 2047.7822852950253},
                                {6100.5, 2044.8272275012725},   {6684.5, 2039.53955078125},
                                {7000.125, 2038.3906600702633}, {7826, 2035.2671875},
                                {7830, 2035.1994928750346}};
  for (const auto& [wave, value] : expected) {
    EXPECT_NEAR(Evaluate(table, 1, wave), value, 2e-12) << wave;
    EXPECT_EQ(Evaluate(table, 0, wave), 0);
  }
}

TEST(Legendre, GivesTheSameOneByOneAndTogether) {
  LegendreTable table = Constant(1, 3);
  table.coeff.Assign({1, 5});
  for (int k = 0; k < 5; ++k) table.coeff(0, k) = 1.0 / (k + 3);
  std::vector<double> wave(130), together(130);
  for (size_t k = 0; k < wave.size(); ++k) wave[k] = 4990 + 7.7 * static_cast<double>(k);
  EvaluateMany(table, 0, wave, absl::MakeSpan(together));
  for (size_t k = 0; k < wave.size(); ++k) EXPECT_EQ(Evaluate(table, 0, wave[k]), together[k]) << wave[k];
}

TEST(Legendre, TakesAConstant) { EXPECT_EQ(Evaluate(Constant(1, 42), 0, 5123.4), 42); }

std::string Complaint(const Psf& psf) {
  const absl::Status status = CheckPsf(psf);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(CheckPsf, AcceptsASoundPsf) { EXPECT_TRUE(CheckPsf(SmallPsf()).ok()) << CheckPsf(SmallPsf()); }

TEST(CheckPsf, NamesSizesOutOfRange) {
  Psf psf = SmallPsf();
  psf.rows = 0;
  EXPECT_THAT(Complaint(psf), HasSubstr("NPIX_Y is 0, must be 1 to 32768"));
  psf = SmallPsf();
  psf.columns = 1 << 20;
  EXPECT_THAT(Complaint(psf), HasSubstr("NPIX_X is 1048576, must be 1 to 32768"));
  psf = SmallPsf();
  psf.fibres = 0;
  EXPECT_THAT(Complaint(psf), HasSubstr("the number of fibres is 0"));
  psf = SmallPsf();
  GaussHermite(psf).stamp.x = CentredAxis(32);
  EXPECT_THAT(Complaint(psf), HasSubstr("HSIZEX is 32, must be 1 to 31"));
  psf = SmallPsf();
  GaussHermite(psf).stamp.y = CentredAxis(0);
  EXPECT_THAT(Complaint(psf), HasSubstr("HSIZEY is 0"));
  psf = SmallPsf();
  GaussHermite(psf).core().max_degree_x = 16;
  EXPECT_THAT(Complaint(psf), HasSubstr("GHDEGX is 16, must be 0 to 15"));
  psf = SmallPsf();
  GaussHermite(psf).core().max_degree_y = -1;
  EXPECT_THAT(Complaint(psf), HasSubstr("GHDEGY is -1"));
  psf = SmallPsf();
  psf.psferr = kNan;
  EXPECT_THAT(Complaint(psf), HasSubstr("PSFERR is nan"));
}

TEST(CheckPsf, NamesTablesThatDoNotFit) {
  Psf psf = SmallPsf();
  psf.traces.y = Constant(3, 20);
  EXPECT_THAT(Complaint(psf), HasSubstr("YTRACE has 3 fibres, the PSF 2"));
  psf = SmallPsf();
  psf.traces.x.coeff.Assign({2, 65});
  EXPECT_THAT(Complaint(psf), HasSubstr("XTRACE has 65 coefficients, must be 1 to 64"));
  psf = SmallPsf();
  GaussHermite(psf).core().sigma_x.wave_max = 5000;
  EXPECT_THAT(Complaint(psf), HasSubstr("GHSIGX has WAVEMIN 5000, WAVEMAX 5000"));
  for (const double wave : {1e308, 2e9, kInfinity, kNan}) {
    psf = SmallPsf();
    psf.traces.y.wave_max = wave;
    EXPECT_THAT(Complaint(psf), HasSubstr("YTRACE has WAVEMIN 5000, WAVEMAX"));
    psf.traces.y = Constant(2, 20);
    psf.traces.y.wave_min = -wave;
    EXPECT_THAT(Complaint(psf), HasSubstr("both must be within 1e+09 Angstrom either way"));
  }
  psf = SmallPsf();
  GaussHermite(psf).core().sigma_y.coeff(1, 0) = kInfinity;
  EXPECT_THAT(Complaint(psf), HasSubstr("GHSIGY has a coefficient that is not finite in row 1"));
}

TEST(CheckPsf, NamesTermsThatDoNotFit) {
  Psf psf = SmallPsf();
  GaussHermite(psf).core().terms.clear();
  EXPECT_THAT(Complaint(psf), HasSubstr("all GH-i-j are 0"));
  psf = SmallPsf();
  GaussHermite(psf).core().terms.push_back({2, 0, Constant(2, 0.1)});
  EXPECT_THAT(Complaint(psf), HasSubstr("the x degree of a GH-i-j row is 2, must be 0 to 1"));
  psf = SmallPsf();
  GaussHermite(psf).core().terms.push_back({1, 1, Constant(2, kNan)});
  EXPECT_THAT(Complaint(psf), HasSubstr("GH-1-1 has a coefficient that is not finite"));
  psf = SmallPsf();
  GaussHermite(psf).core().terms.push_back({0, 0, Constant(2, 1)});
  EXPECT_THAT(Complaint(psf), HasSubstr("GH-0-0 is given twice"));
  psf = SmallPsf();
  GaussHermite(psf).tail_amplitude = Constant(2, 0.1);
  EXPECT_THAT(Complaint(psf), HasSubstr("TAILCORE has 0 fibres"));
}

std::string Card(const std::string& text) { return absl::StrFormat("%-80s", text); }

TEST(RawTable, IsSlicedWithItsHeapAndHeader) {
  RawTable table;
  table.rows = 4;
  table.row_bytes = 3;
  table.data = "aaabbbcccdddHEAP";
  table.cards = {Card("NAXIS1  =                    3"),
                 Card("NAXIS2  =                    4"),
                 Card("PCOUNT  =                    4"),
                 Card("THEAP   =                   12"),
                 Card("TTYPE1  = 'TARGETID'"),
                 Card("CHECKSUM= 'abcdefgh'"),
                 Card("DATASUM = '12345'"),
                 Card("COMMENT NAXIS2 stays in a comment")};
  const RawTable slice = table.Sliced(1, 2);
  EXPECT_EQ(slice.rows, 2);
  EXPECT_EQ(slice.row_bytes, 3);
  EXPECT_EQ(slice.data, "bbbcccHEAP");
  EXPECT_THAT(slice.cards, ElementsAre(table.cards[0], Card("NAXIS2  =                    2"), table.cards[2],
                                       table.cards[4], table.cards[7]));
}

TEST(RawTable, IsSlicedToNothingAndToItself) {
  RawTable table;
  table.rows = 2;
  table.row_bytes = 2;
  table.data = "aabb";
  table.cards = {Card("NAXIS2  =                    2")};
  EXPECT_EQ(table.Sliced(2, 0).data, "");
  EXPECT_EQ(table.Sliced(0, 2).data, table.data);
  EXPECT_THAT(table.Sliced(0, 2).cards, Contains(table.cards[0]));
}

TEST(HalfErf, IsHalfAnErfFromTheGaussianAtTheSamePlace) {
  for (double u = -40; u <= 40; u += 1.0 / 128)
    ASSERT_NEAR(HalfErf(u, std::exp(-0.5 * u * u)), 0.5 * std::erf(u / std::sqrt(2)), 2e-16) << u;
}

}  // namespace
}  // namespace spexd
