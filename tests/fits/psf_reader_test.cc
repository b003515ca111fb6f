#include "absl/strings/str_format.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "tests/fits/expectations.h"
#include "tests/fits/samples.h"
#include "tests/support/matchers.h"
#include "tests/support/scenes/goldens.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

// Returns the bytes of the sample as version 3, with every `from` replaced by a `to` of the same length.
std::string SampleBytes(const std::string& from = "", const std::string& to = "") {
  const TempFolder folder;
  EXPECT_TRUE(WritePsf(SamplePsf(), (folder / "psf.fits")).ok());
  std::string bytes = ReadBytes(folder / "psf.fits");
  EXPECT_EQ(from.size(), to.size());
  for (size_t at = bytes.find(from); !from.empty() && at != std::string::npos;
       at = bytes.find(from, at + 1)) {
    bytes.replace(at, from.size(), to);
  }
  return bytes;
}

absl::Status Refusal(const std::string& from, const std::string& to) {
  return ReadPsf(Source::FromBytes("psf.fits", SampleBytes(from, to)).value()).status();
}

// Returns cards of one long string, about 65 characters for each of `cards`.
std::string LongString(const std::string& keyword, int cards) {
  std::string text = Card(absl::StrFormat("%-8s= '%s&'", keyword, std::string(65, 'x')));
  for (int k = 1; k < cards; ++k) text += Card("CONTINUE  '" + std::string(65, 'x') + "&'");
  return text;
}

// Returns the sample with these cards in its primary header.
Source SampleWith(const std::string& cards) {
  std::string bytes = SampleBytes();
  const std::string end = Card("END");
  const size_t at = bytes.find(end);
  const size_t data = (at / 2880 + 1) * 2880;
  std::string header = bytes.substr(0, at) + cards + end;
  header.resize((header.size() + 2879) / 2880 * 2880, ' ');
  return Source::FromBytes("psf.fits", header + bytes.substr(data)).value();
}

TEST(PsfReader, LimitsTheNameOfTheOriginalPsf) {
  EXPECT_EQ(ReadPsf(SampleWith(LongString("IN_PSF", 60)))->original_psf.substr(0, 60 * 65),
            std::string(60 * 65, 'x'));
  const absl::Status refused = ReadPsf(SampleWith(LongString("IN_PSF", 64))).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("IN_PSF has 416"), HasSubstr("the limit is 4096")));
}

// A status travels in gRPC's metadata, which clients limit to 8 KiB.
TEST(PsfReader, KeepsItsMessagesShort) {
  for (const char* keyword : {"PSFTYPE", "EXTNAME"}) {
    const absl::Status refused =
        ReadPsf(SampleWith(LongString(keyword, 1000) + LongString("IN_PSF", 1000))).status();
    EXPECT_FALSE(refused.ok()) << keyword;
    EXPECT_LT(refused.message().size(), 300u) << keyword;
  }
}

TEST(PsfReader, ReadsBackWhatWasWrittenToTheBit) {
  const TempFolder folder;
  const Psf psf = SamplePsf();
  ASSERT_TRUE(WritePsf(psf, (folder / "psf.fits")).ok());
  const Source source = Load(folder / "psf.fits");
  const absl::StatusOr<Psf> read = ReadPsf(source);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->rows, psf.rows);
  EXPECT_EQ(read->columns, psf.columns);
  EXPECT_EQ(read->fibres, psf.fibres);
  EXPECT_EQ(read->stamp(), psf.stamp());
  EXPECT_EQ(read->psferr, psf.psferr);
  EXPECT_EQ(read->wave_min, psf.wave_min);
  EXPECT_EQ(read->wave_max, psf.wave_max);
  EXPECT_EQ(read->camera, psf.camera);
  EXPECT_EQ(read->original_psf, psf.original_psf);
  EXPECT_EQ(read->content_hash, source.content_hash());
  ExpectSame(read->traces.x, psf.traces.x);
  ExpectSame(read->traces.y, psf.traces.y);
  const GaussHermiteCore &core = GaussHermite(*read).core(), &written = GaussHermite(psf).core();
  EXPECT_EQ(core.max_degree_x, written.max_degree_x);
  EXPECT_EQ(core.max_degree_y, written.max_degree_y);
  ExpectSame(core.sigma_x, written.sigma_x);
  ExpectSame(core.sigma_y, written.sigma_y);
  ASSERT_EQ(core.terms.size(), 2u);
  for (int k = 0; k < 2; ++k) {
    EXPECT_EQ(core.terms[k].degree_x, written.terms[k].degree_x);
    EXPECT_EQ(core.terms[k].degree_y, written.terms[k].degree_y);
    ExpectSame(core.terms[k].amplitude, written.terms[k].amplitude);
  }
  EXPECT_TRUE(GaussHermite(*read).tail_amplitude.empty());
  EXPECT_TRUE(GaussHermite(*read).tail_core.empty());
}

