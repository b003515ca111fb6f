// Compares coadds of exposures that are shifted against each other with dense linear algebra and with a
// truth.
#include "core/analysis/coadd/shifted_coadd.h"

#include <gtest/gtest.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>

#include "core/analysis/coadd/shift_taps.h"
#include "core/analysis/resolution_matrix.h"
#include "tests/analysis/made_up_frame.h"

namespace spexd::testing {
namespace {

const WavelengthGrid kGrid = {kFirstWave, kWaveStep, kFrameBins};

// Returns absorption and emission that the bins can sample, at any position in bins.
double LightAt(double position) {
  double light = 30;
  for (int line = 0; line < 40; ++line) {
    const double x = (position - 9.7 * line - 3.3 * std::sin(line)) / (1.2 + 0.1 * (line % 5));
    light += (line % 3 == 0 ? 60 : -12) * std::exp(-0.5 * x * x);
  }
  return light;
}

// Returns a frame that sees this light shifted.
Frame SeenAt(double velocity, int fibres, double variance) {
  Frame frame = DarkFrame(fibres, variance);
  std::vector<double> light;
  for (int i = 0; i < kFrameBins; ++i) light.push_back(LightAt(PositionInCoadd(kGrid, i, velocity, kGrid)));
  for (int fibre = 0; fibre < fibres; ++fibre) AddLight(light, fibre, &frame);
  return frame;
}

Spectra Coadd(const std::vector<Frame>& frames, const std::vector<double>& velocities, int fibre) {
  std::vector<ShiftedExposure> exposures;
  for (size_t e = 0; e < frames.size(); ++e) {
    exposures.push_back({{&frames[e].spectra, fibre}, frames[e].grid, velocities[e]});
    EXPECT_TRUE(CheckShifted(exposures.back(), kGrid).ok());
  }
  Spectra coadd = DarkFrame(1, 1).spectra;
  CoaddShifted(exposures, kGrid, 0, &coadd);
  return coadd;
}

TEST(ShiftTaps, AreAWindowedSincOfSumOne) {
  const ShiftTaps centre = TapsAt(12);
  EXPECT_EQ(centre.first, 4);
  for (int t = 0; t < kShiftTaps; ++t) EXPECT_NEAR(centre.weight[t], t == kShiftHalf, 1e-15);
  for (const double position : {100.5, 203.31, 300.77}) {
    const ShiftTaps taps = TapsAt(position);
    double sum = 0, value = 0;
    for (int t = 0; t < kShiftTaps; ++t) {
      sum += taps.weight[t];
      value += taps.weight[t] * LightAt(static_cast<double>(taps.first + t));
    }
    EXPECT_NEAR(sum, 1, 1e-14);
    EXPECT_NEAR(value, LightAt(position), 0.02) << position;
  }
}

TEST(ShiftTaps, AreThoseOfTheReferenceForAVelocity) {
  // The values of the reference implementation (numpy), for 17 km/s at bin 1000 of a grid of 0.8 Angstrom
  // from 5760 on.
  const WavelengthGrid grid = {5760, 0.8, 2326};
  const ShiftTaps taps = TapsAt(PositionInCoadd(grid, 1000, 17, grid));
  EXPECT_EQ(taps.first + kShiftHalf, 1000);
  EXPECT_NEAR(taps.weight[0], -0.003841173491499892, 1e-9);
  EXPECT_NEAR(taps.weight[7], 0.5861158308152234, 1e-9);
  EXPECT_NEAR(taps.weight[8], 0.6760161442866742, 1e-9);
  EXPECT_NEAR(taps.weight[16], 0.00130236128201906, 1e-9);
}

using Matrix = Array<double, 2>;

Matrix Product(const Matrix& a, const Matrix& b) {
  Matrix product({a.shape(0), b.shape(1)});
  for (int64_t i = 0; i < a.shape(0); ++i) {
    for (int64_t k = 0; k < a.shape(1); ++k) {
      for (int64_t j = 0; j < b.shape(1); ++j) product(i, j) += a(i, k) * b(k, j);
    }
  }
  return product;
}

// The same by dense matrices: eigenvalues of A, its square root and its inverse. REQUIRES: the exposures have
// no weight where they lack light from outside of the grid.
struct DenseCoadd {
  std::vector<double> flux, ivar;
  Matrix resolution;
};

DenseCoadd CoaddDensely(const std::vector<Frame>& frames, const std::vector<double>& velocities, int fibre) {
  constexpr int64_t n = kFrameBins;
  Matrix a({n, n});
  std::vector<double> b(n, 0.0);
  for (size_t e = 0; e < frames.size(); ++e) {
    const Spectra& spectra = frames[e].spectra;
    Matrix shift({n, n}), resolution({n, n});
    for (int64_t i = 0; i < n; ++i) {
      const ShiftTaps taps = TapsAt(PositionInCoadd(kGrid, i, velocities[e], kGrid));
      for (int t = 0; t < kShiftTaps; ++t) {
        const int64_t j = taps.first + t;
        if (j >= 0 && j < n) shift(i, j) = taps.weight[t];
      }
      for (int64_t j = std::max<int64_t>(0, i - 5); j < std::min(n, i + 6); ++j) {
        resolution(i, j) = spectra.resolution(fibre, i - j + 5, j);
      }
    }
    const Matrix model = Product(resolution, shift);
    for (int64_t i = 0; i < n; ++i) {
      const double weight = spectra.ivar(fibre, i);
      for (int64_t j = std::max<int64_t>(0, i - 40); j < std::min(n, i + 41); ++j) {
        b[j] += model(i, j) * weight * spectra.flux(fibre, i);
        for (int64_t k = std::max<int64_t>(0, i - 40); k < std::min(n, i + 41); ++k) {
          a(j, k) += model(i, j) * weight * model(i, k);
        }
      }
    }
  }
  std::vector<double> diagonal;
  for (int64_t j = 0; j < n; ++j) diagonal.push_back(a(j, j));
  std::erase(diagonal, 0);
  std::nth_element(diagonal.begin(), diagonal.begin() + diagonal.size() / 2, diagonal.end());
  for (int64_t j = 0; j < n; ++j) a(j, j) += 1e-6 * diagonal[diagonal.size() / 2];
  std::vector<double> values(n);
  EXPECT_EQ(LAPACKE_dsyev(LAPACK_ROW_MAJOR, 'V', 'U', n, a.data(), n, values.data()), 0);
  Matrix root({n, n});
  std::vector<double> part(n, 0.0), solution(n, 0.0);
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j = 0; j < n; ++j) part[k] += a(j, k) * b[j];
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < n; ++k) {
      solution[i] += a(i, k) * part[k] / values[k];
      for (int64_t j = 0; j < n; ++j) root(i, j) += a(i, k) * std::sqrt(values[k]) * a(j, k);
    }
  }
  DenseCoadd coadd = {std::vector<double>(n, 0.0), {}, root};
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += root(i, j);
    for (int64_t j = 0; j < n; ++j) {
      coadd.resolution(i, j) = root(i, j) / sum;
      coadd.flux[i] += coadd.resolution(i, j) * solution[j];
    }
    coadd.ivar.push_back(sum * sum);
  }
  return coadd;
}

