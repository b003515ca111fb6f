// Trace shifts in files: a frame's cards and table, and PSFs with moved traces.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/moved_psf_writer.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "core/model/psf_traces/move_psf.h"
#include "tests/fits/expectations.h"
#include "tests/fits/samples.h"
#include "tests/support/matchers.h"
#include "tests/support/run_command.h"
#include "tests/support/scenes/goldens.h"
#include "tests/support/temp_folder.h"
#include "tests/traces/same_report.h"

namespace spexd::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

AxisShifts SampleAxis(double constant, int64_t over_u, int64_t over_t) {
  AxisShifts axis;
  axis.status = ShiftStatus::kOk;
  axis.series.Assign({over_u, over_t});
  for (int64_t k = 0; k < axis.series.size(); ++k)
    axis.series.data()[k] = constant / static_cast<double>(k + 1);
  const int64_t terms = over_u * over_t;
  axis.covariance.Assign({terms, terms});
  for (int64_t k = 0; k < terms; ++k) {
    for (int64_t l = 0; l < terms; ++l)
      axis.covariance(k, l) = (k == l ? 1e-4 : 1e-6 / 3) / static_cast<double>(k + l + 1);
  }
  axis.corner_error = 0.0123456789012345;
  axis.mean = constant;
  axis.min = constant - 0.1;
  axis.max = constant + 0.1;
  axis.used = 1234;
  axis.clipped = 5;
  return axis;
}

AxisShifts RefusedAxis() {
  AxisShifts axis;
  axis.status = ShiftStatus::kRefused;
  return axis;
}

// Returns a report for the fibres of SampleFrame and SamplePsf.
TraceReport SampleReport() {
  TraceReport report;
  report.shifts.x = SampleAxis(0.3, 2, 3);
  report.shifts.y = SampleAxis(-0.2, 3, 2);
  report.shifts.passes = 3;
  report.shifts.lines = 17;
  report.moved = true;
  report.reference = "spec-sky.dat";
  report.wave_min = 5500;
  report.wave_max = 7799;
  report.u = {-0.5, 0.1, 0.7};
  return report;
}

std::vector<double> Numbers(const TableView& view, int64_t row, const char* column) {
  const Column& found = *view.Get(column).value();
  std::vector<double> numbers(static_cast<size_t>(found.repeat));
  EXPECT_THAT(view.Numbers(row, found, absl::MakeSpan(numbers)), IsOk());
  return numbers;
}

class TraceShiftsOfAFrame : public ::testing::Test {
 protected:
  TraceShiftsOfAFrame() { frame_.origin.traces = SampleReport(); }

  Frame WriteAndRead() {
    EXPECT_THAT(WriteFrame(frame_, folder_ / "frame.fits"), IsOk());
    ExpectVerified(folder_ / "frame.fits");
    return ReadFrame(Load(folder_ / "frame.fits")).value();
  }
  Hdu Flux() { return FitsFile::Parse(Load(folder_ / "frame.fits"))->hdus()[0]; }

  TempFolder folder_;
  Frame frame_ = SampleFrame();
};

TEST_F(TraceShiftsOfAFrame, ComeBackAsTheyWere) {
  const Frame read = WriteAndRead();
  ASSERT_TRUE(read.origin.traces.has_value());
  ExpectSame(*read.origin.traces, SampleReport());
  EXPECT_THAT(WriteFrame(read, folder_ / "again.fits"), IsOk());
  EXPECT_EQ(ReadBytes(folder_ / "again.fits"), ReadBytes(folder_ / "frame.fits"));
}

TEST_F(TraceShiftsOfAFrame, AreInItsHeader) {
  WriteAndRead();
  const Hdu flux = Flux();
  EXPECT_EQ(flux.String("TSSTATX"), "ok");
  EXPECT_EQ(flux.String("TSSTATY"), "ok");
  EXPECT_TRUE(flux.IsTrue("TSMOVED"));
  EXPECT_EQ(flux.Number("MEANDX"), 0.3);
  EXPECT_EQ(flux.Number("MINDY"), -0.2 - 0.1);
  EXPECT_EQ(flux.Number("MAXDY"), -0.2 + 0.1);
  EXPECT_EQ(flux.Number("ERRDX"), 0.0123456789012345);
}