TEST(PsfReader, KeepsTheTailWhereThereIsOne) {
  Psf psf = SamplePsf();
  GaussHermiteSpots& spots = GaussHermite(psf);
  spots.tail_amplitude = spots.tail_core = spots.tail_index = spots.tail_scale_x = spots.tail_scale_y =
      spots.core().sigma_x;
  const TempFolder folder;
  ASSERT_TRUE(WritePsf(psf, (folder / "psf.fits.gz")).ok());
  const absl::StatusOr<Psf> read = ReadPsf(Load(folder / "psf.fits.gz"));
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectSame(GaussHermite(*read).tail_amplitude, spots.core().sigma_x);
  ExpectSame(GaussHermite(*read).tail_scale_y, spots.core().sigma_x);
}

TEST(PsfReader, WritesSeriesOfAnotherDomainAsTheSameFunction) {
  Psf psf = SamplePsf();
  LegendreTable& sigma_x = GaussHermite(psf).core().sigma_x;
  sigma_x.wave_min = 5400;
  sigma_x.wave_max = 7900;
  const TempFolder folder;
  ASSERT_TRUE(WritePsf(psf, (folder / "psf.fits")).ok());
  const absl::StatusOr<Psf> read = ReadPsf(Load(folder / "psf.fits"));
  ASSERT_TRUE(read.ok()) << read.status();
  const LegendreTable& read_sigma_x = GaussHermite(*read).core().sigma_x;
  EXPECT_EQ(read_sigma_x.wave_min, psf.wave_min);
  for (double wave : {5500.0, 6000.0, 7000.0, 7800.0})
    EXPECT_NEAR(Evaluate(read_sigma_x, 1, wave), Evaluate(sigma_x, 1, wave), 1e-13);
}

TEST(PsfReader, NamesKeywordValueAndLimit) {
  const struct {
    const char *from, *to, *text;
  } cases[] = {
      {"HSIZEX  =                    4", "HSIZEX  =                   99",
       "HDU PSF: HSIZEX is 99, must be 1 to 31"},
      {"GHDEGY  =                    1", "GHDEGY  =                   77", "GHDEGY is 77, must be 0 to 15"},
      {"FIBERMAX=                    2", "FIBERMAX=                99999", "FIBERMAX is 99999"},
      {"FIBERMAX=                    2", "FIBERMAX=                    1",
       "COEFF has 6 coefficients a fibre"},
      {"LEGDEG  =                    3", "LEGDEG  =                    5", "LEGDEG"},
      {"NPIX_X  =", "MPIX_X  =", "the keyword NPIX_X is missing"},
      {"NPIX_Y  =                   24", "NPIX_Y  =                  2.5", "NPIX_Y is not an integer"},
      {"EXTNAME = 'YTRACE  '", "EXTNAME = 'ZTRACE  '",
       "there is no HDU YTRACE; the file has XTRACE, ZTRACE, PSF"},
      {"GHSIGX  ", "GHSIGQ  ", "no row with PARAM GHSIGX"},
      {"GHSIGX  ", "GHSIGY  ", "GHSIGY comes twice"},
      {"TTYPE2  = 'COEFF   '", "TTYPE2  = 'KOEFF   '", "no column COEFF"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(Refusal(c.from, c.to), StatusIs(absl::StatusCode::kInvalidArgument,
                                                AllOf(HasSubstr("psf.fits"), HasSubstr(c.text))));
  }
}

TEST(PsfReader, TakesAMissingOrZeroPsferrAsOnePercent) {
  for (const char* to : {"PSFERR  =                  0.0", "PSFFOO  =                 0.02"}) {
    const absl::StatusOr<Psf> psf =
        ReadPsf(Source::FromBytes("psf", SampleBytes("PSFERR  =                 0.02", to)).value());
    ASSERT_TRUE(psf.ok()) << psf.status();
    EXPECT_EQ(psf->psferr, 0.01);
  }
}

LegendreTable& TraceX(Psf& psf) { return psf.traces.x; }
LegendreTable& TraceY(Psf& psf) { return psf.traces.y; }
LegendreTable& SigmaX(Psf& psf) { return GaussHermite(psf).core().sigma_x; }
LegendreTable& SigmaY(Psf& psf) { return GaussHermite(psf).core().sigma_y; }

// Returns the sample with one of its tables set to NaN in some fibres, which WritePsf does not write.
Source SampleWithout(LegendreTable& (*table)(Psf&), const std::vector<int>& fibres) {
  const TempFolder folder;
  Psf psf = SamplePsf();
  for (const int fibre : fibres) table(psf).coeff(fibre, 0) = 0x1p700;
  EXPECT_TRUE(WritePsf(psf, (folder / "psf.fits")).ok());
  std::string bytes = ReadBytes(folder / "psf.fits");
  const std::string written("\x6b\xb0\0\0\0\0\0\0", 8);
  for (size_t at = bytes.find(written); at != std::string::npos; at = bytes.find(written, at))
    bytes.replace(at, 8, 8, '\xff');
  return Source::FromBytes("psf.fits", bytes).value();
}

TEST(PsfReader, GivesFibresWithoutFiniteCoefficientsEmptySpotsBetweenTheirNeighbours) {
  Psf whole = SamplePsf();
  for (const auto table : {TraceX, TraceY, SigmaX, SigmaY}) {
    for (const int lost : {0, 1, 2}) {
      Psf psf = ReadPsf(SampleWithout(table, {lost})).value();
      for (const double wave : {5600.0, 7700.0}) {
        EXPECT_EQ(Evaluate(SigmaX(psf), lost, wave), 0);
        EXPECT_EQ(Evaluate(SigmaY(psf), lost, wave), 0);
        // The traces of the sample are evenly spaced.
        EXPECT_NEAR(Evaluate(psf.traces.x, lost, wave), Evaluate(whole.traces.x, lost, wave), 1e-9);
        EXPECT_NEAR(Evaluate(psf.traces.y, lost, wave), Evaluate(whole.traces.y, lost, wave), 1e-9);
        for (int fibre = 0; fibre < 3; ++fibre) {
          if (fibre == lost) continue;
          EXPECT_EQ(Evaluate(psf.traces.x, fibre, wave), Evaluate(whole.traces.x, fibre, wave));
          EXPECT_EQ(Evaluate(SigmaY(psf), fibre, wave), Evaluate(SigmaY(whole), fibre, wave));
        }
      }
    }
  }
}

TEST(PsfReader, RefusesAPsfWithoutAnyWholeFibre) {
  const absl::Status status = ReadPsf(SampleWithout(SigmaY, {0, 1, 2})).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("psf.fits"), HasSubstr("GHSIGY"), HasSubstr("not finite")));
}

