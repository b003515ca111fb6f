// A joint analysis from the spectra to the bytes of its files, and its reports of files that fail.
#include "core/products/joint/joint_task.h"

#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/products/joint/joint_analysis.h"
#include "core/products/joint/joint_files.h"
#include "tests/analysis/joint/made_up_spectra.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/analysis/made_up_stars.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

TargetSpectra Stars(int rows) {
  Frame frame = DarkFrame(rows, 4);
  std::mt19937 random(20261201);
  AddNoise(&random, &frame);
  for (int row = 0; row < rows; ++row) AddLight(StarLight(120, 0.7, row == 1 ? 0 : 100), row, &frame);
  return HalvesOf(frame);
}

// Returns Redrock's file: target 100 is a star, target 101 a galaxy.
Source StarAndGalaxy() {
  NumberTable table(2);
  table.Add("TARGETID", std::vector<int64_t>{100, 101});
  table.Add("Z", std::vector<double>{0.0001, 0.4});
  table.Add("SPECTYPE", std::vector<std::string>{"STAR", "GALAXY"});
  table.Add("SUBTYPE", std::vector<std::string>{"G", ""});
  FitsBuilder fits(0);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  table.Write("REDSHIFTS", &fits);
  return Source::FromBytes("redrock.fits", fits.Bytes().value()).value();
}

class JointTaskTest : public ::testing::Test {
 protected:
  JointTask All() const {
    JointTask task;
    task.templates = &library_;
    task.velocities = task.models = task.lines = true;
    task.threads = 2;
    return task;
  }
  absl::StatusOr<int64_t> Run(const JointTask& task, SpectraKind kind = SpectraKind::kTargets) {
    products_.clear();
    files_.clear();
    return RunJointTask(spectra_, kind, task, [this](JointProduct product, absl::StatusOr<JointFile> file) {
      products_.push_back(product);
      files_.push_back(std::move(file));
    });
  }
  RawTable TableIn(size_t file, const std::string& hdu) const {
    return ReadTableHdu(Source::FromBytes("made.fits", files_[file]->bytes).value(), hdu).value();
  }

  TargetSpectra spectra_ = Stars(3);
  const TemplateLibrary library_ = StarTemplates().Make().value();
  std::vector<JointProduct> products_;
  std::vector<absl::StatusOr<JointFile>> files_;
};

TEST_F(JointTaskTest, SendsTheFilesOfTheAnalysisInTheOrderInWhichTheyAreMade) {
  JointRequest request;
  request.targets = {{0}, {1}, {2}};
  request.templates = &library_;
  request.lines = true;
  request.velocity_options.exclude = {kExcludedOfTargets};
  const JointProducts products = AnalyseJointly(spectra_, request).value();
  for (const int threads : {1, 3}) {
    JointTask task = All();
    task.threads = threads;
    EXPECT_EQ(Run(task).value(), 3);
    ASSERT_THAT(products_,
                ElementsAre(JointProduct::kRedshifts, JointProduct::kVelocities, JointProduct::kModels));
    EXPECT_TRUE(files_[0]->bytes == JointLineFile(spectra_, products).value());
    EXPECT_TRUE(files_[1]->bytes ==
                JointVelocityFile(spectra_, products, library_.names, request.velocity_options, std::nullopt)
                    .value());
    EXPECT_TRUE(files_[2]->bytes == JointModelFile(spectra_, products).value());
  }
  EXPECT_EQ(files_[1]->targets, 3);
  EXPECT_EQ(files_[1]->good, 2) << "one is dark";
  EXPECT_EQ(files_[2]->good, 2);
  EXPECT_EQ(files_[0]->targets, 3);
  EXPECT_EQ(std::string(NameOf(products_[0])), "redshifts");
}

TEST_F(JointTaskTest, MakesWhatIsAskedForAlone) {
  JointTask task = All();
  task.velocities = task.models = false;
  EXPECT_THAT(Run(task).status(), IsOk());
  EXPECT_THAT(products_, ElementsAre(JointProduct::kRedshifts));
  task = All();
  task.lines = task.velocities = false;
  EXPECT_THAT(Run(task).status(), IsOk());
  EXPECT_THAT(products_, ElementsAre(JointProduct::kModels));
  task = All();
  task.templates = nullptr;
  EXPECT_THAT(Run(task).status(), IsOk());
  EXPECT_THAT(products_, ElementsAre(JointProduct::kRedshifts));
}

