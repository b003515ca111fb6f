// spex analyse --server as a user runs it, on a server that stands in for spexd.
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/fits/hdu/fits_builder.h"
#include "tests/client/support/stand_in_analysis.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

constexpr char kBlueJob[] = "0123456789abcdef0123456789abcdef",
               kRedJob[] = "fedcba9876543210fedcba9876543210";

std::string AsJob(const std::string& id) { return "job:" + id; }

std::vector<v1::ExtractEvent> EventsOfAllFiles() {
  return {AnalysisAccepted(),
          FilePartEvent(v1::ANALYSIS_FILE_VELOCITIES, 0, "VELOCITIES"),
          FilePartEvent(v1::ANALYSIS_FILE_MODELS, 0, "THE MODELS"),
          FilePartEvent(v1::ANALYSIS_FILE_REDSHIFTS, 0, "REDSH"),
          FilePartEvent(v1::ANALYSIS_FILE_REDSHIFTS, 5, "IFTS."),
          AnalysisSummary()};
}

std::vector<v1::ExtractEvent> EventsOfRedshifts() {
  return {AnalysisAccepted(), FilePartEvent(v1::ANALYSIS_FILE_REDSHIFTS, 0, "REDSHIFTS."), AnalysisSummary()};
}

class AnalyseOnServer : public ::testing::Test {
 protected:
  void Start(std::vector<v1::ExtractEvent> events) {
    server_ = std::make_unique<StandInAnalysis>(std::move(events));
  }
  RunResult Run(const std::vector<std::string>& arguments) const {
    return Spex(Joined(Joined({"analyse"}, arguments), {"--server", server_->address()}));
  }
  std::string Out(const std::string& name) const { return folder_ / "out/" + name; }
  // Writes a file with one image of 2 x 3 pixels, of a camera in exposure 51060.
  std::string WriteImage(const std::string& name, const std::string& hdu,
                         const std::string& camera = "b0") const {
    FitsBuilder fits(1 << 16);
    fits.BeginImage(hdu, FLOAT_IMG, {2, 3});
    fits.Text("CAMERA", camera, "");
    fits.Integer("EXPID", 51060, "");
    const std::vector<float> ones(6, 1);
    fits.Pixels(absl::MakeConstSpan(ones));
    EXPECT_TRUE(fits.Write(folder_ / name).ok());
    return folder_ / name;
  }
  std::string WriteFrameOf(const std::string& camera) const {
    return WriteImage("frame-" + camera + ".fits", "FLUX", camera);
  }
  std::string WriteFlatOf(const std::string& camera) const {
    return WriteImage("flat-" + camera + ".fits", "FIBERFLAT", camera);
  }

  TempFolder folder_;
  std::unique_ptr<StandInAnalysis> server_;
};

TEST_F(AnalyseOnServer, WritesTheFilesOfDetachedJobsNamedByTheFirst) {
  Start(EventsOfAllFiles());
  const std::string name = std::string(kBlueJob) + ".fits";
  EXPECT_THAT(Run({AsJob(kBlueJob), AsJob(kRedJob), "--velocity", "sha256:abc", "--lines", "--output-dir",
                   folder_ / "out", "--priority", "3", "--fiberflat", "sha256:def"}),
              ExitsWith(0, Out("zlines_" + name) + ": redshifts of 6 targets, 2 accepted\n" +
                               Out("rvtab_" + name) + ": velocities of 6 targets, 2 without a warning\n"));
  EXPECT_EQ(ReadBytes(Out("rvtab_" + name)), "VELOCITIES");
  EXPECT_EQ(ReadBytes(Out("rvmod_" + name)), "THE MODELS");
  EXPECT_EQ(ReadBytes(Out("zlines_" + name)), "REDSHIFTS.");
  const v1::AnalysisHeader header = server_->header();
  ASSERT_EQ(header.spectra_size(), 2);
  EXPECT_EQ(header.spectra(0).job_id(), kBlueJob);
  EXPECT_EQ(header.spectra(1).job_id(), kRedJob);
  EXPECT_EQ(header.spectra(1).fiberflat().content_hash(), "def");
  EXPECT_EQ(header.templates().content_hash(), "abc");
  EXPECT_TRUE(header.models() && header.lines());
  EXPECT_EQ(header.priority(), 3);
}

TEST_F(AnalyseOnServer, SendsTheFramesOfAnExposureWithTheFiberflatsOfTheirCameras) {
  Start(EventsOfRedshifts());
  const std::string b = WriteFrameOf("b0"), r = WriteFrameOf("r0"), of_r = WriteFlatOf("r0"),
                    of_b = WriteFlatOf("b0"), of_z = WriteFlatOf("z0");
  EXPECT_THAT(Run({r, b, "--lines", "--lines-out", folder_ / "z.fits", "--upload", "--fiberflat", of_r,
                   "--fiberflat", of_b, "--fiberflat", of_z}),
              ExitsWith(0, HasSubstr("z.fits: redshifts of 6 targets")));
  const StandInAnalysis::Uploads expected = {{{v1::INPUT_SPECTRA, 0}, ReadBytes(b)},
                                             {{v1::INPUT_SPECTRA, 1}, ReadBytes(r)},
                                             {{v1::INPUT_FIBERFLAT, 0}, ReadBytes(of_b)},
                                             {{v1::INPUT_FIBERFLAT, 1}, ReadBytes(of_r)}};
  EXPECT_TRUE(server_->uploads() == expected);
  EXPECT_EQ(ReadBytes(folder_ / "z.fits"), "REDSHIFTS.");
}

