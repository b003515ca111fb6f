#include "core/frame/job.h"

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/version.h"
#include "core/simulate/simulator.h"
#include "tests/support/matchers.h"

namespace spexd {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string InputCard(const std::string& keyword, const std::string& value) {
  return absl::StrFormat("%-80s", absl::StrFormat("%-8s= %20s", keyword, value));
}

std::shared_ptr<const Psf> SmallPsf() {
  SimulatorOptions options;
  options.fibres = 60;
  options.rows = 120;
  Psf psf = *SimulatePsf(options);
  psf.original_psf = "psf-nominal.fits";
  return std::make_shared<const Psf>(std::move(psf));
}

class PlanJobTest : public ::testing::Test {
 protected:
  PlanJobTest() {
    input_.image_name = "preproc.fits";
    input_.psf_name = "psf.fits";
    input_.psf = SmallPsf();
    input_.image_rows = input_.psf->rows;
    input_.image_columns = input_.psf->columns;
    input_.image_cards = {InputCard("NAXIS1", "484"),    InputCard("CAMERA", "'r0'"),
                          InputCard("TARGTRA", "179.6"), InputCard("TARGTDEC", "0.1"),
                          InputCard("EXPTIME", "1000."), InputCard("MJD-OBS", "58899.35"),
                          InputCard("CHECKSUM", "'abc'")};
    spec_.grid = WavelengthGrid{6630, 0.8, 30};
  }

  // The message with which the job is refused.
  std::string Refusal() const {
    const auto plan = PlanJob(spec_, input_);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(plan.status().message());
  }
  JobPlan Plan() const {
    auto plan = PlanJob(spec_, input_);
    EXPECT_TRUE(plan.ok()) << plan.status();
    return plan.ok() ? *std::move(plan) : JobPlan();
  }
  RawTable Fibermap(int64_t rows) const {
    RawTable table;
    table.rows = rows;
    table.row_bytes = 2;
    table.cards = {InputCard("NAXIS2", absl::StrFormat("%d", rows))};
    for (int64_t i = 0; i < rows; ++i) table.data += absl::StrFormat("%02d", i % 100);
    return table;
  }