TEST_F(JointTaskTest, SelectsRowsAndTellsOfNone) {
  JointTask task = All();
  task.rows.target_ids = {102};
  EXPECT_EQ(Run(task).value(), 1);
  EXPECT_EQ(IntegerColumn(TableIn(1, "RVTAB"), "TARGETID").value(), std::vector<int64_t>{102});
  task.rows.target_ids = {7};
  EXPECT_EQ(Run(task).value(), 0);
  ASSERT_THAT(files_, SizeIs(3));
  for (const absl::StatusOr<JointFile>& file : files_) EXPECT_EQ(file->targets, 0);
  task = All();
  task.per_target = true;
  spectra_.fibermap = SpectraOf({100, 101, 100}).fibermap;
  EXPECT_EQ(Run(task).value(), 2);
}

TEST_F(JointTaskTest, SelectsStarsByRedrockAndAddsItsColumns) {
  const Source redrock = StarAndGalaxy();
  JointTask task = All();
  task.redrock = &redrock;
  EXPECT_EQ(Run(task).value(), 3);
  EXPECT_TRUE(HasColumn(TableIn(1, "RVTAB"), "RR_Z"));
  task.select_by_redrock = true;
  EXPECT_EQ(Run(task).value(), 1);
  EXPECT_EQ(TextColumn(TableIn(1, "RVTAB"), "RR_SUBTYPE").value(), std::vector<std::string>{"G"});
  task.redrock = nullptr;
  EXPECT_THAT(Run(task).status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("are to be selected by redrock, whose file is not")));
  EXPECT_THAT(products_, IsEmpty());
}

TEST_F(JointTaskTest, FailsOneProductWithoutTheOthers) {
  for (SpectraArm& arm : spectra_.arms) arm.grid.first += 2000;  // beyond the templates
  EXPECT_EQ(Run(All()).value(), 3);
  ASSERT_THAT(files_, SizeIs(3));
  EXPECT_THAT(files_[0].status(), IsOk());
  for (const size_t failed : {1, 2}) {
    EXPECT_THAT(files_[failed].status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("templates: reach from")));
  }
}

TEST_F(JointTaskTest, LeavesOutWavelengthsOfFilesOfSpectraUnlessAskedOtherwise) {
  const auto bins = [&] { return NumberColumn(TableIn(0, "RVTAB"), "NPIX_TOT").value()[0]; };
  JointTask task = All();
  task.lines = task.models = false;
  task.exclude = std::vector<WavelengthRange>{{6040, 6060}};
  EXPECT_THAT(Run(task).status(), IsOk());
  const double some = bins();
  task.exclude.reset();
  EXPECT_THAT(Run(task, SpectraKind::kFrame).status(), IsOk());
  const double all = bins();
  EXPECT_NEAR(all - some, 25, 1);
  EXPECT_THAT(Run(task, SpectraKind::kTargets).status(), IsOk());
  EXPECT_EQ(bins(), all) << "4300 to 4450 Angstrom are in none of the arms";
}

TEST_F(JointTaskTest, RefusesWhatConcernsAllFilesBeforeTheFirst) {
  spectra_.arms.resize(1);
  spectra_.arms[0].spectra.resolution.Assign({3, 10, 200});
  EXPECT_THAT(Run(All()).status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("10 diagonals")));
  EXPECT_THAT(products_, IsEmpty());
}

TEST_F(JointTaskTest, IsCancelledOnceAStopIsRequested) {
  std::stop_source stop;
  JointTask task = All();
  task.stop = stop.get_token();
  const absl::Status between =
      RunJointTask(spectra_, SpectraKind::kTargets, task, [&](JointProduct product, const auto& file) {
        EXPECT_EQ(product, JointProduct::kRedshifts);
        EXPECT_THAT(file.status(), IsOk());
        stop.request_stop();
      }).status();
  EXPECT_THAT(between, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(Run(task).status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(products_, IsEmpty());
}

}  // namespace
}  // namespace spexd::testing
