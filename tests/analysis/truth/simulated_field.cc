#include "tests/analysis/truth/simulated_field.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

std::string NameOf(const char* kind, const FieldCamera& camera) {
  return absl::StrCat(kind, "-", camera.letter, "0.fits");
}

}  // namespace

RawTable SimulatedField::Table(const std::string& file, const std::string& hdu) const {
  return ReadTableHdu(Source::FromFile(Path(file)).value(), hdu).value();
}

RawTable SimulatedField::Truth(const FieldCamera& camera) const {
  return Table(NameOf("sources", camera), "TRUTH");
}

std::string SimulatedField::Run(const std::vector<std::string>& arguments) const {
  const RunResult run = Spex(arguments);
  EXPECT_EQ(run.code, 0) << run.output;
  return run.output;
}

void SimulatedField::Simulate(const FieldCamera& camera, int seed,
                              const std::vector<std::string>& scene) const {
  Run(Joined({"simulate", "--camera", camera.letter, "--stars", Path("templates.fits"), "--seed",
              absl::StrCat(seed), "-w", camera.wavelength, "--out-dir", folder()},
             scene));
}

void SimulatedField::Extract(const FieldCamera& camera, const std::vector<std::string>& products) const {
  Run(Joined({"-i", Path(NameOf("preproc", camera)), "-p", Path(NameOf("psf", camera)), "-w",
              camera.wavelength, "-o", Path(NameOf("frame", camera)), "--device", "cpu"},
             products));
}

}  // namespace spexd::testing