  JobSpec spec_;
  JobInput input_;
};

TEST_F(PlanJobTest, FillsInThePipelinesDefaults) {
  spec_.grid.reset();
  const JobPlan plan = Plan();
  EXPECT_EQ(plan.fibres, (FibreRange{0, 60}));
  EXPECT_EQ(plan.bundle_size, 25);
  EXPECT_EQ(plan.bundles, 3);
  EXPECT_EQ(plan.psferr, 0.01);
  EXPECT_TRUE(plan.scores);
  EXPECT_FALSE(plan.model);
  EXPECT_EQ(plan.output_grid, *MakeWavelengthGrid(input_.psf->wave_min, input_.psf->wave_max, 0.8));
  EXPECT_EQ(plan.solve_grid, plan.output_grid);
}

TEST_F(PlanJobTest, DescribesTheOrigin) {
  spec_.psferr = 0.04;
  const FrameOrigin origin = Plan().origin;
  EXPECT_EQ(origin.input_image, "preproc.fits");
  EXPECT_EQ(origin.input_psf, "psf.fits");
  EXPECT_EQ(origin.original_psf, "psf-nominal.fits");
  EXPECT_EQ(origin.psferr, 0.04);
  EXPECT_EQ(origin.version, kVersion);
  EXPECT_FALSE(origin.heliocentric_factor.has_value());
  EXPECT_FALSE(origin.fibermap.has_value());
  EXPECT_FALSE(origin.fine_grid_prior);
  EXPECT_THAT(origin.image_cards,
              ElementsAre(input_.image_cards[1], input_.image_cards[2], input_.image_cards[3],
                          input_.image_cards[4], input_.image_cards[5]));
}

TEST_F(PlanJobTest, RefusesAnImageOfAnotherCameraThanThePsfs) {
  struct Case {
    const char *image, *psf;
    bool refused;
  };
  for (const Case& c : {Case{"r0", "r0", false}, Case{"R0", "'r0      '", false}, Case{"r", "r3", false},
                        Case{"r3", "r", false}, Case{"", "r0", false}, Case{"z9", "", false},
                        Case{"red", "RED", false}, Case{"b0", "r0", true}, Case{"r5", "r0", true},
                        Case{"r1", "r10", true}, Case{"b", "r3", true}, Case{"blue", "red", true}}) {
    SCOPED_TRACE(absl::StrFormat("image %s, PSF %s", c.image, c.psf));
    input_.image_cards[1] = absl::StrFormat("%-80s", absl::StrFormat("CAMERA  = '%s'", c.image));
    Psf psf = *input_.psf;
    psf.camera = c.psf;
    input_.psf = std::make_shared<const Psf>(std::move(psf));
    EXPECT_EQ(PlanJob(spec_, input_).ok(), !c.refused);
  }
  EXPECT_THAT(Refusal(), HasSubstr("image preproc.fits is of camera blue, but PSF psf.fits is of camera red (CAMERA "
                                   "in their headers); give the PSF of camera blue, or correct"));
}

TEST_F(PlanJobTest, TakesCamerasOfAnyWavelengths) {
  Psf psf = *input_.psf;
  psf.wave_max = 10000;  // r1 of BOSS reaches from 5650 to 10000 Angstrom
  psf.camera = "r1";
  input_.psf = std::make_shared<const Psf>(std::move(psf));
  input_.image_cards[1] = absl::StrFormat("%-80s", "CAMERA  = 'r1'");
  EXPECT_EQ(Plan().bundles, 3);
}

TEST_F(PlanJobTest, SaysThatAFineGridHasAnExtraPrior) {
  spec_.grid = WavelengthGrid{6630, 0.3, 30};
  EXPECT_TRUE(Plan().origin.fine_grid_prior);
  spec_.grid = WavelengthGrid{6630, 0.4, 30};
  spec_.barycentric_correction = true;
  EXPECT_FALSE(Plan().origin.fine_grid_prior);
}

// Any range of fibres is taken, whatever the bundle size.
TEST_F(PlanJobTest, TakesAnyFibreRange) {
  struct Case {
    int first, count, bundle_size, bundles;
  };
  for (const Case& c : {Case{13, 19, 25, 2}, Case{0, 1, 25, 1}, Case{59, 1, 25, 1}, Case{24, 2, 25, 2},
                        Case{25, 25, 25, 1}, Case{0, 60, 7, 9}, Case{1, 58, 500, 1}, Case{3, 3, 1, 3}}) {
    SCOPED_TRACE(absl::StrFormat("%d %d %d", c.first, c.count, c.bundle_size));
    spec_.first_fibre = c.first;
    spec_.fibre_count = c.count;
    spec_.bundle_size = c.bundle_size;
    EXPECT_EQ(Plan().bundles, c.bundles);
    EXPECT_EQ(Plan().fibres, (FibreRange{c.first, c.count}));
  }
}

TEST_F(PlanJobTest, NamesFibresThatDoNotExist) {
  spec_.first_fibre = 50;
  spec_.fibre_count = 11;
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("11 fibres from fibre 50"), HasSubstr("60 fibres"), HasSubstr("1 to 10")));
  spec_.fibre_count = std::numeric_limits<int>::max();
  EXPECT_THAT(Refusal(), HasSubstr("fibre_count is 2147483647, must be 1 to 20000"));
  spec_.fibre_count = 0;
  EXPECT_THAT(Refusal(), HasSubstr("fibre_count is 0, must be 1 to 20000"));
  spec_.fibre_count.reset();
  spec_.first_fibre = 60;
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("first fibre 60"), HasSubstr("0 to 59")));
  spec_.first_fibre = -1;
  EXPECT_THAT(Refusal(), HasSubstr("first_fibre is -1, must be 0 to 20000"));
}

TEST_F(PlanJobTest, NamesABadBundleSize) {
  for (const int size : {0, -25, kMaxFibres + 1}) {
    spec_.bundle_size = size;
    EXPECT_THAT(Refusal(), HasSubstr(absl::StrFormat("bundle_size is %d, must be 1 to 20000", size)));
  }
}