TEST(PsfReader, ReadsTheRealFile) {
  SPEXD_GOLDENS_OR_SKIP(folder);
  const absl::StatusOr<Psf> psf = ReadPsf(Load(folder + "/psf-r0-00051060.fits"));
  ASSERT_TRUE(psf.ok()) << psf.status();
  EXPECT_EQ(psf->fibres, 500);
  EXPECT_EQ(psf->rows, 4128);
  EXPECT_EQ(psf->columns, 4114);
  EXPECT_EQ(psf->psferr, 0.01);  // PSFERROR is another parameter
  EXPECT_EQ(psf->wave_max, 7827);
  EXPECT_EQ(psf->traces.x.wave_max, 7826);
  EXPECT_EQ(psf->traces.x.coeff.shape(1), 7);
  EXPECT_EQ(GaussHermite(*psf).core().terms.size(), 49u);
  EXPECT_TRUE(GaussHermite(*psf).tail_amplitude.empty());
  EXPECT_NEAR(GaussHermite(*psf).core().sigma_x.coeff(0, 0), 1.04074656, 1e-8);
}

TEST(ReadPsfOutline, TellsAllButTheCoefficientsOfTerms) {
  const TempFolder folder;
  ASSERT_TRUE(WritePsf(SamplePsf(), folder / "psf.fits").ok());
  const Source source = Load(folder / "psf.fits");
  const Psf whole = ReadPsf(source).value(), outline = ReadPsfOutline(source, 0).value();
  EXPECT_EQ(outline.rows, whole.rows);
  EXPECT_EQ(outline.traces.y.coeff, whole.traces.y.coeff);
  EXPECT_EQ(outline.content_hash, whole.content_hash);
  const GaussHermiteCore &core = GaussHermite(outline).core(), &all = GaussHermite(whole).core();
  EXPECT_EQ(core.sigma_x.coeff, all.sigma_x.coeff);
  ASSERT_EQ(core.terms.size(), all.terms.size());
  EXPECT_EQ(core.terms[1].degree_x, all.terms[1].degree_x);
  EXPECT_TRUE(core.terms[1].amplitude.empty());
  EXPECT_EQ(PsfBytes(outline), PsfBytes(whole));
  EXPECT_TRUE(IsComplete(ReadPsfOutline(source).value()));
}

}  // namespace
}  // namespace spexd::testing