TEST(ShiftedCoadd, IsThatOfDenseLinearAlgebra) {
  std::mt19937 random(20261123);
  for (const std::vector<double>& velocities : {std::vector<double>{0, 0, 0}, {0, 17, -23}}) {
    std::vector<Frame> frames;
    for (const double velocity : velocities) {
      frames.push_back(SeenAt(velocity, 2, 4));
      Spectra& spectra = frames.back().spectra;
      for (int i = 0; i < kFrameBins; ++i) spectra.ivar(1, i) = 0.3f + 0.001f * static_cast<float>(i);
      AddNoise(&random, &frames.back());
      for (int i = 0; i < kFrameBins; ++i) {
        if (i < 20 || i >= kFrameBins - 20 || i == 200) spectra.ivar(1, i) = spectra.flux(1, i) = 0;
      }
    }
    const Spectra coadd = Coadd(frames, velocities, 1);
    const DenseCoadd dense = CoaddDensely(frames, velocities, 1);
    for (int64_t i = 20; i < kFrameBins - 20; ++i) {
      EXPECT_NEAR(coadd.flux(0, i), dense.flux[i], 1e-5 / std::sqrt(dense.ivar[i]) + 1e-5) << i;
      EXPECT_NEAR(coadd.ivar(0, i), dense.ivar[i], 1e-6 * dense.ivar[i]) << i;
      for (int d = -5; d <= 5; ++d) {
        EXPECT_NEAR(coadd.resolution(0, d + 5, i - d), dense.resolution(i, i - d), 1e-6) << i << " " << d;
      }
    }
  }
}

