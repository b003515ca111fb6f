#include "core/fits/frame_header.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/readers.h"
#include "core/fits/traces/trace_table.h"

namespace spexd {
namespace {

constexpr char kExtractor[] = "spexd";

// Whether a card describes the extraction. Such cards are this program's, whatever the input image states.
// Cards of trace shifts count only if `with_traces`: the pipeline's images may report shifts that the
// pipeline measured.
bool IsOwnCard(absl::string_view card, bool with_traces) {
  if (with_traces && IsTraceCard(card)) return true;
  const absl::string_view keyword = CardKeyword(card);
  const absl::string_view own[] = {"BUNIT",    "NSPEC",   "WAVEMIN",  "WAVEMAX",  "WAVESTEP",
                                   "IN_IMG",   "IN_PSF",  "ORIG_PSF", "HELIOCOR", "PSFERR",
                                   "FIBERMIN", "SPECMIN", "EXTRNAME", "EXTRVER",  "FINEGRID",
                                   "FLUXRES",  "ROOTERR", "CHI2MED",  "CHI2OUT"};
  return std::find(std::begin(own), std::end(own), keyword) != std::end(own);
}

constexpr int kMaxDependencies = 100;  // DEPNAM00 to DEPNAM99

double FiveDigits(double value) { return std::stod(absl::StrFormat("%.5g", value)); }

std::string DependencyCard(const char* stem, int number) { return absl::StrFormat("%s%02d", stem, number); }

// The cards without the pair that names this extractor and its version by the pipeline's convention.
std::vector<std::string> WithoutOwnDependency(const std::vector<std::string>& cards) {
  for (int k = 0; k < kMaxDependencies; ++k) {
    const std::string name = DependencyCard("DEPNAM", k), version = DependencyCard("DEPVER", k);
    if (FindString(cards, name) != kExtractor) continue;
    return FilterCards(cards, [&](absl::string_view card) {
      return CardKeyword(card) != name && CardKeyword(card) != version;
    });
  }
  return cards;
}

// Writes this extractor's name and version into the first pair that no card uses.
void WriteDependency(const std::vector<std::string>& cards, const std::string& version, FitsBuilder& fits) {
  for (int k = 0; k < kMaxDependencies; ++k) {
    const std::string name = DependencyCard("DEPNAM", k);
    const auto uses = [&name](const std::string& card) { return CardKeyword(card) == name; };
    if (std::any_of(cards.begin(), cards.end(), uses)) continue;
    fits.Text(name.c_str(), kExtractor, "extractor");
    fits.Text(DependencyCard("DEPVER", k).c_str(), version, "version of the extractor");
    return;
  }
}

}  // namespace

void WriteOrigin(const FrameOrigin& origin, bool same_pixels, FitsBuilder& fits) {
  const bool with_traces = origin.traces.has_value();
  const std::vector<std::string> cards =
      FilterCards(WithoutOwnDependency(origin.image_cards), [=](absl::string_view card) {
        return !IsStructuralCard(card) && !IsOwnCard(card, with_traces) &&
               (same_pixels || !IsWorldCoordinateCard(card));
      });
  const bool continued = std::any_of(cards.begin(), cards.end(),
                                     [](const std::string& card) { return CardKeyword(card) == "CONTINUE"; });
  fits.AnnounceLongTexts({origin.input_image, origin.input_psf, origin.original_psf, origin.version},
                         continued);
  fits.Cards(cards);
  fits.Text("IN_IMG", origin.input_image, "input image");
  fits.Text("IN_PSF", origin.input_psf, "input PSF");
  if (!origin.original_psf.empty())
    fits.Text("ORIG_PSF", origin.original_psf, "PSF that the input PSF was made from");
  fits.Number("PSFERR", origin.psferr, "fractional error of the PSF model");
  if (origin.heliocentric_factor) {
    fits.Number("HELIOCOR", *origin.heliocentric_factor, "barycentric factor 1 + v/c");
  }
  if (origin.fine_grid_prior) {
    fits.Logical("FINEGRID", true, "prior has 1e-8 diag(AtWA): fine grid");
  }
  if (origin.flux_residual) {
    fits.Number("FLUXRES", *origin.flux_residual, "largest |b - A f| / |b| of a bundle");
  }
  if (origin.root_error) {
    fits.Number("ROOTERR", *origin.root_error, "largest error of |Q v|^2 = v^T P v of a bundle");
  }
  if (origin.chi2pix_median) {
    fits.Number("CHI2MED", FiveDigits(*origin.chi2pix_median), "median chi2pix, at most 1 in a good fit");
  }
  if (origin.chi2pix_outliers) {
    fits.Number("CHI2OUT", FiveDigits(*origin.chi2pix_outliers),
                "fraction above 1.88, at most 0.05 in a good fit");
  }
  if (with_traces) WriteTraceCards(*origin.traces, fits);
  fits.Text("EXTRNAME", kExtractor, "extractor");
  fits.Text("EXTRVER", origin.version, "version of the extractor");
  WriteDependency(cards, origin.version, fits);
}

void ReadOrigin(const std::vector<std::string>& cards, FrameOrigin& origin) {
  const bool with_traces = HasTraceCards(cards);
  origin.image_cards = FilterCards(WithoutOwnDependency(cards), [with_traces](absl::string_view card) {
    return !IsStructuralCard(card) && !IsOwnCard(card, with_traces);
  });
  origin.input_image = FindString(cards, "IN_IMG").value_or("");
  origin.input_psf = FindString(cards, "IN_PSF").value_or("");
  origin.original_psf = FindString(cards, "ORIG_PSF").value_or("");
  origin.heliocentric_factor = FindNumber(cards, "HELIOCOR");
  origin.psferr = FindNumber(cards, "PSFERR").value_or(0);
  origin.flux_residual = FindNumber(cards, "FLUXRES");
  origin.root_error = FindNumber(cards, "ROOTERR");
  origin.chi2pix_median = FindNumber(cards, "CHI2MED");
  origin.chi2pix_outliers = FindNumber(cards, "CHI2OUT");
  origin.version = FindString(cards, "EXTRVER").value_or("");
  origin.fine_grid_prior = std::any_of(cards.begin(), cards.end(), [](const std::string& card) {
    return CardKeyword(card) == "FINEGRID" && CardLogical(card).value_or(false);
  });
}

}  // namespace spexd
