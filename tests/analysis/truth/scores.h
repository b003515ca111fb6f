// Scores of velocities and redshifts against those of the simulated sources.
#ifndef SPEXD_TESTS_ANALYSIS_TRUTH_SCORES_H_
#define SPEXD_TESTS_ANALYSIS_TRUTH_SCORES_H_

#include <vector>

#include "core/model/frame.h"

namespace spexd::testing {

// A redshift is wrong if its error exceeds this, km/s.
inline constexpr double kWrongRedshift = 150;

// Velocities of stars. Those with DCHI2 > 9 are safe. A velocity with an error of more than 50 km/s and 5
// sigma is astray if no warning of a bad fit is set (RVS_WARN & 167).
struct VelocityScore {
  int stars = 0, astray = 0;
  std::vector<double> pulls;   // of the safe stars: differences from the truth over errors
  std::vector<double> errors;  // of all stars, km/s; NaN where not safe

  // `truth`: the table TRUTH of sources-<camera>0.fits; `found`: RVTAB of its targets, matched by TARGETID.
  void Add(const RawTable& truth, const RawTable& found);
  int safe() const { return static_cast<int>(pulls.size()); }
};

// Redshifts of emission-line galaxies. Those with ZWARN 0 are accepted; those that also have GAP > 25 are
// secure.
struct RedshiftScore {
  int emitters = 0;
  int accepted = 0, wrong = 0;  // `wrong`: among the accepted
  int secure = 0, wrong_secure = 0;

  // `found`: ZLINES.
  void Add(const RawTable& truth, const RawTable& found);
};

// REQUIRES: there are values, and none is NaN.
double Mean(const std::vector<double>& values);
double Rms(const std::vector<double>& values);
// Returns half of the range around the median that contains 68.26 % of the values.
double RobustSigma(std::vector<double> values);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_TRUTH_SCORES_H_
