#include "core/products/inputs/input_outline.h"

#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/images/image_hdu.h"
#include "core/products/inputs/outline_bytes.h"

namespace spexd {
namespace {

// The layout of an HDU that must have 2 axes; `what` names them.
absl::StatusOr<ImageLayout> LayoutOfTwoAxes(const Hdu& hdu, absl::string_view what) {
  SPEXD_ASSIGN_OR_RETURN(ImageLayout layout, LayoutOf(hdu));
  if (layout.axes.size() == 2) return layout;
  return hdu.Error(absl::StrFormat("is an image of %d axes, must have 2: %s", layout.axes.size(), what));
}

absl::Status CheckRows(const Hdu& hdu, const TableView& table, int64_t rows, absl::string_view of) {
  if (table.rows() == rows) return absl::OkStatus();
  return hdu.Error(
      absl::StrFormat("has %d rows, must have one for each of the %d of %s", table.rows(), rows, of));
}

}  // namespace

absl::StatusOr<InputOutline> FiberflatOutline(const FitsFile& file, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const Hdu* const hdu, file.Get({"FIBERFLAT"}));
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOfTwoAxes(*hdu, "row and bin"));
  const int64_t rows = layout.axes[1], bins = layout.axes[0];
  OutlineBytes bytes(1, stop);
  // An image and its ivar, which the result always has.
  SPEXD_RETURN_IF_ERROR(bytes.AddImage(*hdu, layout, sizeof(double) + sizeof(float)));
  for (const char* name : {"IVAR", "MASK"}) {
    const Hdu* const other = file.Find({name});
    if (other == nullptr) continue;
    SPEXD_ASSIGN_OR_RETURN(const ImageLayout same, LayoutOf(*other));
    if (same.axes != layout.axes)
      return other->Error(absl::StrFormat("is %s, HDU FIBERFLAT %s", same.ShapeText(), layout.ShapeText()));
    SPEXD_RETURN_IF_ERROR(
        bytes.AddImage(*other, same, absl::string_view(name) == "MASK" ? sizeof(uint32_t) : 0));
  }
  if (const Hdu* const wave = file.Find({"WAVELENGTH"})) {
    SPEXD_ASSIGN_OR_RETURN(const ImageLayout line, LayoutOf(*wave));
    if (line.pixels != bins)
      return wave->Error(
          absl::StrFormat("is %s, must have the %d wavelengths of HDU FIBERFLAT", line.ShapeText(), bins));
    SPEXD_RETURN_IF_ERROR(bytes.AddImage(*wave, line, sizeof(double)));
  }
  if (const Hdu* const fibermap = file.Find({"FIBERMAP"})) {
    SPEXD_ASSIGN_OR_RETURN(const TableView table, TableView::Make(*fibermap));
    if (table.Find("FIBER") != nullptr) SPEXD_RETURN_IF_ERROR(CheckRows(*fibermap, table, rows, "FIBERFLAT"));
  }
  if (!bytes.Add(file.structure_bytes(), 1) || !bytes.Add(bins, kBytesOfFiberflatBin) ||
      !bytes.Add(rows, kBytesOfFiberflatRow))
    return hdu->Error(absl::StrFormat("is %s, more than any memory holds", layout.ShapeText()));
  return InputOutline{rows, bins, bytes.sum()};
}

absl::StatusOr<InputOutline> TemplatesOutline(const FitsFile& file, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const Hdu* const hdu, file.Get({"TEMPLATES"}));
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOfTwoAxes(*hdu, "template and sample"));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* const params, file.Get({"PARAMS"}));
  SPEXD_ASSIGN_OR_RETURN(const TableView table, TableView::Make(*params));
  SPEXD_RETURN_IF_ERROR(CheckRows(*params, table, layout.axes[1], "TEMPLATES"));
  OutlineBytes bytes(1, stop);
  // As read, and in double precision.
  SPEXD_RETURN_IF_ERROR(bytes.AddImage(*hdu, layout, sizeof(float) + sizeof(double)));
  if (!bytes.Add(file.structure_bytes(), 1) || !bytes.Add(layout.axes[1], kBytesOfTemplateNode))
    return hdu->Error(absl::StrFormat("is %s, more than any memory holds", layout.ShapeText()));
  return InputOutline{layout.axes[1], layout.axes[0], bytes.sum()};
}

absl::StatusOr<InputOutline> ReadFiberflatOutline(const Source& source, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  return FiberflatOutline(file, stop);
}

absl::StatusOr<InputOutline> ReadTemplatesOutline(const Source& source, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  return TemplatesOutline(file, stop);
}

}  // namespace spexd
