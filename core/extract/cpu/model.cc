#include "core/extract/cpu/model.h"

namespace spexd::cpu {

void ComputeModel(const BundlePlan& plan, const Spots& spots, const Array<double, 2>& flux, double psferr,
                  BundleImage* image) {
  double* model = image->model();
  const int64_t stride = image->stride();
  for (int j = 0; j < plan.bins; ++j) {
    for (int i = 0; i < plan.fibres.count; ++i) {
      const int row = spots.first_row(i, j), column = spots.first_column(i, j);
      if (!image->Touches(row, column)) continue;
      const double f = flux(i, j);
      const double* spot = spots.Spot(j, i);
      double* to = model + image->Offset(row, column);
      for (int y = 0; y < spots.rows(); ++y, to += stride, spot += spots.columns()) {
        for (int x = 0; x < spots.columns(); ++x) to[x] += f * spot[x];
      }
    }
  }
  double* chi2 = image->chi2();
  for (int64_t k = 0; k < image->size(); ++k) {
    chi2[k] = PixelChiSquare(image->pixels()[k], image->ivar()[k], model[k], psferr);
  }
}

BinQuality JudgeSpot(const BundlePlan& plan, const Spots& spots, const BundleImage& image, const double* chi2,
                     int fibre, int bin, bool weak) {
  double seen = 0, sum = 0;
  const int row = spots.first_row(fibre, bin), column = spots.first_column(fibre, bin);
  if (image.Touches(row, column)) {
    const double* spot = spots.Spot(bin, fibre);
    int64_t at = image.Offset(row, column);
    for (int y = 0; y < spots.rows(); ++y, at += image.stride(), spot += spots.columns()) {
      for (int x = 0; x < spots.columns(); ++x) {
        seen += image.ivar()[at + x] > 0 ? spot[x] : 0.0;
        sum += spot[x] * chi2[at + x];
      }
    }
  }
  return JudgeBin(seen, sum, weak);
}

ModelWindow CutModel(BundleImage* image) {
  ModelWindow window;
  window.first_column = image->first_ccd_column();
  const int columns = image->end_ccd_column() - window.first_column;
  window.pixels.Assign({image->ccd_rows(), columns});
  for (int row = 0; row < image->ccd_rows(); ++row) {
    const double* from = image->model() + image->Offset(row, window.first_column);
    for (int column = 0; column < columns; ++column) {
      window.pixels(row, column) = static_cast<float>(from[column]);
    }
  }
  return window;
}

}  // namespace spexd::cpu