TEST_F(TraceShiftsOfAFrame, AreInItsTable) {
  WriteAndRead();
  const FitsFile file = FitsFile::Parse(Load(folder_ / "frame.fits")).value();
  EXPECT_EQ(file.hdus().back().name, "TRACESHIFT");
  const TableView view = TableView::Make(file.hdus().back()).value();
  ASSERT_EQ(view.rows(), 3);
  const TraceReport report = SampleReport();
  for (int row = 0; row < 3; ++row) {
    EXPECT_EQ(Numbers(view, row, "FIBER"), std::vector<double>{1.0 * row});
    EXPECT_THAT(Numbers(view, row, "WAVE"), ElementsAre(5500, 6074.75, 6649.5, 7224.25, 7799));
    for (int k = 0; k < 5; ++k) {
      const double u = report.u[static_cast<size_t>(row)], t = 0.5 * k - 1;
      const auto at = static_cast<size_t>(k);
      EXPECT_EQ(Numbers(view, row, "DX")[at], EvaluateShift(report.shifts.x.series, u, t));
      EXPECT_EQ(Numbers(view, row, "DY")[at], EvaluateShift(report.shifts.y.series, u, t));
      EXPECT_EQ(Numbers(view, row, "ERRDX")[at], ShiftError(report.shifts.x, u, t));
      EXPECT_EQ(Numbers(view, row, "ERRDY")[at], ShiftError(report.shifts.y, u, t));
    }
  }
}

TEST_F(TraceShiftsOfAFrame, ThatAreRefusedHaveAReasonInPlaceOfNumbers) {
  TraceReport& report = *frame_.origin.traces;
  report.shifts.y = RefusedAxis();
  report.shifts.reason =
      "y: 1 lines of the reference are seen (at least 2), dy is known to 0.2 pixels at best, which "
      "is more than the limit";
  report.moved = false;
  const Frame read = WriteAndRead();
  ExpectSame(*read.origin.traces, report);
  EXPECT_EQ(Flux().String("TSSTATY"), "refused");
  EXPECT_FALSE(Flux().Has("MEANDY"));
  const FitsFile file = FitsFile::Parse(Load(folder_ / "frame.fits")).value();
  const TableView view = TableView::Make(file.hdus().back()).value();
  EXPECT_THAT(Numbers(view, 0, "DY"), Each(0));
  EXPECT_THAT(Numbers(view, 0, "ERRDY"), Each(::testing::IsNan()));
}

TEST_F(TraceShiftsOfAFrame, ReplaceThoseThatTheImageStates) {
  const std::vector<std::string> stated = {Card("MEANDX  =                  9.0"),
                                           Card("TSSTATX = 'weak    '")};
  for (const std::string& card : stated) frame_.origin.image_cards.push_back(card);
  const Frame read = WriteAndRead();
  EXPECT_EQ(Flux().Number("MEANDX"), 0.3);
  EXPECT_EQ(Flux().String("TSSTATX"), "ok");
  for (const std::string& card : read.origin.image_cards) EXPECT_NE(CardKeyword(card), "MEANDX");
}

TEST_F(TraceShiftsOfAFrame, ThatOnlyTheImageStatesAreTheImages) {
  frame_.origin.traces.reset();
  frame_.origin.image_cards.push_back(Card("MEANDX  =                  9.0"));
  const Frame read = WriteAndRead();
  EXPECT_FALSE(read.origin.traces.has_value());
  EXPECT_THAT(read.origin.image_cards, Contains(Card("MEANDX  =                  9.0")));
  EXPECT_EQ(Flux().Number("MEANDX"), 9);
  EXPECT_FALSE(Flux().Has("TSMOVED"));
}

