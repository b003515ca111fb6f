// Nights with products of each frame, and of each exposure over its arms.
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "client/cli/night/night_list.h"
#include "client/cli/terminal/exit_code.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

constexpr const char* kArms[] = {"b", "r"};
constexpr const char* kNumbers[] = {"00051060", "00051061"};
const std::map<std::string, std::string> kWavelengths = {{"b", "4691,4819,0.8"}, {"r", "6587,6703,0.8"}};
constexpr char kAllProducts[] = "sky,sframe,velocities,redshifts,exposure-velocities,exposure-redshifts";

// Two exposures of two cameras with stars, emitters and sky fibres, and a list of them.
class NightProducts : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    inputs_ = new TempFolder();
    ASSERT_EQ(
        Spex({"templates", "make", "--synthetic", "--range", "4600,6800", "-o", Input("templates.fits")})
            .code,
        0);
    for (const char* camera : kArms) {
      ASSERT_EQ(Spex({"simulate",
                      "--camera",
                      camera,
                      "--fibres",
                      "20",
                      "--rows",
                      "240",
                      "--exposures",
                      "2",
                      "--seed",
                      "5",
                      "--sky-fibres",
                      "4",
                      "--emitters",
                      "8",
                      "--stars",
                      Input("templates.fits"),
                      "--holes",
                      "0",
                      "--out-dir",
                      inputs_->path(),
                      "-w",
                      kWavelengths.at(camera)})
                    .code,
                0);
    }
  }
  static void TearDownTestSuite() { delete inputs_; }

  static std::string Input(const std::string& name) { return *inputs_ / name; }
  static std::string Image(const std::string& frame) { return Input("preproc-" + frame + ".fits"); }
  static std::string Psf(const std::string& camera) { return Input("psf-" + camera + "0.fits"); }
  std::string Output(const std::string& name) const { return folder_ / ("out/" + name + ".fits"); }

  // Writes a list whose rows have `more` after their other columns.
  void WriteList(const std::string& more_columns = "", const std::string& more = "") const {
    std::string text = "image psf output expid wavelength " + more_columns + "\n";
    for (const std::string exposure : kNumbers) {
      for (const std::string camera : kArms) {
        const std::string frame = camera + "0-" + exposure;
        text += Image(frame) + " " + Psf(camera) + " " + Output("frame-" + frame) + " " + exposure + " " +
                kWavelengths.at(camera) + " " + more + "\n";
      }
    }
    WriteBytes(folder_ / "night.txt", text);
  }
  std::vector<std::string> Products(const std::string& names) const {
    return {"--products",  names,
            "--velocity",  Input("templates.fits"),
            "--fiberflat", Input("fiberflat-b0.fits"),
            "--fiberflat", Input("fiberflat-r0.fits")};
  }
  RunResult Night(const std::vector<std::string>& more) const {
    return Spex(Joined(
        {"night", folder_ / "night.txt", "--progress", "lines", "--json", folder_ / "night.json"}, more));
  }
  nlohmann::json Json() const { return nlohmann::json::parse(ReadBytes(folder_ / "night.json")); }
  std::map<std::string, int> States(const char* of) const {
    std::map<std::string, int> states;
    const nlohmann::json night = Json();
    for (const auto& one : night[of]) ++states[one["state"]];
    return states;
  }
  // Expects that each product equals, to the byte, the one that its own command makes.
  void ExpectAllAsAlone() const {
    const TempFolder alone;
    std::vector<std::string> joint = {
        "analyse",      "--device",  "cpu", "-q", "--lines", "--velocity", Input("templates.fits"),
        "--output-dir", alone.path()};
    for (const std::string camera : kArms) {
      for (const std::string exposure : kNumbers) {
        const std::string frame = camera + "0-" + exposure;
        ASSERT_EQ(Spex({"-i",
                        Image(frame),
                        "-p",
                        Psf(camera),
                        "-w",
                        kWavelengths.at(camera),
                        "--device",
                        "cpu",
                        "-q",
                        "-o",
                        alone / ("frame-" + frame + ".fits"),
                        "--fiberflat",
                        Input("fiberflat-" + camera + "0.fits"),
                        "--sky",
                        alone / ("sky-" + frame + ".fits"),
                        "--sframe",
                        alone / ("sframe-" + frame + ".fits"),
                        "--velocity",
                        Input("templates.fits"),
                        "--velocity-out",
                        alone / ("rvtab-" + frame + ".fits"),
                        "--lines-out",
                        alone / ("zlines-" + frame + ".fits")})
                      .code,
                  0);
        for (const char* product : {"frame-", "sky-", "sframe-", "rvtab-", "zlines-"}) {
          EXPECT_TRUE(ReadBytes(alone / (product + frame + ".fits")) == ReadBytes(Output(product + frame)))
              << product << frame;
        }
        joint.push_back(Output("sframe-" + frame));
      }
    }
    ASSERT_EQ(Spex(joint).code, 0);
    for (const std::string exposure : kNumbers) {
      EXPECT_TRUE(ReadBytes(alone / ("rvtab_sframe-b0-" + exposure + ".fits")) ==
                  ReadBytes(Output("rvtab-0-" + exposure)));
      EXPECT_TRUE(ReadBytes(alone / ("zlines_sframe-b0-" + exposure + ".fits")) ==
                  ReadBytes(Output("zlines-0-" + exposure)));
    }
  }

  using Counts = std::map<std::string, int>;
  static inline TempFolder* inputs_ = nullptr;
  TempFolder folder_;
};

