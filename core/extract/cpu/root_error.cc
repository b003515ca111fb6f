#include "core/extract/cpu/root_error.h"

#include "core/extract/formulas.h"

namespace spexd::cpu {

double RootError(const SymmetricBand& precision, const double* flux, const SquareRoot& root) {
  double of_ones = 0, of_flux = 0, root_of_ones = 0, root_of_flux = 0;
  for (int k = 0; k <= precision.most(); ++k) {
    const double* diagonal = precision.Diagonal(k);
    double ones = 0, products = 0;
    for (int j = 0; j + k < precision.size(); ++j) {
      ones += diagonal[j];
      products += diagonal[j] * flux[j] * flux[j + k];
    }
    of_ones += (k == 0 ? 1 : 2) * ones;
    of_flux += (k == 0 ? 1 : 2) * products;
  }
  for (int j = 0; j < precision.size(); ++j) {
    root_of_ones += root.row_sum[j] * root.row_sum[j];
    root_of_flux += root.applied[j] * root.applied[j];
  }
  return LargerError(IdentityError(root_of_ones, of_ones), IdentityError(root_of_flux, of_flux));
}

}  // namespace spexd::cpu