TEST_F(TraceShiftsOfAFrame, OfOtherFibresAreRefused) {
  frame_.origin.traces->u.pop_back();
  EXPECT_THAT(WriteFrame(frame_, folder_ / "frame.fits"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("those of 2 fibres, not of 3")));
}

TEST_F(TraceShiftsOfAFrame, ThatAreNotFiniteInItsFileAreRefused) {
  const auto expect_refused = [this](const std::string& words) {
    EXPECT_THAT(ReadFrame(Load(folder_ / "frame.fits")).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("HDU TRACESHIFT: " + words)));
  };
  const auto expect_refused_column = [&](double TraceReport::*member, double value,
                                         const std::string& words) {
    frame_.origin.traces = SampleReport();
    (*frame_.origin.traces).*member = value;
    ASSERT_THAT(WriteFrame(frame_, folder_ / "frame.fits"), IsOk());
    expect_refused(words);
  };
  expect_refused_column(&TraceReport::wave_min, kNan, "WAVE goes from nan to 7799 Angstrom");
  expect_refused_column(&TraceReport::wave_max, 5000, "WAVE goes from 5500 to 5000 Angstrom");
  frame_.origin.traces = SampleReport();
  frame_.origin.traces->u[1] = kNan;
  ASSERT_THAT(WriteFrame(frame_, folder_ / "frame.fits"), IsOk());
  expect_refused("U is nan in row 1, must be finite");
  for (const auto& [keyword, words] :
       {std::pair("CX0_1", "the keyword CX0_1 is not a number"),
        {"VY2_1", "the keyword VY2_1 is not a number"},
        {"MEANDX", "MEANDX in the frame's header is missing or not a number"},
        {"TSSTATY", "TSSTATY in the frame's header: the status of trace shifts is \"\", must be none, ok"}}) {
    frame_.origin.traces = SampleReport();
    ASSERT_THAT(WriteFrame(frame_, folder_ / "frame.fits"), IsOk());
    std::string bytes = ReadBytes(folder_ / "frame.fits");
    const size_t card = bytes.find(absl::StrFormat("%-8s=", keyword));
    ASSERT_NE(card, std::string::npos) << keyword;
    bytes.replace(card, 30, absl::StrFormat("%-8s=%21s", keyword, "NAN"));
    WriteBytes(folder_ / "frame.fits", bytes);
    expect_refused(words);
  }
}

// ---- PSFs with moved traces

void ExpectSamePsf(const Psf& a, const Psf& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.fibres, b.fibres);
  EXPECT_EQ(a.wave_min, b.wave_min);
  EXPECT_EQ(a.psferr, b.psferr);
  EXPECT_EQ(a.camera, b.camera);
  ExpectSame(a.traces.x, b.traces.x);
  ExpectSame(a.traces.y, b.traces.y);
  const GaussHermiteCore &core = GaussHermite(a).core(), &expected = GaussHermite(b).core();
  ExpectSame(core.sigma_x, expected.sigma_x);
  ExpectSame(core.sigma_y, expected.sigma_y);
  ASSERT_EQ(core.terms.size(), expected.terms.size());
  for (size_t k = 0; k < core.terms.size(); ++k)
    ExpectSame(core.terms[k].amplitude, expected.terms[k].amplitude);
}

class MovedPsf : public ::testing::Test {
 protected:
  // Writes psf.fits with moved traces to moved.fits, and reads it back.
  Psf Move(const TraceReport& report) {
    const absl::Status written =
        WriteMovedPsf(Load(folder_ / "psf.fits"), report, folder_ / "moved.fits", {}, "preproc.fits");
    EXPECT_THAT(written, IsOk());
    if (!written.ok()) return Psf();
    ExpectVerified(folder_ / "moved.fits");
    return ReadPsf(Load(folder_ / "moved.fits")).value();
  }
  Psf Original() { return ReadPsf(Load(folder_ / "psf.fits")).value(); }
  FitsFile File(const char* name) { return FitsFile::Parse(Load(folder_ / name)).value(); }

