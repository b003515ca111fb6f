#include "tests/service/support/inputs.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "core/fits/writers.h"

namespace spexd::testing {
namespace {

LegendreTable Constant(double value) {
  LegendreTable table{Array<double, 2>({kFibres, 2}, 0), kWaveMin, kWaveMax};
  for (int i = 0; i < kFibres; ++i) table.coeff(i, 0) = value;
  return table;
}

}  // namespace

Psf SmallPsf(int variant) {
  Psf psf;
  psf.rows = kRows;
  psf.columns = kColumns;
  psf.fibres = kFibres;
  GaussHermite(psf).stamp = {CentredAxis(3), CentredAxis(3)};
  psf.wave_min = kWaveMin;
  psf.wave_max = kWaveMax;
  psf.traces.x = Constant(0);
  psf.traces.y = Constant(kRows / 2.0);
  for (int i = 0; i < kFibres; ++i) {
    psf.traces.x.coeff(i, 0) = 4 + 7 * i;
    psf.traces.y.coeff(i, 1) = kRows / 2.0 - 4;
  }
  GaussHermiteCore& core = GaussHermite(psf).core();
  core.sigma_x = Constant(1 + 0.01 * variant);
  core.sigma_y = Constant(1);
  core.terms.push_back({0, 0, Constant(1)});
  return psf;
}

void WritePsfFile(const std::string& path, int variant) {
  const absl::Status status = WritePsf(SmallPsf(variant), path);
  ASSERT_TRUE(status.ok()) << status;
}

void WritePreprocFile(const std::string& path) {
  PreprocFile file;
  file.pixels.Assign({kRows, kColumns}, 10);
  file.ivar.Assign({kRows, kColumns}, 0.1f);
  file.mask.Assign({kRows, kColumns});
  file.readnoise.Assign({kRows, kColumns}, 3);
  for (int i = 0; i < kFibres; ++i) file.fibermap.push_back({1000 + i, i, "TGT", 10.0 + i, 20.0});
  const absl::Status status = WritePreproc(file, path, false);
  ASSERT_TRUE(status.ok()) << status;
}

void WriteText(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string RawArrays(int rows, int columns) {
  const size_t count = static_cast<size_t>(rows) * columns;
  std::string bytes(count * 12, '\0');
  for (size_t k = 0; k < count; ++k) {
    const float pixel = 10, ivar = 0.1f;
    std::memcpy(bytes.data() + 4 * k, &pixel, 4);
    std::memcpy(bytes.data() + 4 * (count + k), &ivar, 4);
  }
  return bytes;
}

v1::JobHeader PathHeader(const TempFolder& folder, int bundle_size) {
  v1::JobHeader header;
  header.mutable_image()->set_path(folder / "preproc.fits");
  header.mutable_psf()->set_path(folder / "psf.fits");
  header.set_bundle_size(bundle_size);
  return header;
}

v1::JobHeader RawHeader(const TempFolder& folder, int bundle_size) {
  v1::JobHeader header = PathHeader(folder, bundle_size);
  v1::RawImage* raw = header.mutable_image()->mutable_raw();
  raw->set_name("raw arrays");
  raw->set_rows(kRows);
  raw->set_columns(kColumns);
  return header;
}

}  // namespace spexd::testing
