// The PSF reader: a job's PSF is an upload, or a file that any user may have written.
#include "core/fits/readers.h"
#include "tests/fuzz/support/fuzz_check.h"

namespace spexd::fuzz {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 20;  // of an inflated file; larger ones only take longer

void ReadAsPsf(const Source& source) {
  const auto size = static_cast<int64_t>(source.bytes().size());
  absl::StatusOr<Psf> outline = absl::UnknownError("");
  {
    const HeapMeter meter;
    outline = ReadPsfOutline(source, /*most_terms_bytes=*/4096);
    RequireHeapWithin(meter, StructureBytes(size), "a PSF's outline");
  }
  RequireGoodError(outline.status());
  const HeapMeter meter;
  const absl::StatusOr<Psf> psf = ReadPsf(source);
  RequireHeapWithin(meter, StructureBytes(size), "a PSF");
  RequireGoodError(psf.status());
  if (!psf.ok()) return;
  Require(outline.ok(), "a PSF that is read has an outline");
  Require(PsfBytes(*outline) == PsfBytes(*psf), "the outline tells the PSF's memory");
  Require(CheckPsf(*psf).ok(), "a PSF that is read is a good one");
  for (const double wave : {psf->wave_min, psf->wave_max}) Evaluate(psf->x, psf->fibres - 1, wave);
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spexd;
  const absl::StatusOr<Source> source =
      Source::FromBytes("psf.fits", std::string(reinterpret_cast<const char*>(data), size),
                        SourceLimits{fuzz::kMostBytes, nullptr});
  fuzz::RequireGoodError(source.status());
  if (source.ok()) fuzz::ReadAsPsf(*source);
  return 0;
}