TEST_F(NightProducts, AreThoseOfTheirOwnCommands) {
  WriteList();
  const RunResult run = Night(Joined(Products(kAllProducts), {"--device", "cpu"}));
  ASSERT_THAT(run, ExitsWith(0, HasSubstr("4 of 4 frames written")));
  EXPECT_THAT(run.output, HasSubstr("sky of 4 fibres"));
  EXPECT_EQ(States("exposures"), (Counts{{"written", 2}}));
  ExpectAllAsAlone();
}

TEST_F(NightProducts, OfServersAreTheSame) {
  TestServer server({"--device", "cpu", "--allow-root", std::filesystem::temp_directory_path().string()});
  WriteList();
  ASSERT_THAT(Night(Joined(Products(kAllProducts), {"--server", server.address()})), ExitsWith(0));
  ExpectAllAsAlone();
}

TEST_F(NightProducts, AreMadeByExtractIntoAFolderToo) {
  ASSERT_THAT(
      Spex({"-i", Image("b0-00051060"), Image("r0-00051060"), "-p", Psf("b"), Psf("r"), "--output-dir",
            folder_ / "out", "--products", "sky,redshifts,exposure-redshifts", "--device", "cpu"}),
      ExitsWith(0, HasSubstr("Velocities and redshifts over all arms: 1 exposures")));
  for (const char* name : {"sky-b0-00051060", "zlines-r0-00051060", "zlines-0-00051060"}) {
    EXPECT_TRUE(std::filesystem::exists(Output(name))) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(Output("sframe-b0-00051060")));
}

TEST_F(NightProducts, AreMadeAgainWhereTheyAreDamagedOrOfOtherInputs) {
  WriteList();
  const std::vector<std::string> command = Joined(Products(kAllProducts), {"--device", "cpu"});
  ASSERT_EQ(Night(command).code, 0);
  ASSERT_EQ(Night(command).code, 0);
  EXPECT_EQ(States("frames"), (Counts{{"skipped", 4}}));
  EXPECT_EQ(States("exposures"), (Counts{{"skipped", 2}}));
  std::filesystem::remove(Output("sky-b0-00051060"));
  WriteBytes(Output("zlines-0-00051061"), "damaged");
  ASSERT_EQ(Night(command).code, 0);
  EXPECT_EQ(States("frames"), (Counts{{"skipped", 3}, {"written", 1}}));
  EXPECT_EQ(States("exposures"), (Counts{{"skipped", 1}, {"written", 1}}));
  ExpectAllAsAlone();
  // Without the fiberflats all spectra differ.
  ASSERT_EQ(Night({"--products", "sky,sframe,exposure-redshifts", "--device", "cpu"}).code, 0);
  EXPECT_EQ(States("frames"), (Counts{{"written", 4}}));
  EXPECT_EQ(States("exposures"), (Counts{{"written", 2}}));
}

