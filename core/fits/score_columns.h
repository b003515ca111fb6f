// The columns of HDU SCORES, with one value for each fibre.
#ifndef SPEXD_CORE_FITS_SCORE_COLUMNS_H_
#define SPEXD_CORE_FITS_SCORE_COLUMNS_H_

#include <vector>

#include "core/model/frame.h"

namespace spexd {

struct ScoreColumn {
  const char* stem;  // the name without the band that ends it: SUM_RAW_COUNT of SUM_RAW_COUNT_R
  std::vector<double> Scores::* values;
  const char* comment;
  bool optional;  // may be missing in a file, and empty in Scores
};
inline constexpr ScoreColumn kScoreColumns[] = {
    {"SUM_RAW_COUNT", &Scores::sum_counts, "sum of flux in the band's window", false},
    {"MEDIAN_RAW_COUNT", &Scores::median_counts, "median of flux / WAVESTEP in it", false},
    {"MEDIAN_RAW_SNR", &Scores::median_snr, "median of flux sqrt(ivar / WAVESTEP) in it", false},
    {"MEDIAN_CHI2PIX", &Scores::median_chi2pix, "median chi2pix, at most 1 in a good fit", true},
    {"OUTLIERS_CHI2PIX", &Scores::outliers_chi2pix, "fraction above 1.88, good: at most 0.05", true}};

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_SCORE_COLUMNS_H_
