// The reference's joint products, and their inputs.
#ifndef SPEXD_TESTS_ANALYSIS_JOINT_JOINT_GOLDEN_H_
#define SPEXD_TESTS_ANALYSIS_JOINT_JOINT_GOLDEN_H_

#include <string>
#include <vector>

#include "core/analysis/analyser/analyser.h"
#include "core/analysis/velocity/template_library.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/source.h"
#include "core/fits/hdu/table.h"
#include "core/model/target_spectra.h"
#include "core/products/joint/joint_analysis.h"

namespace spexd::testing {

// Returns a file of the goldens' folder. REQUIRES: it can be read.
Source OpenArms(const std::string& folder, const std::string& file);

// A table of the reference. Columns may have several numbers per row.
class ReferenceTable {
 public:
  ReferenceTable(const std::string& folder, const std::string& hdu);
  int rows() const { return static_cast<int>(view_.rows()); }
  std::vector<double> Values(const char* name, int row) const;
  double Value(const char* name, int row) const { return Values(name, row)[0]; }

 private:
  const Source source_;
  const FitsFile file_;
  const TableView view_;
};

struct GoldenUnit {
  std::string table;  // in expected.fits
  TargetSpectra spectra;
  bool per_target = false;
};
std::vector<GoldenUnit> ReadGoldenUnits(const std::string& folder);

// Returns redshifts, and velocities if there is a library, of the rows that are selected by default.
// `analyser`: null for processors.
JointProducts Analysed(const GoldenUnit& unit, const TemplateLibrary* library, int threads,
                       Analyser* analyser = nullptr);

// Tolerances of safe velocities relative to the reference's.
struct JointTolerances {
  double velocity, error;    // in units of the error; relative
  double chi2, unsafe_chi2;  // of chi-square, and the excess allowed in other rows
  double continuum_chi2;     // absolute, in addition to 1e-9 of the value
};
// Expects the reference's velocities of a unit.
void ExpectGoldenJointVelocities(const std::string& folder, const GoldenUnit& unit,
                                 const JointProducts& products, const JointTolerances& tolerances);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_JOINT_JOINT_GOLDEN_H_