  TempFolder folder_;
};

// Writes a version 2 file: all parameters in one table without a name. Its column COEFF has the form `form`,
// and each row states its domain.
void WriteVersion2(const Psf& psf, char form, const std::string& path) {
  const GaussHermiteCore& core = GaussHermite(psf).core();
  const std::vector<std::pair<const char*, const LegendreTable*>> rows = {
      {"X", &psf.traces.x},
      {"Y", &psf.traces.y},
      {"GHSIGX", &core.sigma_x},
      {"GHSIGY", &core.sigma_y},
      {"GH-0-0", &core.terms[0].amplitude}};
  const int64_t count = psf.traces.x.coeff.shape(1);
  FitsBuilder fits(1 << 20);
  fits.BeginImage("", DOUBLE_IMG, {});
  fits.Text("PSFTYPE", "GAUSS-HERMITE", "");
  fits.Text("PSFVER", "2", "");
  fits.BeginTable("", static_cast<int64_t>(rows.size()), {"PARAM", "WAVEMIN", "WAVEMAX", "COEFF", "LAST"},
                  {"8A", "1D", "1D", absl::StrCat(psf.fibres * count, std::string(1, form)), "1J"});
  fits.Text("TDIM4", absl::StrFormat("(%d,%d)", count, psf.fibres), "");
  const std::pair<const char*, int> integers[] = {{"NPIX_X", psf.columns},
                                                  {"NPIX_Y", psf.rows},
                                                  {"HSIZEX", psf.stamp().x.middle},
                                                  {"HSIZEY", psf.stamp().y.middle},
                                                  {"FIBERMIN", 0},
                                                  {"FIBERMAX", psf.fibres - 1},
                                                  {"GHDEGX", 0},
                                                  {"GHDEGY", 0},
                                                  {"LEGDEG", static_cast<int>(count) - 1}};
  for (const auto& [keyword, value] : integers) fits.Integer(keyword, value, "");
  for (size_t k = 0; k < rows.size(); ++k) {
    const LegendreTable& table = *rows[k].second;
    const int64_t number = static_cast<int64_t>(k) + 1;
    std::vector<double> values;
    for (int i = 0; i < psf.fibres; ++i) {
      for (int64_t j = 0; j < count; ++j) values.push_back(j < table.coeff.shape(1) ? table.coeff(i, j) : 0);
    }
    fits.ColumnText(1, number, rows[k].first);
    fits.ColumnValues(2, number, absl::MakeConstSpan(&table.wave_min, 1));
    fits.ColumnValues(3, number, absl::MakeConstSpan(&table.wave_max, 1));
    fits.ColumnValues(4, number, absl::MakeConstSpan(values));
    fits.ColumnValues(5, number, absl::MakeConstSpan(&number, 1));
  }
  ASSERT_THAT(fits.Write(path), IsOk());
}

// Writes a version 3 file whose traces are images of floats after an empty primary HDU, and which has
// another, unrelated table.
void WriteFloatTraces(const Psf& psf, const std::string& folder) {
  ASSERT_THAT(WritePsf(psf, folder + "/double.fits"), IsOk());
  const RawTable table = ReadTableHdu(Load(folder + "/double.fits"), "PSF").value();
  FitsBuilder fits(1 << 20);
  fits.BeginImage("PRIMARY", DOUBLE_IMG, {});
  fits.Text("IN_PSF", "before.fits", "");
  for (const auto& [name, trace] : {std::pair("XTRACE", &psf.traces.x), std::pair("YTRACE", &psf.traces.y)}) {
    const std::vector<float> values(trace->coeff.flat().begin(), trace->coeff.flat().end());
    fits.BeginImage(name, FLOAT_IMG, {trace->coeff.shape(0), trace->coeff.shape(1)});
    fits.Number("WAVEMIN", trace->wave_min, "");
    fits.Number("WAVEMAX", trace->wave_max, "");
    fits.Pixels(absl::MakeConstSpan(values));
  }
  fits.AddRawTable(table);
  fits.BeginTable("OTHER", 1, {"VALUE"}, {"1D"});
  fits.ColumnValues(1, 1, absl::MakeConstSpan(&psf.psferr, 1));
  ASSERT_THAT(fits.Write(folder + "/psf.fits"), IsOk());
}