TEST(ShiftedCoadd, WithoutShiftIsTheExposureItselfAndTheCoaddOnOneGrid) {
  std::mt19937 random(20261124);
  std::vector<Frame> frames;
  for (const double variance : {4.0, 9.0}) {
    frames.push_back(SeenAt(0, 2, variance));
    AddNoise(&random, &frames.back());
  }
  Spectra plain = DarkFrame(1, 1).spectra;
  CoaddExposures({{&frames[0].spectra, 1}, {&frames[1].spectra, 1}}, 0, &plain);
  const Spectra one = Coadd({frames[0]}, {0}, 1), both = Coadd(frames, {0, 0}, 1);
  for (int64_t i = 40; i < kFrameBins - 40; ++i) {
    EXPECT_NEAR(one.flux(0, i), frames[0].spectra.flux(1, i), 5e-3 * 2) << i;
    EXPECT_NEAR(one.ivar(0, i), frames[0].spectra.ivar(1, i), 1e-4) << i;
    EXPECT_NEAR(both.flux(0, i), plain.flux(0, i), 5e-3 * 2) << i;
    EXPECT_NEAR(both.ivar(0, i), plain.ivar(0, i), 1e-4) << i;
    EXPECT_NEAR(both.chi2pix(0, i), plain.chi2pix(0, i), 1e-6) << i;
    for (int k = 0; k < kResolutionDiagonals; ++k) {
      EXPECT_NEAR(both.resolution(0, k, i), plain.resolution(0, k, i), 1e-4);
    }
  }
}

// Compares the coadd with the light as the coadd sees it.
TEST(ShiftedCoadd, OfSimulatedExposuresHasErrorsAsItSaysAndIndependentBins) {
  constexpr int kTargets = 12, kEnd = 20;
  const std::vector<double> velocities = {0, 17, -23};
  std::mt19937 random(20261125);
  std::vector<Frame> clean, noisy;
  for (const double velocity : velocities) {
    clean.push_back(SeenAt(velocity, kTargets, 4));
    noisy.push_back(clean.back());
    AddNoise(&random, &noisy.back());
  }
  std::vector<double> light, pulls;
  for (int i = 0; i < kFrameBins; ++i) light.push_back(LightAt(i));
  double neighbours = 0, pairs = 0, without_noise = 0, most = 0, bias = 0, sum = 0, count = 0;
  for (int t = 0; t < kTargets; ++t) {
    const Spectra coadd = Coadd(noisy, velocities, t), exact = Coadd(clean, velocities, t);
    std::vector<double> seen(kFrameBins);
    ResolutionMatrix(coadd.resolution, 0).Multiply(light.data(), seen.data());
    double before = 0;
    for (int i = kEnd; i < kFrameBins - kEnd; ++i) {
      EXPECT_EQ(coadd.mask(0, i), 0u) << i;
      const double root = std::sqrt(coadd.ivar(0, i)), pull = (coadd.flux(0, i) - seen[i]) * root,
                   error = (exact.flux(0, i) - seen[i]) * root;
      pulls.push_back(pull);
      without_noise += error * error;
      bias += error;
      most = std::max(most, std::abs(error));
      sum += pull, ++count;
      if (i > kEnd) neighbours += before * pull, ++pairs;
      before = pull;
    }
  }
  for (double& pull : pulls) pull = std::abs(pull - sum / count);
  std::nth_element(pulls.begin(), pulls.begin() + pulls.size() / 2, pulls.end());
  const double sigma = 1.4826 * pulls[pulls.size() / 2];
  std::printf(
      "  %g pulls: robust sigma %.4f, mean %+.4f, neighbours %+.4f; without noise %.4f rms, %+.4f mean, %.3f "
      "most\n",
      count, sigma, sum / count, neighbours / pairs, std::sqrt(without_noise / count), bias / count, most);
  EXPECT_NEAR(sigma, 1, 0.05);
  EXPECT_NEAR(sum / count, 0, 0.1);
  EXPECT_NEAR(neighbours / pairs, 0, 0.05);
  EXPECT_LT(std::sqrt(without_noise / count), 0.05);
  EXPECT_LT(most, 0.6);
}