TEST_F(NightProducts, ThatCannotBeMadeHarmNoOtherFileAndAreToldEachTime) {
  WriteList("first_fibre fibre_count", "0 1");  // there is no sky fibre among them
  for (const char* state : {"written", "skipped"}) {
    const RunResult run =
        Night({"--products", "sky,redshifts,exposure-redshifts", "--bundlesize", "1", "--device", "cpu"});
    EXPECT_EQ(run.code, cli::kDifferent) << run.output;
    EXPECT_EQ(States("frames"), (Counts{{state, 4}}));
    const nlohmann::json night = Json();
    EXPECT_THAT(night["frames"][0]["products"]["sky"]["error"].get<std::string>(), HasSubstr("no sky fibre"));
  }
  EXPECT_TRUE(std::filesystem::exists(Output("frame-b0-00051060")));
  EXPECT_FALSE(std::filesystem::exists(Output("sky-b0-00051060")));
}

TEST_F(NightProducts, AreCheckedBeforeTheWork) {
  WriteList();
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& message) {
    EXPECT_THAT(Night(arguments), ExitsWith(cli::kUsage, HasSubstr(message)));
  };
  refused({"--products", "velocities"}, "name them with --velocity");
  refused({"--products", "sky", "--velocity", Input("templates.fits")}, "add --products velocities");
  refused({"--fiberflat", Input("fiberflat-b0.fits")}, "see --products");
  refused({"--products", "flux"}, "--products");
  refused({"--products", "velocities", "--velocity", Image("b0-00051060")}, "preproc-b0-00051060.fits");
  refused({"--products", "sky", "--fiberflat", Input("fiberflat-b0.fits"), "--fiberflat", Input("none.fits")},
          "none.fits");
  EXPECT_THAT(Spex({"-i", Image("b0-00051060"), "-p", Psf("b"), "--output-dir", folder_ / "out", "--sky",
                    folder_ / "sky.fits"}),
              ExitsWith(cli::kUsage, HasSubstr("--products sky,sframe")));
  EXPECT_FALSE(std::filesystem::exists(Output("frame-b0-00051060")));
}

TEST_F(NightProducts, OfAnExposureNeedOneFrameOfEachCamera) {
  WriteList();
  std::ofstream(folder_ / "night.txt", std::ios::app)
      << Image("b0-00051060") << " " << Psf("b") << " " << Output("frame-again") << " 51060 "
      << kWavelengths.at("b") << "\n";
  const RunResult run = Night({"--products", "exposure-redshifts", "--device", "cpu"});
  EXPECT_THAT(run, ExitsWith(cli::kDifferent, HasSubstr("are both of camera b0 of exposure 51060")));
  EXPECT_EQ(States("frames"), (Counts{{"written", 5}}));
  EXPECT_EQ(States("exposures"), (Counts{{"failed", 1}, {"written", 1}}));
  EXPECT_FALSE(std::filesystem::exists(Output("zlines-0-00051060")));
}

TEST_F(NightProducts, OfAnExposureDoNotOutliveTheirInputs) {
  WriteList();
  const auto night = [&](const std::string& templates) {
    return Night(
        {"--products", "exposure-velocities,exposure-redshifts", "--velocity", templates, "--device", "cpu"});
  };
  EXPECT_EQ(night(Input("templates.fits")).code, cli::kOk);
  const std::string blue = folder_ / "blue.fits";
  ASSERT_EQ(Spex({"templates", "make", "--synthetic", "--range", "4600,4900", "-o", blue}).code, 0);
  EXPECT_THAT(night(blue), ExitsWith(cli::kDifferent, HasSubstr("templates: reach from")));
  EXPECT_FALSE(std::filesystem::exists(Output("rvtab-0-00051060")));
  EXPECT_TRUE(std::filesystem::exists(Output("zlines-0-00051060")));
}

