// The columns of velocities and redshifts, for the tables of one frame and of joint products.
#ifndef SPEXD_CORE_PRODUCTS_RESULT_COLUMNS_H_
#define SPEXD_CORE_PRODUCTS_RESULT_COLUMNS_H_

#include <string>
#include <vector>

#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/velocity/velocity.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/products/number_table.h"

namespace spexd {

// Adds columns with a row for each star, named as in rvspecfit's tables. `unit`: that of velocities, km/s in
// the spelling of the table's readers.
struct VelocityColumns {
  const std::vector<StarVelocity>& stars;
  std::string unit;

  void AddVelocity(NumberTable* table) const;  // VRAD, VRAD_ERR, VRAD_ERR_COND
  void AddRotation(NumberTable* table) const;  // VSINI
  // Each of the library's parameters, its name in capitals, and its error, _ERR.
  void AddParameters(const std::vector<std::string>& parameters, NumberTable* table) const;
  // CHISQ_TOT, CHISQ_C_TOT, and the number of bins with data in a column named `bins`.
  void AddChiSquares(const char* bins, NumberTable* table) const;
  void AddAmbiguity(NumberTable* table) const;  // DCHI2, V2
  void AddWarning(NumberTable* table) const;    // RVS_WARN
};

// Adds Z, ZERR, ZWARN, DCHI2, SNR, GAP, Z2 and NLINES.
void AddLineColumns(const std::vector<LineRedshift>& lines, NumberTable* table);

// Writes HDU LINES: the lines that are searched for, with the names of groups in the header.
void WriteLineNames(FitsBuilder* fits);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_RESULT_COLUMNS_H_
