// One field that three cameras see, from simulated sources to joint velocities and redshifts, with the
// programs as users run them. SPEXD_TRUTH_FIELDS=4 tests four fields of 230 fibres over the whole cameras
// instead of a small one: 520 stars and 320 emitters.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/array.h"
#include "core/base/median.h"
#include "core/products/synthetic_templates.h"
#include "core/products/template_file.h"
#include "tests/analysis/truth/scores.h"
#include "tests/analysis/truth/simulated_field.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

constexpr int kLeastAccepted = 42;  // of the redshifts of a field's 80 emitters, from all cameras together

// The amount of test data, and its wavelengths.
struct FieldScale {
  int first_seed = 2, fields = 1;
  bool full = false;
  std::vector<std::string> scene = {"--fibres", "16",         "--rows", "1600",    "--sky-fibres",
                                    "3",        "--emitters", "6",      "--holes", "0"};
  std::vector<FieldCamera> cameras = {{"b", "4293,5217,0.8"}, {"r", "6225,7065,0.8"}, {"z", "8190,9150,0.8"}};
};

FieldScale FieldScaleOf(const char* fields) {
  FieldScale scale;
  if (fields == nullptr) return scale;
  EXPECT_TRUE(absl::SimpleAtoi(fields, &scale.fields) && scale.fields > 0)
      << "SPEXD_TRUTH_FIELDS: " << fields;
  scale.first_seed = 1;
  scale.full = true;
  scale.scene = {"--fibres", "230", "--sky-fibres", "20", "--emitters", "80"};
  scale.cameras = {{"b", "3600,5800,0.8"}, {"r", "5760,7620,0.8"}, {"z", "7520,9824,0.8"}};
  return scale;
}

// The scores of one camera or of all, and how many of a field's 130 stars must be safe.
struct ArmScore {
  std::string name;
  int least_safe;
  VelocityScore velocities = {};
  RedshiftScore redshifts = {};
};

class JointTruthTest : public ::testing::Test {
 protected:
  // Makes the synthetic library; for the small field, with every second value of its parameters in the range
  // of the small field's cameras. These 12 templates take a fifth of the time to read.
  void MakeTemplates(const FieldScale& scale) const;
  void MakeFrames(const FieldScale& scale, int seed) const;
  // Analyses frames together and adds the results to a score.
  void Analyse(const FieldScale& scale, const std::vector<std::string>& letters, ArmScore* score) const;

  SimulatedField field_;
};

void JointTruthTest::MakeTemplates(const FieldScale& scale) const {
  if (scale.full) {
    field_.Run({"templates", "make", "--synthetic", "-o", field_.Path("templates.fits")});
    return;
  }
  const TemplateLibrary whole = MakeSyntheticTemplates({.first = 4270, .last = 9170}).value();
  std::vector<std::vector<double>> nodes;
  std::vector<int64_t> rows;
  const std::vector<double>&teff = whole.axes[0], &logg = whole.axes[1], &feh = whole.axes[2];
  for (size_t i = 0; i < teff.size(); i += 2) {
    for (size_t j = 0; j < logg.size(); j += 2) {
      for (size_t k = 0; k < feh.size(); k += 2) {
        nodes.push_back({teff[i], logg[j], feh[k]});
        rows.push_back(static_cast<int64_t>((i * logg.size() + j) * feh.size() + k));
      }
    }
  }
  Array<float, 2> flux({static_cast<int64_t>(rows.size()), whole.samples()});
  for (size_t row = 0; row < rows.size(); ++row) {
    for (int64_t k = 0; k < whole.samples(); ++k)
      flux(static_cast<int64_t>(row), k) = static_cast<float>(whole.flux(rows[row], k));
  }
  const TemplateLibrary small =
      MakeTemplateLibrary(whole.first_log_wave, whole.step, whole.names, nodes, flux).value();
  EXPECT_THAT(WriteTemplates(small, field_.Path("templates.fits"), SyntheticRemarks()), IsOk());
}

void JointTruthTest::MakeFrames(const FieldScale& scale, int seed) const {
  for (const FieldCamera& camera : scale.cameras) {
    field_.Simulate(camera, seed, scale.scene);
    field_.Extract(camera, {"--fiberflat", field_.Path(absl::StrCat("fiberflat-", camera.letter, "0.fits")),
                            "--sframe", field_.Path(absl::StrCat("sframe-", camera.letter, "0.fits"))});
  }
}

