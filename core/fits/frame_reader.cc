#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/frame_header.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/images/image_hdu.h"
#include "core/fits/readers.h"
#include "core/fits/score_columns.h"
#include "core/fits/spectra_hdus.h"
#include "core/fits/traces/trace_table.h"

namespace spexd {
namespace {

// The prefix of the names of a file's HDUs: "" in a frame, "R_" in a file of spectra of camera r (a coadd).
// An error if there are spectra of several cameras.
absl::StatusOr<std::string> PrefixOf(const FitsFile& file) {
  if (file.Find({"FLUX"}) != nullptr) return "";
  std::string prefix;
  for (const Hdu& hdu : file.hdus()) {
    if (!absl::EndsWith(hdu.name, "_FLUX")) continue;
    if (!prefix.empty()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "%s: has spectra of several cameras (%sFLUX and %s); one at a time can be read: make "
          "a file of each with spex coadd",
          file.name(), prefix, hdu.name));
    }
    prefix = hdu.name.substr(0, hdu.name.size() - 4);
  }
  return prefix;
}

// The scores of the first band whose columns exist; nullopt if there are none.
absl::StatusOr<std::optional<Scores>> ReadScores(const FitsFile& file, int64_t fibres) {
  const Hdu* hdu = file.Find({"SCORES"});
  if (hdu == nullptr) return std::nullopt;
  SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(*hdu));
  for (const char band : {'B', 'R', 'Z'}) {
    Scores scores;
    scores.band = band;
    bool complete = true;
    for (const ScoreColumn& column : kScoreColumns)
      complete &= column.optional || view.Find(absl::StrFormat("%s_%c", column.stem, band)) != nullptr;
    if (!complete) continue;
    if (view.rows() != fibres) {
      return hdu->Error(absl::StrFormat("has %d rows, the frame %d fibres", view.rows(), fibres));
    }
    for (const ScoreColumn& score : kScoreColumns) {
      const Column* column = view.Find(absl::StrFormat("%s_%c", score.stem, band));
      if (column == nullptr) continue;
      std::vector<double>& values = scores.*score.values;
      values.resize(static_cast<size_t>(fibres));
      for (int64_t row = 0; row < fibres; ++row) {
        SPEXD_RETURN_IF_ERROR(view.Numbers(row, *column, absl::MakeSpan(values.data() + row, 1)));
      }
    }
    return scores;
  }
  return std::nullopt;
}

// Reads row indices from an image of integers or the column FIBER of a table.
absl::StatusOr<std::vector<int>> ReadFibres(const Hdu& hdu) {
  std::vector<double> numbers;
  if (hdu.IsTable() && !hdu.IsTrue("ZIMAGE")) {
    SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(hdu));
    SPEXD_ASSIGN_OR_RETURN(const Column* column, view.Get("FIBER"));
    if (view.rows() > kMaxFibres) {
      return hdu.Error(absl::StrFormat("has %d rows, the limit is %d", view.rows(), kMaxFibres));
    }
    for (int64_t row = 0; row < view.rows(); ++row) {
      SPEXD_RETURN_IF_ERROR(view.Numbers(row, *column, absl::MakeSpan(&numbers.emplace_back(), 1)));
    }
  } else {
    SPEXD_ASSIGN_OR_RETURN(const auto values, (ReadImage<double, 2>(hdu)));
    numbers.assign(values.flat().begin(), values.flat().end());
  }
  std::vector<int> fibres;
  for (double number : numbers) {
    if (!(number >= 0 && number < kMaxFibres) || number != std::floor(number)) {
      return hdu.Error(absl::StrFormat("names fibre %g, must be an integer 0 to %d", number, kMaxFibres - 1));
    }
    fibres.push_back(static_cast<int>(number));
  }
  return fibres;
}

}  // namespace

absl::StatusOr<Frame> ReadFrame(const Source& source, const Workers& workers) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const std::string prefix, PrefixOf(file));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* flux, file.Get({prefix + "FLUX"}));
  Frame frame;
  SPEXD_ASSIGN_OR_RETURN(CameraSpectra camera, ReadCameraSpectra(file, {.prefix = prefix}, workers));
  frame.grid = camera.grid;
  frame.spectra = std::move(camera.spectra);
  const int64_t fibres = frame.spectra.flux.shape(0);
  SPEXD_ASSIGN_OR_RETURN(frame.scores, ReadScores(file, fibres));
  if (const Hdu* fibermap = file.Find({"FIBERMAP"})) {
    SPEXD_ASSIGN_OR_RETURN(frame.origin.fibermap, ReadRawTable(*fibermap));
    if (frame.origin.fibermap->rows != fibres) {
      return fibermap->Error(absl::StrFormat("has %d rows, must have one for each of the %d spectra of FLUX",
                                             frame.origin.fibermap->rows, fibres));
    }
  }
  const std::optional<int64_t> first =
      flux->Has("SPECMIN") ? flux->Integer("SPECMIN") : flux->Integer("FIBERMIN");
  const int64_t first_fibre = first && *first >= 0 && *first <= INT32_MAX / 2 ? *first : 0;
  frame.fibres = {static_cast<int>(first_fibre), static_cast<int>(fibres)};
  // The first header of a file of spectra states their origin.
  const std::vector<std::string>& cards = prefix.empty() ? flux->cards : file.hdus().front().cards;
  ReadOrigin(cards, frame.origin);
  SPEXD_ASSIGN_OR_RETURN(frame.origin.traces, ReadTraceTable(file, cards, fibres));
  return frame;
}

absl::StatusOr<std::vector<std::string>> ReadFrameCards(const Source& source) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* flux, file.Get({"FLUX"}));
  std::vector<std::string> cards;
  std::copy_if(flux->cards.begin(), flux->cards.end(), std::back_inserter(cards),
               [](const std::string& card) {
                 return CardKeyword(card) != "CHECKSUM" && CardKeyword(card) != "DATASUM";
               });
  return cards;
}

absl::StatusOr<Truth> ReadTruth(const Source& source) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* flux, file.Get({"FLUX"}));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* fibres, file.Get({"FIBER", "FIBERS"}));
  Truth truth;
  SPEXD_ASSIGN_OR_RETURN(truth.wave, ReadWavelengths(file, ""));
  SPEXD_ASSIGN_OR_RETURN(truth.fibres, ReadFibres(*fibres));
  SPEXD_ASSIGN_OR_RETURN(truth.flux, (ReadImage<float, 2>(*flux)));
  SPEXD_RETURN_IF_ERROR(CheckSpectraShape(*flux, truth.flux.shape(),
                                          static_cast<int64_t>(truth.fibres.size()),
                                          static_cast<int64_t>(truth.wave.size())));
  return truth;
}

namespace {

template <typename T, size_t N>
absl::StatusOr<Array<T, N>> ReadOneImage(const Source& source, const std::string& name,
                                         const Workers& workers = {}) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({name}));
  return ReadImage<T, N>(*hdu, workers);
}

}  // namespace

absl::StatusOr<Array<float, 2>> ReadImageHdu(const Source& source, const std::string& hdu) {
  return ReadOneImage<float, 2>(source, hdu);
}

absl::StatusOr<Array<double, 2>> ReadImageHduDouble(const Source& source, const std::string& hdu,
                                                    const Workers& workers) {
  return ReadOneImage<double, 2>(source, hdu, workers);
}

absl::StatusOr<Array<double, 3>> ReadCubeHduDouble(const Source& source, const std::string& hdu) {
  return ReadOneImage<double, 3>(source, hdu);
}

}  // namespace spexd
