#include "tests/analysis/coadd/camera_frames.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"
#include "core/products/number_table.h"

namespace spexd::testing {
namespace {

RawTable FibermapOfFibres(const std::vector<FibreOfCamera>& fibres) {
  NumberTable table(static_cast<int64_t>(fibres.size()));
  table.Add("TARGETID", fibres, [](const FibreOfCamera& fibre) { return fibre.target; });
  table.Add("OBJTYPE", fibres, [](const FibreOfCamera& fibre) { return fibre.type; });
  table.Add("FIBERSTATUS", fibres, [](const FibreOfCamera& fibre) { return fibre.status; });
  table.Add("TARGET_RA", fibres,
            [](const FibreOfCamera& fibre) { return 0.1 * static_cast<double>(fibre.target); });
  table.Add("TARGET_DEC", fibres, [](const FibreOfCamera&) { return -30.0; });
  std::vector<int64_t> numbers;
  for (size_t row = 0; row < fibres.size(); ++row) numbers.push_back(static_cast<int64_t>(row));
  table.Add("FIBER", numbers);
  FitsBuilder fits(1 << 16);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  table.Write("FIBERMAP", &fits);
  return ReadTableHdu(Source::FromBytes("fibermap", fits.Bytes().value()).value(), "FIBERMAP").value();
}

}  // namespace

WavelengthGrid GridOfCamera(char letter) {
  if (letter == 'b') return {4000, 0.8, 40};
  if (letter == 'z') return {8500, 0.8, 60};
  return {6000, 0.8, 50};
}

Frame FrameOfCamera(char letter, std::optional<int> exposure, const std::vector<FibreOfCamera>& fibres) {
  const auto rows = static_cast<int64_t>(fibres.size());
  Frame frame;
  frame.grid = GridOfCamera(letter);
  frame.fibres = {0, static_cast<int>(rows)};
  const int64_t bins = frame.grid.count;
  frame.spectra.flux.Assign({rows, bins});
  frame.spectra.ivar.Assign({rows, bins}, 4);
  frame.spectra.mask.Assign({rows, bins});
  frame.spectra.chi2pix.Assign({rows, bins}, 1);
  frame.spectra.resolution.Assign({rows, kResolutionDiagonals, bins});
  for (int64_t row = 0; row < rows; ++row) {
    for (float& flux : frame.spectra.flux.Row(row)) flux = fibres[static_cast<size_t>(row)].flux;
    for (float& element : frame.spectra.resolution.Row(row, kResolutionHalfWidth)) element = 1;
  }
  const auto add_card = [&frame](const std::string& text) {
    frame.origin.image_cards.push_back(absl::StrFormat("%-80s", text));
  };
  add_card(absl::StrFormat("CAMERA  = '%c0      '", letter));
  if (exposure.has_value()) {
    add_card(absl::StrFormat("EXPID   = %20d", *exposure));
    add_card(absl::StrFormat("NIGHT   = %20d", 20290101));
  }
  frame.origin.fibermap = FibermapOfFibres(fibres);
  return frame;
}

Frame WithoutCard(Frame frame, const std::string& keyword) {
  std::erase_if(frame.origin.image_cards,
                [&keyword](const std::string& card) { return CardKeyword(card) == keyword; });
  return frame;
}

}  // namespace spexd::testing
