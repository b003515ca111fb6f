// Separable spots: sums of Gauss-Hermite functions about one or two cores, and a tail
// (gauss_hermite_formula.h). Their parameters are Legendre series in wavelength.
#ifndef SPEXD_CORE_MODEL_SPOTS_GAUSS_HERMITE_H_
#define SPEXD_CORE_MODEL_SPOTS_GAUSS_HERMITE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/model/spots/stamp.h"
#include "core/model/traces/traces.h"

namespace spexd {

inline constexpr int kMaxHermiteDegree = 15;
inline constexpr int kMaxTwoCoreDegree = 7;  // limit where there are two cores

// The coefficient of He_degree_x(u) He_degree_y(v). A core has at most one for each pair of degrees.
struct GaussHermiteTerm {
  int degree_x = 0;
  int degree_y = 0;
  LegendreTable amplitude;
};

struct GaussHermiteCore {
  int max_degree_x = 0;
  int max_degree_y = 0;
  LegendreTable sigma_x, sigma_y;       // pixels
  std::vector<GaussHermiteTerm> terms;  // terms that are not zero everywhere
};

struct GaussHermiteSpots {
  Stamp stamp;
  std::vector<GaussHermiteCore> cores = std::vector<GaussHermiteCore>(1);  // one or two
  // The distance, in sigma, from which on the first core is 0. Empty: no cutoff. Only spots of two cores have
  // one.
  LegendreTable cutoff;
  // Tail: amplitude r^2 / (core^2 + r^2)^(1 + index / 2); all empty if there is none.
  LegendreTable tail_amplitude, tail_core, tail_index, tail_scale_x, tail_scale_y;

  GaussHermiteCore& core() { return cores.front(); }
  const GaussHermiteCore& core() const { return cores.front(); }
  bool has_tail() const { return !tail_amplitude.empty(); }

  // The members that every spot model has (spot_model.h).
  const Stamp& GetStamp() const { return stamp; }
  int64_t Bytes() const;
  bool IsComplete() const;
  WaveRange Domain() const;
  absl::Status CheckOutline(int fibres) const;
  absl::Status Check(int fibres) const;
  absl::Status CheckOn(WaveRange range) const;
  double Flops() const;
  double SigmaY(int fibre, double wave) const;
  void Evaluate(int fibre, double wave, const SpotPosition& x, const SpotPosition& y,
                absl::Span<double> values) const;
  std::vector<LegendreTable*> Tables();
  void EmptyFibre(int fibre);
  bool IsEmptyFibre(int fibre) const;
};

// The PARAM of a term in a file: "GH-0-2", or "GH2-0-2" for the second core.
std::string NameOf(const GaussHermiteTerm& term, int core = 0);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_SPOTS_GAUSS_HERMITE_H_
