#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/images/image_hdu.h"
#include "core/fits/psf/psf_files.h"

namespace spexd {

absl::StatusOr<LegendreTable> ReadTrace(const FitsFile& file, absl::string_view name, int fibres) {
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({name}));
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(*hdu));
  if (layout.axes.size() != 2 || layout.axes[1] != fibres || layout.axes[0] > kMaxLegendreCoefficients) {
    return hdu->Error(absl::StrFormat("is %s, must be %d fibres x at most %d coefficients",
                                      layout.ShapeText(), fibres, kMaxLegendreCoefficients));
  }
  LegendreTable table;
  SPEXD_ASSIGN_OR_RETURN(table.coeff, (ReadImage<double, 2>(*hdu)));
  SPEXD_ASSIGN_OR_RETURN(table.wave_min, hdu->RequireNumber("WAVEMIN"));
  SPEXD_ASSIGN_OR_RETURN(table.wave_max, hdu->RequireNumber("WAVEMAX"));
  return table;
}

absl::StatusOr<int> ReadInteger(const Hdu& hdu, const std::string& keyword, int least, int most) {
  SPEXD_ASSIGN_OR_RETURN(const int64_t value, hdu.RequireInteger(keyword, least, most));
  return static_cast<int>(value);
}

absl::StatusOr<double> NumberOr(const Hdu& hdu, const std::string& keyword, double otherwise) {
  if (!hdu.Has(keyword)) return otherwise;
  return hdu.RequireNumber(keyword);
}

}  // namespace spexd
