#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/psf/psf_type.h"
#include "core/fits/readers.h"
#include "core/model/psf_traces/lost_fibres.h"

namespace spexd {
namespace {

// Reads CAMERA and IN_PSF, each from the first HDU that has it.
absl::Status ReadOrigin(const FitsFile& file, Psf& psf) {
  constexpr size_t kMaxCameraCharacters = 68;  // a card has no room for more; the text is kept with the PSF
  constexpr size_t kMaxCharacters =
      4096;  // limit on a path, which is kept with the PSF and sent with every job's result
  for (const Hdu& hdu : file.hdus()) {
    if (psf.camera.empty())
      psf.camera = PrintableAscii(hdu.String("CAMERA").value_or("").substr(0, kMaxCameraCharacters));
    if (psf.original_psf.empty()) psf.original_psf = PrintableAscii(hdu.String("IN_PSF").value_or(""));
    if (psf.original_psf.size() > kMaxCharacters) {
      return hdu.Error(absl::StrFormat("IN_PSF has %d characters, the limit is %d", psf.original_psf.size(),
                                       kMaxCharacters));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Psf> Read(const Source& source, int64_t max_table_bytes, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const PsfFileType type, FindPsfType(file));
  SPEXD_ASSIGN_OR_RETURN(Psf psf, type.read(file, {type.version, max_table_bytes, stop}));
  SPEXD_RETURN_IF_ERROR(ReadOrigin(file, psf));
  EmptyLostFibres(&psf);
  const absl::Status status = IsComplete(psf) ? CheckPsf(psf) : CheckPsfOutline(psf);
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat(source.name(), ": ", status.message()));
  psf.content_hash = source.content_hash();
  return psf;
}

}  // namespace

absl::StatusOr<Psf> ReadPsf(const Source& source, const std::stop_token& stop) {
  return Read(source, INT64_MAX, stop);
}

absl::StatusOr<Psf> ReadPsfOutline(const Source& source, int64_t max_table_bytes,
                                   const std::stop_token& stop) {
  return Read(source, max_table_bytes, stop);
}

}  // namespace spexd
