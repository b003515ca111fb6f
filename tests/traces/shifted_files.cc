#include "tests/traces/shifted_files.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/fits/writers.h"

namespace spexd::testing {

void WriteImage(const Image& image, const std::string& path, const std::vector<std::string>& cards) {
  PreprocFile file;
  file.pixels = image.pixels;
  file.ivar = image.ivar;
  file.mask.Assign(image.pixels.shape());
  file.readnoise.Assign(image.pixels.shape(), 3);
  file.extra_cards = cards;
  const absl::Status status = WritePreproc(file, path, /*rice=*/false);
  ASSERT_TRUE(status.ok()) << status;
}

std::string TextOf(const ReferenceSpectrum& reference) {
  std::string text = "# wavelength in vacuum, light\n";
  for (size_t k = 0; k < reference.wave.size(); ++k)
    absl::StrAppendFormat(&text, "%.17g %.17g\n", reference.wave[k], std::max(0.0, reference.flux[k]));
  return text;
}

}  // namespace spexd::testing