TEST_F(NightProducts, OfAnExposureReplaceNoFileOfAFrame) {
  WriteBytes(folder_ / "night.txt", "image psf output wavelength\n" + Image("b0-00051060") + " " + Psf("b") +
                                        " " + Output("0-00051060") + " " + kWavelengths.at("b") + "\n");
  const RunResult run = Night({"--products", "redshifts,exposure-redshifts", "--device", "cpu"});
  EXPECT_THAT(run, ExitsWith(cli::kDifferent, HasSubstr("zlines-0-00051060.fits is a file of")));
  EXPECT_EQ(Night({"--products", "redshifts", "--device", "cpu"}).code, cli::kOk);
  EXPECT_EQ(States("frames"), (Counts{{"skipped", 1}}));
}

TEST_F(NightProducts, AFrameOfAnotherCameraThanTheFiberflatsIsNamed) {
  WriteList();
  const RunResult run =
      Night({"--products", "sky", "--fiberflat", Input("fiberflat-b0.fits"), "--device", "cpu"});
  EXPECT_EQ(run.code, cli::kDifferent) << run.output;
  EXPECT_THAT(run.output, HasSubstr("of which no --fiberflat is"));
  EXPECT_TRUE(std::filesystem::exists(Output("sky-b0-00051060")));
  EXPECT_FALSE(std::filesystem::exists(Output("sky-r0-00051060")));
}

std::vector<std::string> ImagesOf(const std::string& list, const cli::NightPart& part, bool whole_exposures) {
  const auto rows = cli::PartOf(cli::ParseNightList(list).value(), part, whole_exposures).value();
  std::vector<std::string> images;
  for (const cli::NightRow& row : rows) images.push_back(row.image);
  return images;
}

TEST(NightParts, KeepTheCamerasOfAnExposureTogether) {
  const std::string list =
      "image psf output expid\n"
      "b1 p o1 1\nr1 p o2 1\nb2 p o3 2\nr2 p o4 2\nb3 p o5 3\n";
  EXPECT_THAT(ImagesOf(list, {1, 2}, false), ElementsAre("b1", "b2", "b3"));
  EXPECT_THAT(ImagesOf(list, {1, 2}, true), ElementsAre("b1", "r1", "b3"));
  EXPECT_THAT(ImagesOf(list, {2, 2}, true), ElementsAre("b2", "r2"));
  const auto rows = *cli::ParseNightList("image psf output\na p o\nb p q\n");
  EXPECT_THAT(std::string(cli::PartOf(rows, {1, 2}, true).status().message()),
              HasSubstr("line 2: has no expid"));
}

TEST(NightOptions, OfARowReplaceThoseOfTheCommand) {
  const auto tasks = [](const std::string& columns, const std::string& words) {
    const auto rows = *cli::ParseNightList("image psf output " + columns + "\na p o " + words + "\n");
    cli::JobFlags flags;
    flags.spec.bundle_size = 5;
    flags.spec.regularize = 0.5;
    return cli::NightTasks(flags, rows, {});
  };
  const auto good =
      tasks("wavelength bundle_size scores fibermap regularize", "5000,5010,0.5 20 false map.fits -");
  ASSERT_TRUE(good.ok()) << good.status();
  const client::Job& job = (*good)[0].job;
  EXPECT_EQ(job.spec.grid->count, 21);
  EXPECT_EQ(job.spec.bundle_size, 20);
  EXPECT_FALSE(job.spec.scores);
  EXPECT_EQ(job.spec.regularize, 0.5);
  EXPECT_EQ(job.fibermap, "map.fits");
  const auto error = [&](const std::string& column, const std::string& word) {
    return std::string(tasks(column, word).status().message());
  };
  EXPECT_THAT(error("bundle_size", "0"), HasSubstr("line 2: "));
  EXPECT_THAT(error("bundle_size", "0"), HasSubstr("bundle_size is 0, must be"));
  EXPECT_THAT(error("scores", "yes"), HasSubstr("scores is yes, must be true or false"));
  EXPECT_THAT(error("wavelength", "5000"), HasSubstr("line 2: "));
}

}  // namespace
}  // namespace spexd::testing