void JointTruthTest::Analyse(const FieldScale& scale, const std::vector<std::string>& letters,
                             ArmScore* score) const {
  std::vector<std::string> arguments = {"analyse"};
  for (const std::string& letter : letters)
    arguments.push_back(field_.Path(absl::StrCat("sframe-", letter, "0.fits")));
  field_.Run(Joined(arguments, {"--velocity", field_.Path("templates.fits"), "--lines", "--device", "cpu",
                                "--output-dir", field_.Path(score->name)}));
  const std::string bluest = absl::StrCat("sframe-", letters.front(), "0.fits");
  const RawTable truth = field_.Truth(scale.cameras[0]);
  score->velocities.Add(truth, field_.Table(absl::StrCat(score->name, "/rvtab_", bluest), "RVTAB"));
  score->redshifts.Add(truth, field_.Table(absl::StrCat(score->name, "/zlines_", bluest), "ZLINES"));
}

// Returns the errors of means over all arms, weighted by inverse variances; NaN for stars that are not safe
// in each arm.
std::vector<double> ErrorsOfMeans(const std::vector<ArmScore>& arms) {
  std::vector<double> errors;
  for (size_t star = 0; star < arms[0].velocities.errors.size(); ++star) {
    double weight = 0;
    for (const ArmScore& arm : arms) weight += std::pow(arm.velocities.errors[star], -2);
    errors.push_back(1 / std::sqrt(weight));
  }
  return errors;
}

// Returns the median ratio of errors to those of joint fits, for stars with a mean over all arms.
double RelativeError(const std::vector<double>& errors, const std::vector<double>& joint,
                     const std::vector<double>& of_means) {
  std::vector<double> ratios;
  for (size_t star = 0; star < joint.size(); ++star) {
    if (!std::isnan(of_means[star]) && !std::isnan(joint[star])) ratios.push_back(errors[star] / joint[star]);
  }
  return Median(ratios);
}

void Print(const ArmScore& arm, double relative_error) {
  const VelocityScore& v = arm.velocities;
  std::printf("%-5s %3d of %3d %7d %+12.3f %6.3f %6.3f %6.2f %13d of %3d %6d\n", arm.name.c_str(), v.safe(),
              v.stars, v.astray, Mean(v.pulls), Rms(v.pulls), RobustSigma(v.pulls), relative_error,
              arm.redshifts.accepted, arm.redshifts.emitters, arm.redshifts.wrong);
}

TEST_F(JointTruthTest, CamerasTogetherFindMoreOfAFieldsSourcesThanEachAlone) {
  const FieldScale scale = FieldScaleOf(std::getenv("SPEXD_TRUTH_FIELDS"));
  MakeTemplates(scale);
  std::vector<ArmScore> arms = {{"b", 118}, {"r", 107}, {"z", 110}};
  ArmScore joint = {"joint", 125};
  for (int field = 0; field < scale.fields; ++field) {
    MakeFrames(scale, scale.first_seed + field);
    for (ArmScore& arm : arms) Analyse(scale, {arm.name}, &arm);
    Analyse(scale, {"b", "r", "z"}, &joint);
    if (HasFailure()) return;
  }
  std::puts("arm   safe stars  astray  pulls: mean, rms, robust  error  accepted redshifts  wrong");
  for (const ArmScore& arm : arms) ASSERT_EQ(arm.velocities.stars, joint.velocities.stars);
  const std::vector<double> errors = joint.velocities.errors, of_means = ErrorsOfMeans(arms);
  for (const ArmScore& arm : arms) {
    SCOPED_TRACE(arm.name);
    const double relative_error = RelativeError(arm.velocities.errors, errors, of_means);
    Print(arm, relative_error);
    EXPECT_GT(relative_error, scale.full ? 1.4 : 1);
    EXPECT_GE(joint.velocities.safe(), arm.velocities.safe());
    EXPECT_GT(joint.redshifts.accepted, (scale.full ? 1.5 : 1) * arm.redshifts.accepted);
  }
  Print(joint, 1);
  const double error_of_means = RelativeError(of_means, errors, of_means);
  std::printf("errors of the arms' weighted means over those of joint fits: %.3f\n", error_of_means);
  EXPECT_NEAR(error_of_means, 1, scale.full ? 0.01 : 0.1);
  EXPECT_NEAR(Rms(joint.velocities.pulls), 1, scale.full ? 0.05 : 0.5);
  EXPECT_GE(joint.redshifts.accepted, scale.full ? scale.fields * kLeastAccepted : 1);
  arms.push_back(std::move(joint));
  for (const ArmScore& arm : arms) {
    SCOPED_TRACE(arm.name);
    EXPECT_EQ(arm.velocities.astray, 0);
    // A single line in one camera may be mistaken for another line, with a GAP that is not secure.
    EXPECT_LE(arm.redshifts.wrong, arm.name == "joint" ? 0 : arm.redshifts.accepted / 50);
    EXPECT_EQ(arm.redshifts.wrong_secure, 0);
    if (scale.full) {
      EXPECT_GE(arm.velocities.safe(), scale.fields * arm.least_safe);
      EXPECT_NEAR(Rms(arm.velocities.pulls), 1, 0.1);
    }
  }
}

}  // namespace
}  // namespace spexd::testing