TEST(ShiftedCoadd, MarksBinsWithoutDataAndTakesGridsThatBeginElsewhere) {
  std::vector<Frame> frames = {SeenAt(0, 1, 1), SeenAt(0, 1, 1)};
  for (Frame& frame : frames) {
    for (int i = 150; i < 190; ++i) frame.spectra.mask(0, i) = 4;
  }
  frames[0].spectra.mask(0, 100) = 2;
  frames[1].spectra.flux(0, 101) = std::numeric_limits<float>::infinity();
  Spectra coadd = Coadd(frames, {0, 0}, 0);
  EXPECT_EQ(coadd.mask(0, 100), 0u) << "the other has data";
  EXPECT_EQ(coadd.mask(0, 150), 4u) << "its neighbours tell of it";
  EXPECT_GT(coadd.ivar(0, 150), 0);
  EXPECT_EQ(coadd.mask(0, 170), 4u | kMaskNoData);
  EXPECT_EQ(coadd.ivar(0, 170), 0);
  EXPECT_EQ(coadd.flux(0, 170), 0);
  for (const float value : coadd.flux.flat()) EXPECT_TRUE(std::isfinite(value));

  // The second frame claims that its bins, with the light, are 7 bins further to the red.
  Frame later = SeenAt(0, 1, 1);
  later.grid.first += 7 * kWaveStep;
  Frame reference = SeenAt(0, 1, 1);
  for (int i = 0; i < kFrameBins; ++i) {
    if (i + 7 < kFrameBins) later.spectra.flux(0, i) = reference.spectra.flux(0, i + 7);
  }
  coadd = Coadd({reference, later}, {0, 0}, 0);
  for (int i = 40; i < kFrameBins - 40; ++i) {
    EXPECT_NEAR(coadd.flux(0, i), reference.spectra.flux(0, i), 0.01) << i;
    EXPECT_NEAR(coadd.ivar(0, i), 2, 1e-3) << i;
  }

  for (uint32_t& mask : reference.spectra.mask.flat()) mask = 1;
  coadd = Coadd({reference}, {0}, 0);
  for (int i = 0; i < kFrameBins; ++i) {
    EXPECT_EQ(coadd.ivar(0, i), 0);
    EXPECT_EQ(coadd.mask(0, i), 1u | kMaskNoData);
    EXPECT_EQ(coadd.resolution(0, kResolutionHalfWidth, i), 1);
  }
}

TEST(ShiftedCoadd, RefusesWhatCannotBeAddedWithItsValueAndLimit) {
  Frame frame = DarkFrame(1, 1);
  const auto message = [&frame](const WavelengthGrid& grid, double velocity) {
    return std::string(CheckShifted({{&frame.spectra, 0}, grid, velocity}, kGrid).message());
  };
  EXPECT_EQ(message(kGrid, 300), "");
  EXPECT_EQ(message(kGrid, 301), "velocity: 301 km/s, must be -300 to 300");
  EXPECT_EQ(message(kGrid, std::nan("")), "velocity: nan km/s, must be -300 to 300");
  EXPECT_EQ(message({kFirstWave, 0.6, 533}, 0),
            "wavelengths: the step is 0.6 Angstrom, must be 0.8 as the coadd's");
  EXPECT_EQ(message({7000, kWaveStep, 400}, 0),
            "wavelengths: 7000 to 7319.2 Angstrom have no bin in common with the coadd's 6000 to 6319.2");
  frame.spectra.resolution.Assign({1, 9, kFrameBins});
  EXPECT_EQ(message(kGrid, 0), "resolution: has 9 diagonals, must have 11");
}

}  // namespace
}  // namespace spexd::testing
