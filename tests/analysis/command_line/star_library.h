// Small libraries of star templates, valid ones and ones that programs must refuse.
#ifndef SPEXD_TESTS_ANALYSIS_COMMAND_LINE_STAR_LIBRARY_H_
#define SPEXD_TESTS_ANALYSIS_COMMAND_LINE_STAR_LIBRARY_H_

#include <string>

namespace spexd::testing {

// Two temperatures at two gravities: continua with a sine, on samples of 10 km/s.
struct StarLibrary {
  double first = 5600, last = 7900;  // Angstrom; far wider than a short frame
  double phase_per_sample = 0.05;    // of the sine; 3 is above the band limit of 0.47 cycles per sample
  bool hole = false;                 // the last node of the grid is missing
  bool nan = false;                  // one value is not finite
};
void WriteStarLibrary(const StarLibrary& library, const std::string& path);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_COMMAND_LINE_STAR_LIBRARY_H_
