#include "core/products/joint/exposure_spectra.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/table_file.h"
#include "core/frame/summary.h"
#include "core/products/analyse.h"

namespace spexd {
namespace {

std::string WithoutFolder(const std::string& name) { return name.substr(name.rfind('/') + 1); }

std::string CameraOf(const std::vector<std::string>& cards) {
  return std::string(absl::StripAsciiWhitespace(FindString(cards, "CAMERA").value_or("")));
}

// The number of a card as text; some programs write it as text.
std::string NumberText(const std::vector<std::string>& cards, const char* keyword) {
  if (const std::optional<double> number = FindNumber(cards, keyword))
    return absl::StrFormat("%.0f", *number);
  return std::string(absl::StripAsciiWhitespace(FindString(cards, keyword).value_or("")));
}

// The arm's name in capitals: the letter of CAMERA or, without such a card, of the wavelengths' band.
std::string ArmName(const Frame& frame) {
  const std::string camera = CameraOf(frame.origin.image_cards);
  const bool named = !camera.empty() && absl::ascii_isalpha(static_cast<unsigned char>(camera[0]));
  const char letter = named ? camera[0] : BandOf(frame.grid);
  return std::string(1, absl::ascii_toupper(static_cast<unsigned char>(letter)));
}

absl::Status NotOfOneExposure(const NamedFrame& a, const NamedFrame& b, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(a.name, " and ", b.name, " are not of one exposure: ", why));
}

absl::Status CheckSameExposure(const NamedFrame& a, const NamedFrame& b) {
  const FrameOrigin& one = a.frame.origin;
  const FrameOrigin& other = b.frame.origin;
  const auto shown = [](const std::string& exposure) {
    return exposure.empty() ? std::string("one without EXPID or CAMERA") : ForMessage(exposure);
  };
  const std::string of_a = ExposureKey(one.image_cards), of_b = ExposureKey(other.image_cards);
  if (of_a != of_b || of_a.empty())
    return NotOfOneExposure(a, b, absl::StrCat(shown(of_a), "; ", shown(of_b)));
  constexpr double kSameFactor = 1e-7;  // a difference of 30 m/s
  const auto has = [](const FrameOrigin& origin) { return origin.heliocentric_factor.has_value(); };
  if (has(one) != has(other) ||
      std::abs(one.heliocentric_factor.value_or(1) - other.heliocentric_factor.value_or(1)) > kSameFactor) {
    const auto factor = [](const FrameOrigin& origin) {
      return origin.heliocentric_factor ? absl::StrFormat("%.9g", *origin.heliocentric_factor)
                                        : std::string("none");
    };
    return NotOfOneExposure(a, b, absl::StrCat("HELIOCOR is ", factor(one), "; ", factor(other)));
  }
  SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> targets, IntegerColumn(*one.fibermap, "TARGETID"));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> others, IntegerColumn(*other.fibermap, "TARGETID"));
  if (targets.size() != others.size())
    return NotOfOneExposure(a, b, absl::StrFormat("%d rows; %d rows", targets.size(), others.size()));
  const auto [at, there] = std::mismatch(targets.begin(), targets.end(), others.begin());
  if (at == targets.end()) return absl::OkStatus();
  return NotOfOneExposure(
      a, b, absl::StrFormat("row %d has TARGETID %d; %d", at - targets.begin() + 1, *at, *there));
}

absl::Status CheckHasFibermap(const NamedFrame& frame) {
  const std::optional<RawTable>& fibermap = frame.frame.origin.fibermap;
  if (!fibermap.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(frame.name, ": there is no HDU FIBERMAP, which names the targets"));
  }
  const int64_t rows = frame.frame.spectra.flux.shape(0);
  if (fibermap->rows == rows) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s: FIBERMAP has %d rows, must have one for each of the %d spectra of FLUX",
                      frame.name, fibermap->rows, rows));
}

}  // namespace

bool HasSky(const Frame& frame, const std::string& name) {
  if (FindString(frame.origin.image_cards, "IN_SKY").has_value() || IsCoadd(frame)) return false;
  const std::string file = WithoutFolder(name);
  return !absl::StartsWith(file, "sframe-") && !absl::StartsWith(file, "cframe-");
}

std::string ExposureNumber(const std::vector<std::string>& cards) { return NumberText(cards, "EXPID"); }

std::string ExposureKey(const std::vector<std::string>& cards) {
  const std::string exposure = ExposureNumber(cards), camera = CameraOf(cards);
  if (exposure.empty() || camera.empty()) return "";
  const std::string night = NumberText(cards, "NIGHT");
  return absl::StrCat("exposure ", exposure, night.empty() ? "" : " of night ", night, ", spectrograph ",
                      camera.size() > 1 ? camera.substr(1) : "without a number");
}

absl::StatusOr<TargetSpectra> JoinFrames(std::vector<NamedFrame> frames) {
  if (frames.empty()) return absl::InvalidArgumentError("frames: there are none");
  for (const NamedFrame& frame : frames) SPEXD_RETURN_IF_ERROR(CheckHasFibermap(frame));
  std::stable_sort(frames.begin(), frames.end(), [](const NamedFrame& a, const NamedFrame& b) {
    return std::tie(a.frame.grid.first, a.name) < std::tie(b.frame.grid.first, b.name);
  });
  TargetSpectra spectra;
  for (NamedFrame& frame : frames) {
    if (&frame != &frames.front()) SPEXD_RETURN_IF_ERROR(CheckSameExposure(frames.front(), frame));
    std::string arm = ArmName(frame.frame);
    for (size_t k = 0; k < spectra.arms.size(); ++k) {
      if (spectra.arms[k].name != arm) continue;
      return absl::InvalidArgumentError(absl::StrCat(frame.name, ": camera ", absl::AsciiStrToLower(arm),
                                                     " was there before, in ", frames[k].name,
                                                     "; name each camera of an exposure once"));
    }
    spectra.arms.push_back({std::move(arm), frame.frame.grid, std::move(frame.frame.spectra)});
    spectra.arms.back().spectra.chi2pix = {};
  }
  FrameOrigin& origin = frames.front().frame.origin;
  spectra.name = WithoutFolder(frames.front().name);
  spectra.cards = std::move(origin.image_cards);
  if (frames.size() > 1)
    spectra.cards =
        FilterCards(spectra.cards, [](absl::string_view card) { return CardKeyword(card) != "CAMERA"; });
  spectra.barycentric = origin.heliocentric_factor.has_value();
  spectra.fibermap = *std::move(origin.fibermap);
  return spectra;
}

}  // namespace spexd