TEST_F(MovedPsf, IsReadAsItIsMovedToTheBit) {
  ASSERT_THAT(WritePsf(SamplePsf(), folder_ / "psf.fits"), IsOk());
  const TraceReport report = SampleReport();
  const Psf read = Move(report);
  ExpectSamePsf(read, MovePsf(SamplePsf(), report.shifts));
  EXPECT_NE(read.traces.x.coeff, SamplePsf().traces.x.coeff);
}

TEST_F(MovedPsf, TellsWhereItComesFrom) {
  ASSERT_THAT(WritePsf(SamplePsf(), folder_ / "psf.fits"), IsOk());
  Move(SampleReport());
  const FitsFile moved = File("moved.fits");
  const Hdu& first = moved.hdus()[0];
  EXPECT_EQ(first.String("IN_PSF"), folder_ / "psf.fits");
  EXPECT_EQ(first.String("IN_IMAGE"), "preproc.fits");
  EXPECT_EQ(first.String("TSSTATX"), "ok");
  EXPECT_EQ(first.Number("MEANDX"), 0.3);
  // A PSF that was moved twice describes the second move.
  std::filesystem::rename(folder_ / "moved.fits", folder_ / "psf.fits");
  TraceReport second = SampleReport();
  second.shifts.x.mean = 0.5;
  Move(second);
  const std::vector<std::string> cards = File("moved.fits").hdus()[0].cards;
  EXPECT_EQ(FindNumber(cards, "MEANDX"), 0.5);
  for (const char* keyword : {"MEANDX", "IN_PSF", "IN_IMAGE", "TSSTATX"}) {
    EXPECT_EQ(std::count_if(cards.begin(), cards.end(),
                            [keyword](const std::string& card) { return CardKeyword(card) == keyword; }),
              1)
        << keyword;
  }
}

TEST_F(MovedPsf, HasMoreCoefficientsIfTheShiftHas) {
  ASSERT_THAT(WritePsf(SamplePsf(), folder_ / "psf.fits"), IsOk());
  Psf small = SamplePsf();
  small.traces.x.coeff.Assign({3, 2}, 10);
  ASSERT_THAT(WritePsf(small, folder_ / "psf.fits"), IsOk());
  TraceReport report = SampleReport();
  report.shifts.x = SampleAxis(0.3, 2, 6);
  const Psf read = Move(report);
  EXPECT_EQ(read.traces.x.coeff.shape(1), 6);
  ExpectSamePsf(read, MovePsf(small, report.shifts));
}

TEST_F(MovedPsf, HasTracesOfDoublePrecisionWhereTheyWereFloats) {
  WriteFloatTraces(SamplePsf(), folder_.path());
  const Psf original = Original();
  EXPECT_NE(original.traces.x.coeff, SamplePsf().traces.x.coeff);
  const TraceReport report = SampleReport();
  ExpectSamePsf(Move(report), MovePsf(original, report.shifts));
  const FitsFile original_file = File("psf.fits"), moved_file = File("moved.fits");
  const std::vector<Hdu>& before = original_file.hdus();
  const std::vector<Hdu>& after = moved_file.hdus();
  ASSERT_EQ(after.size(), before.size());
  for (size_t k = 3; k < after.size(); ++k) EXPECT_EQ(after[k].data, before[k].data);
  EXPECT_EQ(after[0].String("IN_PSF"), folder_ / "psf.fits");
}

