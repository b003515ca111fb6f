// Fast evaluation of many spots: EvaluateSpot's values, to rounding, in a tenth of its time.
#ifndef SPEXD_CORE_SIMULATE_SPOT_MAKER_H_
#define SPEXD_CORE_SIMULATE_SPOT_MAKER_H_

#include <vector>

#include "core/model/psf.h"
#include "core/model/reference_spot.h"

namespace spexd {

// Makes spots of PSFs made by MakePsf. REQUIRES: all tables on one domain, positive widths, no tail. `psf`
// must outlive it. Not safe to use from several threads.
class SpotMaker {
 public:
  explicit SpotMaker(const Psf& psf);

  void Make(int fibre, double wave, Spot* spot);

 private:
  double Value(const LegendreTable& table, int fibre) const;

  const Psf& psf_;
  std::vector<double> basis_;      // Legendre polynomials at the wavelength
  std::vector<double> across_;     // pixel integrals along a row [x degree, column]
  std::vector<double> along_;      // pixel integrals along a column [y degree, row]
  std::vector<double> amplitude_;  // [x degree, y degree]
};

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_SPOT_MAKER_H_
