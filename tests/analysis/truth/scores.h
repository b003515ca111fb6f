// How velocities and redshifts compare to those of the simulated sources.
#ifndef SPEXD_TESTS_ANALYSIS_TRUTH_SCORES_H_
#define SPEXD_TESTS_ANALYSIS_TRUTH_SCORES_H_

#include <vector>

#include "core/model/frame.h"

namespace spexd::testing {

// A redshift is wrong if it is off by more than this, km/s.
inline constexpr double kWrongRedshift = 150;

// Velocities of stars. Those with DCHI2 > 9 are safe. One that is off by more than 50 km/s and 5 errors is
// astray if none of the warnings of bad fits tells of it (RVS_WARN & 167).
struct VelocityScore {
  int stars = 0, astray = 0;
  std::vector<double> pulls;   // of the safe ones: differences from the truth over errors
  std::vector<double> errors;  // of all stars, km/s; NaN where not safe

  // `truth`: the table TRUTH of sources-<camera>0.fits; `found`: RVTAB of its targets, found by TARGETID.
  void Add(const RawTable& truth, const RawTable& found);
  int safe() const { return static_cast<int>(pulls.size()); }
};

// Redshifts of emission-line galaxies. Those with ZWARN 0 are accepted, and secure with GAP > 25, too.
struct RedshiftScore {
  int emitters = 0;
  int accepted = 0, wrong = 0;  // the second: of the first
  int secure = 0, wrong_secure = 0;

  // `found`: ZLINES.
  void Add(const RawTable& truth, const RawTable& found);
};

// REQUIRES: there are values, none of them NaN.
double Mean(const std::vector<double>& values);
double Rms(const std::vector<double>& values);
// Half of the range that contains 68.26 % of the values around their median.
double RobustSigma(std::vector<double> values);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_TRUTH_SCORES_H_
