#include "core/products/fibre_kinds.h"

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/table_file.h"
#include "core/frame/summary.h"

namespace spexd {
namespace {

// Bits of FIBERSTATUS, as desispec's fibermask numbers them.
constexpr int64_t kFatal = 1 << 2      // BROKENFIBER
                           | 1 << 8    // MISSINGPOSITION
                           | 1 << 9    // BADPOSITION
                           | 1 << 16   // BADFIBER
                           | 1 << 17   // BADTRACE
                           | 1 << 18   // BADFLAT
                           | 1 << 19   // BADARC
                           | 1 << 20   // MANYBADCOL
                           | 1 << 21;  // MANYREJECTED
constexpr int64_t kVariableThroughput = 1 << 14;
constexpr int64_t kBadAmplifierB = 1 << 22, kBadAmplifierR = 1 << 23, kBadAmplifierZ = 1 << 24;

int64_t BadAmplifier(const Frame& frame) {
  const std::string camera = FindString(frame.origin.image_cards, "CAMERA").value_or("");
  switch (camera.empty() ? BandOf(frame.grid) : absl::ascii_toupper(static_cast<unsigned char>(camera[0]))) {
    case 'B':
      return kBadAmplifierB;
    case 'R':
      return kBadAmplifierR;
    case 'Z':
      return kBadAmplifierZ;
    default:
      return 0;
  }
}

}  // namespace

absl::StatusOr<FibreKinds> FibreKindsOf(const Frame& frame) {
  if (!frame.origin.fibermap.has_value()) {
    return absl::InvalidArgumentError("frame: has no FIBERMAP, which tells the sky fibres");
  }
  const RawTable& fibermap = *frame.origin.fibermap;
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> types, TextColumn(fibermap, "OBJTYPE"));
  if (static_cast<int64_t>(types.size()) != frame.spectra.flux.shape(0)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("frame: FIBERMAP has %d rows, must have one for each of the %d spectra", types.size(),
                        frame.spectra.flux.shape(0)));
  }
  std::vector<int64_t> status(types.size(), 0);
  if (HasColumn(fibermap, "FIBERSTATUS")) {
    SPEXD_ASSIGN_OR_RETURN(status, IntegerColumn(fibermap, "FIBERSTATUS"));
  }
  const int64_t fatal = kFatal | BadAmplifier(frame);
  FibreKinds kinds;
  for (size_t row = 0; row < types.size(); ++row) {
    kinds.fatal.push_back((status[row] & fatal) != 0);
    if (types[row] != "SKY") {
      kinds.targets.push_back(static_cast<int>(row));
    } else if ((status[row] & (fatal | kVariableThroughput)) == 0) {
      kinds.good_sky.push_back(static_cast<int>(row));
    }
  }
  return kinds;
}

}  // namespace spexd
