#include "core/frame/barycentric.h"

#include <erfa.h>
#include <erfam.h>

#include <array>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/frame/cards.h"

namespace spexd {
namespace {

constexpr double kLatitude = 31.96403;     // degrees north
constexpr double kLongitude = -111.59989;  // degrees east
constexpr double kHeight = 2097;           // metres

constexpr double kSunGm = 1.3271244e20;   // m^3 / s^2
constexpr double kEarthGm = 3.986004e14;  // m^3 / s^2
constexpr double kSiteRadius = 6.3742e6;  // metres from the Earth's centre

// The span of the ephemeris and of UTC, as modified Julian dates.
constexpr double kMinMjd = 41317;  // 1972-01-01
constexpr double kMaxMjd = 88069;  // 2100-01-01

struct KeywordPair {
  const char* ra;
  const char* dec;
};
constexpr std::array<KeywordPair, 4> kPositions = {
    {{"TARGTRA", "TARGTDEC"}, {"SKYRA", "SKYDEC"}, {"TELRA", "TELDEC"}, {"RA", "DEC"}}};

using Headers = std::array<const std::vector<std::string>*, 2>;

std::optional<double> Find(const Headers& headers, const char* keyword) {
  for (const std::vector<std::string>* cards : headers) {
    if (const std::optional<double> value = NumberOf(*cards, keyword)) return value;
  }
  return std::nullopt;
}

absl::Status CheckLimits(const char* name, double value, double least, double most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "barycentric correction: %s is %.10g, must be %.10g to %.10g", name, value, least, most));
}

absl::Status Missing(const char* what) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "barycentric correction: neither the image header nor the FIBERMAP header has %s", what));
}

absl::Status Check(const Pointing& pointing) {
  SPEXD_RETURN_IF_ERROR(CheckLimits("the right ascension", pointing.ra, -360, 360));
  SPEXD_RETURN_IF_ERROR(CheckLimits("the declination", pointing.dec, -90, 90));
  return CheckLimits("the date (MJD)", pointing.mjd, kMinMjd, kMaxMjd);
}

}  // namespace

absl::StatusOr<Pointing> FindPointing(const std::vector<std::string>& image_cards,
                                      const std::vector<std::string>& fibermap_cards) {
  const Headers headers = {&image_cards, &fibermap_cards};
  Pointing pointing;
  bool found = false;
  for (const std::vector<std::string>* cards : headers) {
    for (const KeywordPair& pair : kPositions) {
      const std::optional<double> ra = NumberOf(*cards, pair.ra), dec = NumberOf(*cards, pair.dec);
      if (found || !ra || !dec) continue;
      pointing.ra = *ra;
      pointing.dec = *dec;
      found = true;
    }
  }
  if (!found)
    return Missing("a position (TARGTRA and TARGTDEC, SKYRA and SKYDEC, TELRA and TELDEC, or RA and DEC)");

  std::optional<double> start = Find(headers, "MJD-OBS");
  if (!start) start = Find(headers, "MJD");
  if (!start) return Missing("a date (MJD-OBS or MJD)");
  const double exposure = Find(headers, "EXPTIME").value_or(0);
  SPEXD_RETURN_IF_ERROR(CheckLimits("EXPTIME", exposure, 0, ERFA_DAYSEC));
  pointing.mjd = *start + 0.5 * exposure / ERFA_DAYSEC;
  SPEXD_RETURN_IF_ERROR(Check(pointing));
  return pointing;
}

absl::StatusOr<double> BarycentricFactor(const Pointing& pointing) {
  SPEXD_RETURN_IF_ERROR(Check(pointing));
  eraASTROM site;
  double equation_of_origins = 0;
  // UT1 - UTC, polar motion and refraction are left out: they change the factor by less than 1e-10.
  const int status = eraApco13(ERFA_DJM0, pointing.mjd, 0, kLongitude * ERFA_DD2R, kLatitude * ERFA_DD2R,
                               kHeight, 0, 0, 0, 0, 0, 0.5, &site, &equation_of_origins);
  if (status < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("barycentric correction: the date (MJD) %.10g is not acceptable", pointing.mjd));
  }
  double target[3];
  eraS2c(pointing.ra * ERFA_DD2R, pointing.dec * ERFA_DD2R, target);
  const double doppler = (1 + eraPdp(site.v, target)) / site.bm1;
  const double potential = (kSunGm / (site.em * ERFA_DAU) + kEarthGm / kSiteRadius) / (ERFA_CMPS * ERFA_CMPS);
  return doppler / (1 - potential);
}

}  // namespace spexd