TEST_F(MovedPsf, OfVersion2HasMovedRows) {
  for (const char form : {'D', 'E'}) {
    WriteVersion2(SamplePsf(), form, folder_ / "psf.fits");
    const Psf original = Original();
    const TraceReport report = SampleReport();
    ExpectSamePsf(Move(report), MovePsf(original, report.shifts));
    const FitsFile moved = File("moved.fits");
    const TableView view = TableView::Make(moved.hdus()[1]).value();
    EXPECT_EQ(Numbers(view, 4, "LAST"), std::vector<double>{5});
  }
}

TEST_F(MovedPsf, OfVersion2HasMoreCoefficientsIfTheShiftHas) {
  Psf small = SamplePsf();
  small.traces.x.coeff.Assign({3, 4}, 10);
  WriteVersion2(small, 'E', folder_ / "psf.fits");
  const Psf original = Original();
  TraceReport report = SampleReport();
  report.shifts.y = {};
  report.shifts.x = SampleAxis(0.3, 1, 6);
  const Psf read = Move(report);
  ExpectSame(read.traces.x, MovePsf(original, report.shifts).traces.x);
  EXPECT_EQ(read.traces.y.coeff.shape(1), 6);
}

TEST_F(MovedPsf, KeepsItsTracesWhereTheyWereNotMoved) {
  WriteFloatTraces(SamplePsf(), folder_.path());
  TraceReport report = SampleReport();
  report.moved = false;
  ExpectSamePsf(Move(report), Original());
  EXPECT_FALSE(File("moved.fits").hdus()[0].IsTrue("TSMOVED"));
  report.moved = true;
  report.shifts.y = RefusedAxis();
  ExpectSamePsf(Move(report), MovePsf(Original(), report.shifts));
  EXPECT_EQ(File("moved.fits").hdus()[2].data, File("psf.fits").hdus()[2].data);
}

TEST_F(MovedPsf, KeepsFibresLostThatAreLost) {
  for (const bool in_trace : {true, false}) {
    Psf psf = SamplePsf();
    (in_trace ? psf.traces.x : GaussHermite(psf).core().sigma_y).coeff(1, 1) = kNan;
    WriteVersion2(psf, 'D', folder_ / "psf.fits");
    const Psf original = Original();
    EXPECT_EQ(GaussHermite(original).core().sigma_x.coeff(1, 0), 0);
    const TraceReport report = SampleReport();
    ExpectSamePsf(Move(report), MovePsf(original, report.shifts));
  }
}

TEST_F(MovedPsf, OfAnotherDomainIsRefused) {
  ASSERT_THAT(WritePsf(SamplePsf(), folder_ / "psf.fits"), IsOk());
  TraceReport report = SampleReport();
  report.wave_max = 7800;
  EXPECT_THAT(WriteMovedPsf(Load(folder_ / "psf.fits"), report, folder_ / "moved.fits", {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("psf.fits"), HasSubstr("5500 to 7799"), HasSubstr("5500 to 7800"))));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "moved.fits"));
}

TEST_F(MovedPsf, OfRealFilesIsMovedToo) {
  SPEXD_GOLDENS_OR_SKIP(goldens);
  for (const char* name : {"psf-r0-00051060.fits", "psf-v2-wide.fits", "traces/psf-stale.fits"}) {
    SCOPED_TRACE(name);
    const Source source = Load(goldens + "/" + name);
    const Psf psf = ReadPsf(source).value();
    TraceReport report = SampleReport();
    report.wave_min = psf.traces.x.wave_min;
    report.wave_max = psf.traces.x.wave_max;
    ASSERT_THAT(WriteMovedPsf(source, report, folder_ / "moved.fits", {}), IsOk());
    ExpectSamePsf(ReadPsf(Load(folder_ / "moved.fits")).value(), MovePsf(psf, report.shifts));
  }
}

}  // namespace
}  // namespace spexd::testing
