// The PSF reader. A job's PSF is an upload, or a file that any user may have written.
#include "core/fits/readers.h"
#include "tests/fuzz/support/fuzz_check.h"
#include "tests/fuzz/support/read_metered.h"

namespace spexd::fuzz {
namespace {

void ReadAsPsf(absl::string_view bytes) {
  const auto outline = ReadMetered(bytes, "a PSF's outline", [](const Source& source) {
    return ReadPsfOutline(source, /*max_table_bytes=*/4096);
  });
  const auto psf = ReadMetered(bytes, "a PSF", [](const Source& source) { return ReadPsf(source); });
  if (!psf.ok()) return;
  Require(outline.ok(), "a PSF that is read has an outline");
  Require(PsfBytes(*outline) == PsfBytes(*psf), "the outline tells the PSF's memory");
  Require(CheckPsf(*psf).ok(), "a PSF that is read is a good one");
  for (const double wave : {psf->wave_min, psf->wave_max}) Evaluate(psf->traces.x, psf->fibres - 1, wave);
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spexd::fuzz::ReadAsPsf({reinterpret_cast<const char*>(data), size});
  return 0;
}
