#include "tests/support/scenes/dense_oracle.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/extract/formulas.h"
#include "core/model/frame.h"
#include "core/model/reference_spot.h"

namespace spexd::testing {
namespace {

using Real = long double;
using Matrix = Array<Real, 2>;

// Returns the inverse of a symmetric positive definite matrix, by Gauss-Jordan elimination.
Matrix Inverse(Matrix a) {
  const int64_t n = a.shape(0);
  for (int64_t k = 0; k < n; ++k) {
    const Real pivot = 1 / a(k, k);
    a(k, k) = 1;
    for (Real& value : a.Row(k)) value *= pivot;
    for (int64_t i = 0; i < n; ++i) {
      const Real factor = a(i, k);
      if (i == k || factor == 0) continue;
      a(i, k) = 0;
      const Real* from = a.Row(k).data();
      Real* to = a.Row(i).data();
      for (int64_t j = 0; j < n; ++j) to[j] -= factor * from[j];
    }
  }
  return a;
}

// Returns the square root of a symmetric positive definite matrix, by Jacobi rotations. The rows of v are the
// eigenvectors.
Matrix SquareRoot(Matrix a) {
  const int64_t n = a.shape(0);
  Matrix v({n, n});
  for (int64_t i = 0; i < n; ++i) v(i, i) = 1;
  for (int sweep = 0; sweep < 30; ++sweep) {
    Real largest = 0;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const Real relative = std::abs(a(p, q)) / std::sqrt(std::abs(a(p, p) * a(q, q)));
        largest = std::max(largest, relative);
        if (relative < 1e-21L) continue;
        const Real theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
        const Real t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const Real c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (int64_t k = 0; k < n; ++k) {
          const Real kp = a(k, p), kq = a(k, q);
          a(k, p) = c * kp - s * kq;
          a(k, q) = s * kp + c * kq;
        }
        for (int64_t k = 0; k < n; ++k) {
          const Real pk = a(p, k), qk = a(q, k), vp = v(p, k), vq = v(q, k);
          a(p, k) = c * pk - s * qk;
          a(q, k) = s * pk + c * qk;
          v(p, k) = c * vp - s * vq;
          v(q, k) = s * vp + c * vq;
        }
      }
    }
    if (largest < 1e-19L) break;
  }
  Matrix root({n, n});
  for (int64_t k = 0; k < n; ++k) {
    const Real sqrt_eigenvalue = std::sqrt(a(k, k));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) root(i, j) += sqrt_eigenvalue * v(k, i) * v(k, j);
    }
  }
  return root;
}

// A column of A as a list of (pixel, value) on usable pixels.
struct Column {
  std::vector<int64_t> pixel;
  std::vector<Real> value;
};
double CoverageOf(const Column& column) {
  return static_cast<double>(std::accumulate(column.value.begin(), column.value.end(), Real{0}));
}

}  // namespace

OracleResult ExtractDensely(const Psf& psf, const Image& image, const WavelengthGrid& grid, int pad,
                            double regularize, bool fine_grid) {
  const int fibres = psf.fibres, bins = grid.count + 2 * pad;
  const int64_t n = static_cast<int64_t>(fibres) * bins;  // fibre-major here
  std::vector<Column> columns(n);
  Spot spot;
  for (int i = 0; i < fibres; ++i) {
    for (int j = 0; j < bins; ++j) {
      EvaluateSpot(psf, i, grid.first + (j - pad) * grid.step, &spot);
      Column& column = columns[static_cast<int64_t>(i) * bins + j];
      for (int y = 0; y < psf.spot_rows(); ++y) {
        for (int x = 0; x < psf.spot_columns(); ++x) {
          const int row = spot.first_row + y, col = spot.first_column + x;
          if (row < 0 || row >= psf.rows || col < 0 || col >= psf.columns || image.ivar(row, col) <= 0)
            continue;
          column.pixel.push_back(static_cast<int64_t>(row) * psf.columns + col);
          column.value.push_back(spot.values[y * psf.spot_columns() + x]);
        }
      }
    }
  }
  Matrix a({n, n});
  std::vector<Real> b(n, 0), dense(image.pixels.size());
  for (int64_t k = 0; k < n; ++k) {
    std::fill(dense.begin(), dense.end(), 0);
    for (size_t t = 0; t < columns[k].pixel.size(); ++t) {
      const int64_t pixel = columns[k].pixel[t];
      const Real weighted = columns[k].value[t] * image.ivar.flat()[pixel];
      dense[pixel] = weighted;
      b[k] += weighted * image.pixels.flat()[pixel];
    }
    for (int64_t m = 0; m < n; ++m) {
      for (size_t t = 0; t < columns[m].pixel.size(); ++t)
        a(k, m) += dense[columns[m].pixel[t]] * columns[m].value[t];
    }
  }
  for (int64_t first = 0; first < n; first += bins) {
    std::vector<double> with_data;
    for (int64_t k = first; k < first + bins; ++k) {
      if (HasData(CoverageOf(columns[k]))) with_data.push_back(static_cast<double>(a(k, k)));
    }
    const double least = with_data.empty() ? 1 : *std::min_element(with_data.begin(), with_data.end());
    for (int64_t k = first; k < first + bins; ++k) {
      a(k, k) += Prior(CoverageOf(columns[k]), static_cast<double>(a(k, k)), least, regularize, fine_grid);
    }
  }
  const Matrix c = Inverse(a);
  OracleResult result;
  result.flux.Assign({fibres, grid.count});
  result.ivar.Assign({fibres, grid.count});
  result.coverage.Assign({fibres, grid.count});
  result.resolution.Assign({fibres, kResolutionDiagonals, grid.count});
  for (int i = 0; i < fibres; ++i) {
    Matrix block({bins, bins});
    std::vector<Real> f(bins, 0);
    for (int j = 0; j < bins; ++j) {
      for (int k = 0; k < bins; ++k) block(j, k) = c(i * bins + j, i * bins + k);
      for (int64_t k = 0; k < n; ++k) f[j] += c(i * bins + j, k) * b[k];
    }
    const Matrix q = SquareRoot(Inverse(block));
    std::vector<Real> s(bins, 0), qf(bins, 0);
    for (int j = 0; j < bins; ++j) {
      for (int k = 0; k < bins; ++k) {
        s[j] += q(j, k);
        qf[j] += q(j, k) * f[k];
      }
    }
    for (int j = 0; j < grid.count; ++j) {
      const int bin = j + pad;
      result.coverage(i, j) = CoverageOf(columns[static_cast<int64_t>(i) * bins + bin]);
      result.flux(i, j) = static_cast<double>(qf[bin] / s[bin] / grid.step);
      result.ivar(i, j) = static_cast<double>(s[bin] * s[bin] * grid.step * grid.step);
      for (int d = -kResolutionHalfWidth; d <= kResolutionHalfWidth; ++d) {
        result.resolution(i, d + kResolutionHalfWidth, j) = static_cast<double>(q(bin + d, bin) / s[bin + d]);
      }
    }
  }
  return result;
}

}  // namespace spexd::testing