TEST_F(AnalyseOnServer, NamesFilesAndWhatIsAskedOfThem) {
  Start(EventsOfRedshifts());
  const std::string coadd = WriteImage("coadd-1.fits", "B_FLUX"),
                    redrock = WriteImage("redrock-1.fits", "REDSHIFTS");
  EXPECT_THAT(Run({coadd, "--lines", "--output-dir", folder_ / "out", "--zbest-select", "--targetid", "5,7",
                   "--minsn", "2", "--fitarm", "b", "--npoly", "5", "--exclude", "none", "--per-target"}),
              ExitsWith(0));
  const v1::AnalysisHeader header = server_->header();
  EXPECT_EQ(header.spectra(0).path(), coadd);
  EXPECT_EQ(header.redrock().path(), redrock);
  EXPECT_TRUE(header.rows().stars_by_redrock());
  EXPECT_THAT(header.rows().target_ids().ids(), ElementsAre(5, 7));
  EXPECT_EQ(header.rows().min_snr(), 2);
  EXPECT_THAT(header.arms(), ElementsAre("B"));
  EXPECT_EQ(header.coefficients(), 5u);
  EXPECT_TRUE(header.has_exclude() && header.exclude().first().empty());
  EXPECT_TRUE(header.per_target());
  EXPECT_TRUE(server_->uploads().empty());
}

TEST_F(AnalyseOnServer, NamesAProductThatFailedAndWritesTheOthers) {
  const auto failed = [](v1::AnalysisFile file) {
    return FailedFileEvent(file, absl::StatusCode::kInvalidArgument, "templates: end at 5000 Angstrom");
  };
  Start({AnalysisAccepted(), failed(v1::ANALYSIS_FILE_VELOCITIES), failed(v1::ANALYSIS_FILE_MODELS),
         FilePartEvent(v1::ANALYSIS_FILE_REDSHIFTS, 0, "REDSHIFTS."), AnalysisSummary()});
  const std::string coadd = WriteImage("coadd-1.fits", "B_FLUX"), status = folder_ / "status.txt";
  EXPECT_THAT(Run({coadd, "--velocity", "sha256:abc", "--lines", "--output-dir", folder_ / "out", "--quiet",
                   "--process-status-file", status}),
              ExitsWith(1, "spex: " + coadd + ": templates: end at 5000 Angstrom\n"));
  EXPECT_EQ(ReadBytes(Out("zlines_coadd-1.fits")), "REDSHIFTS.");
  EXPECT_FALSE(std::filesystem::exists(Out("rvtab_coadd-1.fits")));
  EXPECT_THAT(ReadBytes(status), StartsWith(coadd + " FAILURE 0 "));
}

TEST_F(AnalyseOnServer, SaysWhichFlagsChangeNothing) {
  Start(EventsOfRedshifts());
  const std::string coadd = WriteImage("coadd-1.fits", "B_FLUX");
  EXPECT_THAT(Run({coadd, "--lines-out", folder_ / "z.fits", "--device", "cuda", "--devices", "1"}),
              ExitsWith(0, HasSubstr("spex: without effect here: --device, --devices\n")));
}

TEST_F(AnalyseOnServer, RefusesWhatServersDoNotMake) {
  Start(EventsOfRedshifts());
  const std::vector<std::string> to_folder = {"--lines", "--output-dir", folder_ / "out"};
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& message) {
    EXPECT_THAT(Run(arguments), ExitsWith(2, HasSubstr(message)));
  };
  refused(Joined({"job:../x"}, to_folder), "is no id of a job; spex submit prints it");
  refused(Joined({"job:"}, to_folder), "is no id of a job");
  refused({AsJob(kBlueJob), "--sky", folder_ / "sky.fits"}, "--sky and --sframe: are made of a single frame");
  EXPECT_THAT(Spex(Joined({"analyse", AsJob(kBlueJob), "--server", ""}, to_folder)),
              ExitsWith(2, HasSubstr("detached jobs are on servers; give --server")));
  EXPECT_THAT(folder_.Entries(), IsEmpty());
  const std::string frame = WriteFrameOf("b0");
  refused({frame, "--sky", folder_ / "sky.fits"}, "spex extract --server with --sky");
  refused(Joined({AsJob(kBlueJob), "--fiberflat", "sha256:abc", "--fiberflat", "sha256:def"}, to_folder),
          "its camera is not known here");
}

TEST_F(AnalyseOnServer, ExitsWith3WhereNoServerListens) {
  const std::string coadd = WriteImage("coadd-1.fits", "B_FLUX");
  EXPECT_THAT(Spex({"analyse", coadd, "--lines-out", folder_ / "z.fits", "--server",
                    "unix:" + folder_.path() + "/none"}),
              ExitsWith(3, AllOf(HasSubstr("trying again"), HasSubstr("there is no such socket"))));
  EXPECT_THAT(folder_.Entries(), ElementsAre("coadd-1.fits"));
}

}  // namespace
}  // namespace spexd::testing
