#include "core/fits/psf/psf_type.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "core/fits/hdu/cards.h"

namespace spexd {
namespace {

// The statements of a file's headers about its PSF.
struct Stated {
  std::string type;
  std::string version;           // version as text; "" if there is none
  std::optional<double> number;  // the version, if it is a number
};

// Reads the statements. PSFVER is a number in one HDU and a string in another.
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

struct KnownType {
  const char* type;
  int first_version, last_version;
  absl::StatusOr<Psf> (*read)(const FitsFile& file, const PsfReading& reading);
};
constexpr int kAnyVersion = 1000;
constexpr KnownType kKnownTypes[] = {
    {"GAUSS-HERMITE", 2, 3, ReadGaussHermite},  {"GAUSS-HERMITE2", 1, 3, ReadGaussHermite2},
    {"SPOTGRID", 0, kAnyVersion, ReadSpotGrid}, {"MONOSPOT", 0, kAnyVersion, ReadMonoSpot},
    {"PCA-PIX", 0, kAnyVersion, ReadPcaPix},    {"SAMPLED-SPOTS", 1, 1, ReadSampledSpots}};

std::string NameOf(const Stated& stated) {
  std::string text = absl::StrCat("PSFTYPE ", Excerpt(stated.type));
  if (!stated.version.empty()) absl::StrAppend(&text, ", PSFVER ", Excerpt(stated.version));
  return text;
}

absl::Status RefuseType(const FitsFile& file, const Stated& stated) {
  const bool has_no_spots = stated.type == "bootcalib";
  return absl::UnimplementedError(absl::StrCat(
      file.name(), ": ", NameOf(stated), " is not supported",
      has_no_spots ? ", because it has traces, but no spots" : "", ". spexd reads ",
      absl::StrJoin(kKnownTypes, ", ",
                    [](std::string* out, const KnownType& known) { absl::StrAppend(out, known.type); }),
      ". Fit a GAUSS-HERMITE PSF to an arc exposure with desi_compute_psf (specex), or write SAMPLED-SPOTS "
      "with spexd.psf_from_spots"));
}

absl::Status RefuseVersion(const FitsFile& file, const Stated& stated, const KnownType& known) {
  const std::string versions =
      known.first_version == known.last_version
          ? absl::StrCat(known.first_version)
          : absl::StrCat(known.first_version,
                         known.last_version == known.first_version + 1 ? " and " : " to ",
                         known.last_version);
  const bool is_old = *stated.number < known.first_version;
  return absl::UnimplementedError(absl::StrCat(
      file.name(), ": ", NameOf(stated), " is not supported. spexd reads PSFVER ", versions, ". ",
      is_old ? "Fit the PSF again with desi_compute_psf (specex), which writes GAUSS-HERMITE, PSFVER 3"
             : absl::StrCat("Write the PSF as PSFVER ", known.last_version, ", or look for a newer spexd")));
}

absl::Status RefuseNoPsf(const FitsFile& file) {
  const auto has_both = [&file](absl::string_view a, absl::string_view b) {
    return file.Find({a}) != nullptr && file.Find({b}) != nullptr;
  };
  std::string advice = "A PSF of desi_compute_psf (specex) has it";
  if (file.Find({"PSF"}) != nullptr) {
    advice = "If its model is GAUSS-HERMITE, write this type into its first header";
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

absl::StatusOr<PsfFileType> FindPsfType(const FitsFile& file) {
  Stated stated = ReadStated(file);
  if (stated.type.empty()) return RefuseNoPsf(file);
  const auto known = std::ranges::find_if(
      kKnownTypes, [&stated](const KnownType& each) { return stated.type == each.type; });
  if (known == std::end(kKnownTypes)) return RefuseType(file, stated);
  const bool has_traces = file.Find({"XTRACE"}) != nullptr;
  if (!stated.number)
    stated.number =
        has_traces ? known->last_version : std::clamp(2, known->first_version, known->last_version);
  if (!(*stated.number >= known->first_version && *stated.number < known->last_version + 1))
    return RefuseVersion(file, stated, *known);
  return PsfFileType{static_cast<int>(*stated.number), known->read};
}

absl::StatusOr<const Hdu*> ParameterHdu(const FitsFile& file, int version) {
  if (version == 3 || file.Find({"PSF"}) != nullptr) return file.Get({"PSF"});
  for (const Hdu& hdu : file.hdus()) {
    if (hdu.IsTable()) return &hdu;
  }
  return file.Get({"PSF"});
}

}  // namespace spexd