TEST_F(PlanJobTest, NamesBadNumbers) {
  for (const double bad : {-0.01, kNan, kInfinity, 1e30}) {
    spec_.psferr = bad;
    EXPECT_THAT(Refusal(), HasSubstr(absl::StrFormat("psferr is %g, must be 0 to", bad)));
  }
  spec_.psferr = 0;
  for (const double bad : {-1.0, kNan, kInfinity, 1e200}) {
    spec_.regularize = bad;
    EXPECT_THAT(Refusal(), HasSubstr(absl::StrFormat("regularize is %g, must be 0 to", bad)));
  }
}

TEST_F(PlanJobTest, NamesABadGrid) {
  const auto refusal = [&](const WavelengthGrid& grid) {
    spec_.grid = grid;
    return Refusal();
  };
  EXPECT_THAT(refusal({kNan, 0.8, 10}), HasSubstr("finite"));
  EXPECT_THAT(refusal({-6000, 0.8, 10}), HasSubstr("greater than 0"));
  EXPECT_THAT(refusal({6630, -0.8, 10}), HasSubstr("-0.8"));
  EXPECT_THAT(refusal({6630, kInfinity, 10}), HasSubstr("finite"));
  EXPECT_THAT(refusal({6630, 0.8, 0}), HasSubstr("0 bins, must be 1 to 1000000"));
  EXPECT_THAT(refusal({6630, 1e-6, 10000000}), HasSubstr("10000000 bins"));
  EXPECT_THAT(refusal({6630, 1e-5, 1000}), HasSubstr("1e-05"));
}

TEST_F(PlanJobTest, RefusesAGridOutsideThePsfsDomain) {
  const Psf& psf = *input_.psf;
  const auto grid = [&](double first, double last) { return MakeWavelengthGrid(first, last, 0.8).value(); };
  spec_.grid = grid(psf.wave_min - 1, psf.wave_min + 20);
  Plan();
  spec_.grid = grid(psf.wave_min - 3, psf.wave_min + 20);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("domain"), HasSubstr(absl::StrFormat("%.6g", psf.wave_min))));
  spec_.grid = grid(psf.wave_max - 20, psf.wave_max + 3);
  EXPECT_THAT(Refusal(), HasSubstr("domain"));
}

TEST_F(PlanJobTest, RefusesAJobTooLargeForMemory) {
  SimulatorOptions options;
  options.fibres = 500;
  options.rows = 60;
  input_.psf = std::make_shared<const Psf>(*SimulatePsf(options));
  input_.image_rows = input_.psf->rows;
  input_.image_columns = input_.psf->columns;
  spec_.grid = WavelengthGrid{6640, 1e-5, 900000};
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("500 fibres of 900000 bins"), HasSubstr("26.8 GiB"), HasSubstr("16 GiB")));
}

TEST_F(PlanJobTest, RefusesAnImageOfAnotherSize) {
  input_.image_rows = 100;
  input_.image_columns = 484;
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("preproc.fits has 100 x 484"), HasSubstr("psf.fits is for 120 x")));
  input_.image_rows = 0;
  EXPECT_THAT(Refusal(), HasSubstr("no image"));
  input_.psf.reset();
  EXPECT_THAT(Refusal(), HasSubstr("no"));
}

TEST_F(PlanJobTest, RefusesABadPsf) {
  Psf psf = *input_.psf;
  GaussHermite(psf).core().sigma_x.coeff(3, 0) = kNan;
  input_.psf = std::make_shared<const Psf>(psf);
  EXPECT_THAT(Refusal(), HasSubstr("GHSIGX"));
}

TEST_F(PlanJobTest, RefusesCardsOfAnotherLength) {
  input_.image_cards.push_back("FOO = 1");
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("image header: card 8"), HasSubstr("80")));
}

TEST_F(PlanJobTest, SlicesTheFibermap) {
  input_.fibermap = Fibermap(60);
  spec_.first_fibre = 13;
  spec_.fibre_count = 3;
  EXPECT_EQ(Plan().origin.fibermap->data, "131415");
  EXPECT_THAT(Plan().origin.fibermap->cards, ElementsAre(InputCard("NAXIS2", "3")));
  // The fibermap may have more rows than fibres, or fewer if they suffice.
  input_.fibermap = Fibermap(99);
  EXPECT_EQ(Plan().origin.fibermap->rows, 3);
  input_.fibermap = Fibermap(16);
  EXPECT_EQ(Plan().origin.fibermap->data, "131415");
}

