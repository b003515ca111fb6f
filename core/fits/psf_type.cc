#include "core/fits/psf_type.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/fits/hdu/cards.h"

namespace spexd {
namespace {

constexpr char kOwnType[] = "GAUSS-HERMITE";

// What the headers of a file say of its PSF.
struct Stated {
  std::string type;
  std::string version;           // as text; "": none
  std::optional<double> number;  // the version, if it is a number
};

// PSFVER is a number in one HDU and a string in another.
Stated ReadStated(const FitsFile& file) {
  Stated stated;
  for (const Hdu& hdu : file.hdus()) {
    if (stated.type.empty()) stated.type = hdu.String("PSFTYPE").value_or("");
    if (stated.number) continue;
    stated.number = hdu.Number("PSFVER");
    if (stated.number) {
      stated.version = absl::StrFormat("%g", *stated.number);
    } else if (const std::optional<std::string> text = hdu.String("PSFVER"); text && !text->empty()) {
      stated.version = *text;
      double value;
      if (absl::SimpleAtod(*text, &value)) stated.number = value;
    }
  }
  return stated;
}

struct OtherModel {
  const char* type;
  const char* because;
  bool specter;  // whether specter reads it
};
constexpr OtherModel kOtherModels[] = {
    {"GAUSS-HERMITE2", "its spots have two Gauss-Hermite cores", true},
    {"SPOTGRID", "its spots are images on a grid of fibres and wavelengths", true},
    {"MONOSPOT", "its spot is an image", true},
    {"PCA-PIX", "its spots are sums of images", true},
    {"bootcalib", "it has traces, but no spots", false},
};

std::string NameOf(const Stated& stated) {
  std::string text = absl::StrCat("PSFTYPE ", Excerpt(stated.type));
  if (!stated.version.empty()) absl::StrAppend(&text, ", PSFVER ", Excerpt(stated.version));
  return text;
}

absl::Status RefuseModel(const FitsFile& file, const Stated& stated) {
  const OtherModel* known =
      std::find_if(std::begin(kOtherModels), std::end(kOtherModels),
                   [&stated](const OtherModel& model) { return model.type == stated.type; });
  const bool is_known = known != std::end(kOtherModels);
  std::string text = absl::StrCat(file.name(), ": ", NameOf(stated), " is not supported");
  if (is_known) absl::StrAppend(&text, ", because ", known->because);
  absl::StrAppend(&text, ". spexd reads ", kOwnType, ", PSFVER 2 and 3. Fit a ", kOwnType,
                  " PSF to an arc exposure with desi_compute_psf (specex)");
  if (is_known && known->specter)
    absl::StrAppend(&text, ", or extract with specter, which reads ", known->type);
  return absl::UnimplementedError(text);
}

absl::Status RefuseVersion(const FitsFile& file, const Stated& stated) {
  return absl::UnimplementedError(absl::StrCat(
      file.name(), ": ", NameOf(stated), " is not supported. spexd reads PSFVER 2 and 3. ",
      *stated.number < 2 ? "Fit the PSF again with desi_compute_psf (specex), which writes PSFVER 3"
                         : "Write the PSF as PSFVER 3, or look for a newer spexd"));
}

absl::Status RefuseNoPsf(const FitsFile& file) {
  const auto has_both = [&file](absl::string_view a, absl::string_view b) {
    return file.Find({a}) != nullptr && file.Find({b}) != nullptr;
  };
  std::string advice = "A PSF of desi_compute_psf (specex) has it";
  if (file.Find({"PSF"}) != nullptr) {
    advice = absl::StrCat("If its model is ", kOwnType, ", write this type into its first header");
  } else if (has_both("IMAGE", "IVAR")) {
    advice = "It has the HDUs of a preprocessed frame, IMAGE and IVAR: were frame and PSF exchanged?";
  } else if (has_both("FLUX", "IVAR")) {
    advice = "It has the HDUs of extracted spectra, FLUX and IVAR";
  } else if (has_both("XTRACE", "YTRACE")) {
    advice = "It has traces, XTRACE and YTRACE, but no spots. A PSF of desi_compute_psf (specex) has both";
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file.name(), ": is not a PSF file: no HDU has the keyword PSFTYPE. ", advice));
}

}  // namespace

absl::StatusOr<int> CheckPsfType(const FitsFile& file) {
  Stated stated = ReadStated(file);
  if (stated.type.empty()) return RefuseNoPsf(file);
  if (stated.type != kOwnType) return RefuseModel(file, stated);
  if (!stated.number) stated.number = file.Find({"XTRACE"}) != nullptr ? 3 : 2;
  if (!(*stated.number >= 2 && *stated.number < 4)) return RefuseVersion(file, stated);
  return *stated.number < 3 ? 2 : 3;
}

absl::StatusOr<const Hdu*> ParameterHdu(const FitsFile& file, int version) {
  if (version == 3 || file.Find({"PSF"}) != nullptr) return file.Get({"PSF"});
  for (const Hdu& hdu : file.hdus()) {
    if (hdu.IsTable()) return &hdu;
  }
  return file.Get({"PSF"});
}

}  // namespace spexd