TEST_F(PlanJobTest, RefusesAFibermapWithoutTheFibres) {
  input_.fibermap = Fibermap(59);
  EXPECT_THAT(Refusal(),
              AllOf(HasSubstr("FIBERMAP has 59 rows"), HasSubstr("fibres 0 to 59 need at least 60")));
  input_.fibermap = Fibermap(60);
  input_.fibermap->data.resize(100);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("60 rows of 2 bytes"), HasSubstr("100 bytes")));
  input_.fibermap->row_bytes = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Refusal(), HasSubstr("FIBERMAP"));
}

TEST_F(PlanJobTest, SolvesOnTheGridDividedByTheBarycentricFactor) {
  spec_.barycentric_correction = true;
  const JobPlan plan = Plan();
  ASSERT_TRUE(plan.origin.heliocentric_factor.has_value());
  EXPECT_NEAR(*plan.origin.heliocentric_factor, 1.00004975319859, 2e-10);
  EXPECT_EQ(plan.output_grid, *spec_.grid);
  EXPECT_DOUBLE_EQ(plan.solve_grid.first, plan.output_grid.first / *plan.origin.heliocentric_factor);
  EXPECT_DOUBLE_EQ(plan.solve_grid.step, plan.output_grid.step / *plan.origin.heliocentric_factor);
}

TEST_F(PlanJobTest, RefusesABarycentricCorrectionWithoutDateOrPosition) {
  spec_.barycentric_correction = true;
  input_.image_cards.clear();
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("barycentric correction"), HasSubstr("TARGTRA")));
  input_.fibermap = Fibermap(60);
  input_.fibermap->cards = {InputCard("RA", "10."), InputCard("DEC", "20.")};
  EXPECT_THAT(Refusal(), HasSubstr("MJD-OBS"));
  input_.fibermap->cards.push_back(InputCard("MJD-OBS", "59000."));
  input_.fibermap->cards.push_back(InputCard("EXPTIME", "900."));
  EXPECT_TRUE(Plan().origin.heliocentric_factor.has_value());
}

TEST_F(PlanJobTest, BecomesAnEnginesRequest) {
  spec_.first_fibre = 2;
  spec_.psferr = 0.02;
  spec_.regularize = 0.5;
  spec_.model = true;
  const ExtractRequest request = MakeExtractRequest(Plan(), nullptr);
  EXPECT_EQ(request.fibres, (FibreRange{2, 58}));
  EXPECT_EQ(request.psferr, 0.02);
  EXPECT_EQ(request.regularize, 0.5);
  EXPECT_TRUE(request.want_model);
}

TEST_F(PlanJobTest, MeasuresTraceShiftsOfFlatsInXAlone) {
  EXPECT_EQ(Plan().trace_shifts, TraceAxes::kOff);
  spec_.trace_shifts = TraceAxes::kAuto;
  EXPECT_EQ(Plan().trace_shifts, TraceAxes::kXY);  // the image has no FLAVOR
  const auto flavor_card = [](const std::string& flavor) {
    return absl::StrFormat("%-80s", absl::StrFormat("FLAVOR  = '%-8s'", flavor));
  };
  const std::pair<const char*, TraceAxes> flavors[] = {
      {"science", TraceAxes::kXY}, {"arc", TraceAxes::kXY}, {" FLAT", TraceAxes::kX}};
  for (const auto& [flavor, axes] : flavors) {
    input_.image_cards.push_back(flavor_card(flavor));
    EXPECT_EQ(Plan().trace_shifts, axes) << flavor;
    input_.image_cards.pop_back();
  }
  input_.image_cards.push_back(flavor_card("flat"));
  spec_.trace_shifts = TraceAxes::kXY;
  EXPECT_EQ(Plan().trace_shifts, TraceAxes::kXY);
}

}  // namespace
}  // namespace spexd
