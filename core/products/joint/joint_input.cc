#include "core/products/joint/joint_input.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/images/image_hdu.h"
#include "core/fits/spectra_hdus.h"
#include "core/products/analyse.h"
#include "core/products/inputs/outline_bytes.h"
#include "core/products/joint/exposure_spectra.h"
#include "core/products/product_files.h"

namespace spexd {
namespace {

// Adds up the memory of the HDUs of a file of spectra.
class OutlineReader {
 public:
  // Estimates for any number of threads that read the file.
  OutlineReader(const FitsFile& file, const std::stop_token& stop)
      : file_(file), bytes_(std::numeric_limits<int>::max(), stop) {}

  absl::StatusOr<SpectraOutline> Read() {
    if (file_.Find({"FLUX"}) != nullptr) {
      outline_.kind = SpectraKind::kFrame;
      SPEXD_RETURN_IF_ERROR(AddArm(""));
    } else {
      SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> arms, ArmsOfSpectra(file_));
      for (const std::string& arm : arms) SPEXD_RETURN_IF_ERROR(AddArm(arm + "_"));
    }
    SPEXD_RETURN_IF_ERROR(AddTables());
    if (bytes_.Add(file_.structure_bytes(), 1) && bytes_.Add(outline_.table_bytes, 1) &&
        bytes_.Add(outline_.rows, kScoreBytes) && bytes_.Add(kTraceBytes, 1)) {
      outline_.decode_bytes = bytes_.sum();
      return std::move(outline_);
    }
    return absl::InvalidArgumentError(absl::StrCat(file_.name(), ": has more spectra than any memory holds"));
  }

 private:
  // Memory that frames add: five scores of each row, and trace shifts.
  static constexpr int64_t kScoreBytes = 5 * sizeof(double), kTraceBytes = 1 << 16;

  bool of_targets() const { return outline_.kind == SpectraKind::kTargets; }

  absl::Status AddArm(const std::string& prefix) {
    SPEXD_ASSIGN_OR_RETURN(const Hdu* const flux, file_.Get({prefix + "FLUX"}));
    SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(*flux));
    if (layout.axes.size() > 2)
      return flux->Error(absl::StrFormat("has %d axes, must have 2", layout.axes.size()));
    const int64_t bins = layout.axes[0], rows = layout.pixels / bins;
    if (const int max_rows = of_targets() ? kMaxTargetRows : kMaxFibres; rows > max_rows)
      return flux->Error(absl::StrFormat("has %d fibres, the limit is %d", rows, max_rows));
    if (!outline_.arms.empty() && rows != outline_.rows)
      return flux->Error(absl::StrFormat("has %d rows, the arm before it %d; all arms must have the same",
                                         rows, outline_.rows));
    outline_.rows = rows;
    SPEXD_RETURN_IF_ERROR(bytes_.AddImage(*flux, layout, sizeof(float)));
    SPEXD_RETURN_IF_ERROR(AddWavelengths(prefix, bins));
    SPEXD_ASSIGN_OR_RETURN(const Hdu* const ivar, file_.Get({prefix + "IVAR"}));
    SPEXD_RETURN_IF_ERROR(AddPlane(*ivar, layout, sizeof(float)));
    SPEXD_RETURN_IF_ERROR(AddOptionalPlane(prefix + "MASK", layout, sizeof(uint32_t)));
    if (!of_targets()) SPEXD_RETURN_IF_ERROR(AddOptionalPlane(prefix + "CHI2PIX", layout, sizeof(float)));
    SPEXD_ASSIGN_OR_RETURN(const int64_t diagonals, AddResolution(prefix, bins));
    // B_ is of one camera, BR_ of two
    outline_.arms.push_back({bins, diagonals, prefix.size() > 2});
    return absl::OkStatus();
  }

  absl::Status AddWavelengths(const std::string& prefix, int64_t bins) {
    SPEXD_ASSIGN_OR_RETURN(const Hdu* const wave, file_.Get({prefix + "WAVELENGTH", prefix + "WAVE"}));
    SPEXD_ASSIGN_OR_RETURN(const ImageLayout line, LayoutOf(*wave));
    if (line.pixels != bins || line.axes[0] != bins || bins > kMaxWavelengthBins) {
      return wave->Error(absl::StrFormat("has shape %s, must be the %d wavelengths of %sFLUX, at most %d",
                                         line.ShapeText(), bins, prefix, kMaxWavelengthBins));
    }
    return bytes_.AddImage(*wave, line, 2 * sizeof(double));  // as read, and as checked
  }

  absl::Status AddPlane(const Hdu& hdu, const ImageLayout& like, int64_t pixel_bytes) {
    SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(hdu));
    if (layout.pixels != like.pixels || layout.axes[0] != like.axes[0] || layout.axes.size() > 2) {
      return hdu.Error(absl::StrFormat("has shape %s, must be %d fibres x %d wavelengths", layout.ShapeText(),
                                       outline_.rows, like.axes[0]));
    }
    return bytes_.AddImage(hdu, layout, pixel_bytes);
  }

  // Adds a plane that is filled with 0 if it is missing.
  absl::Status AddOptionalPlane(const std::string& name, const ImageLayout& like, int64_t pixel_bytes) {
    if (const Hdu* const hdu = file_.Find({name})) return AddPlane(*hdu, like, pixel_bytes);
    bytes_.Add(like.pixels, pixel_bytes);  // no more than the flux, for which there is memory
    return absl::OkStatus();
  }

  // Adds the resolution and returns its number of diagonals.
  absl::StatusOr<int64_t> AddResolution(const std::string& prefix, int64_t bins) {
    SPEXD_ASSIGN_OR_RETURN(const Hdu* const hdu, file_.Get({prefix + "RESOLUTION"}));
    SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(*hdu));
    const int64_t diagonals = layout.axes.size() > 1 ? layout.axes[1] : 1,
                  rows = layout.axes.size() > 2 ? layout.axes[2] : 1;
    if (layout.axes[0] != bins || rows != outline_.rows || diagonals % 2 != 1) {
      return hdu->Error(
          absl::StrFormat("has shape %s, must be %d fibres x an odd number of diagonals x %d wavelengths",
                          layout.ShapeText(), outline_.rows, bins));
    }
    SPEXD_RETURN_IF_ERROR(bytes_.AddImage(*hdu, layout, sizeof(float)));
    return diagonals;
  }

  absl::Status AddTables() {
    outline_.table_bytes = kCardCopyBytes * static_cast<int64_t>(CardsHdu().cards.size());
    if (of_targets()) SPEXD_RETURN_IF_ERROR(file_.Get({"FIBERMAP"}).status());
    for (const char* const name : {"FIBERMAP", "SCORES", "EXP_FIBERMAP"}) {
      const bool of_rows = absl::string_view(name) != "EXP_FIBERMAP";
      const bool kept = of_targets() || absl::string_view(name) == "FIBERMAP";
      const Hdu* const hdu = kept ? file_.Find({name}) : nullptr;
      if (hdu == nullptr) continue;
      SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(*hdu));
      if (of_rows && view.rows() != outline_.rows) {
        return hdu->Error(absl::StrFormat("has %d rows, must have one for each of the %d spectra",
                                          view.rows(), outline_.rows));
      }
      outline_.table_bytes +=
          static_cast<int64_t>(hdu->data.size()) + kCardCopyBytes * static_cast<int64_t>(hdu->cards.size());
    }
    return absl::OkStatus();
  }
  const Hdu& CardsHdu() const { return of_targets() ? file_.hdus().front() : *file_.Find({"FLUX"}); }

  const FitsFile& file_;
  OutlineBytes bytes_;
  SpectraOutline outline_;
};

absl::Status Named(const absl::Status& status, const std::string& name) {
  if (status.ok() || absl::StrContains(status.message(), name)) return status;
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

absl::StatusOr<Frame> WithoutSky(Frame frame, const Fiberflat* fiberflat, const Workers& workers) {
  AnalysisRequest request;
  request.fiberflat = fiberflat;
  request.threads = workers.threads;
  request.stop = workers.stop;
  SPEXD_ASSIGN_OR_RETURN(const FrameProducts products, Analyse(frame, request));
  SPEXD_RETURN_IF_ERROR(products.sky.status());
  return SkySubtracted(std::move(frame), *products.sky);
}

}  // namespace

absl::StatusOr<SpectraOutline> ReadSpectraOutline(const Source& source, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  return OutlineReader(file, stop).Read();
}

absl::StatusOr<SpectraInput> ReadSpectraInput(const Source& source, const Workers& workers) {
  SPEXD_ASSIGN_OR_RETURN(const SpectraKind kind, KindOfSpectra(source));
  SpectraInput input = {source.name(), {}};
  if (kind == SpectraKind::kFrame) {
    SPEXD_ASSIGN_OR_RETURN(input.spectra, ReadFrame(source, workers));
  } else {
    SPEXD_ASSIGN_OR_RETURN(input.spectra, ReadTargetSpectra(source, workers));
  }
  return input;
}

absl::Status SubtractOwnSky(const Fiberflat* fiberflat, bool sky_subtracted, const Workers& workers,
                            SpectraInput* input) {
  Frame* const frame = std::get_if<Frame>(&input->spectra);
  if (frame == nullptr) {
    if (fiberflat == nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        input->name, ": has spectra of targets, which are flat-fielded; leave out the fiberflat"));
  }
  if (sky_subtracted || !HasSky(*frame, input->name)) {
    if (fiberflat == nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(input->name,
                     ": has no sky in it, and a frame is divided by its fiberflat before its sky is "
                     "subtracted; leave out the fiberflat"));
  }
  absl::StatusOr<Frame> without = WithoutSky(std::move(*frame), fiberflat, workers);
  if (!without.ok()) return Named(without.status(), input->name);
  *frame = *std::move(without);
  return absl::OkStatus();
}

absl::StatusOr<TargetSpectra> JoinInputs(std::vector<SpectraInput> inputs) {
  const auto targets = std::find_if(inputs.begin(), inputs.end(), [](const SpectraInput& input) {
    return std::holds_alternative<TargetSpectra>(input.spectra);
  });
  if (targets != inputs.end()) {
    if (inputs.size() == 1) return std::get<TargetSpectra>(std::move(targets->spectra));
    const SpectraInput& other = targets == inputs.begin() ? inputs[1] : inputs[0];
    return absl::InvalidArgumentError(absl::StrCat(
        targets->name, ": has spectra of targets, which are analysed one file at a time; leave out ",
        other.name));
  }
  std::vector<NamedFrame> frames;
  for (SpectraInput& input : inputs)
    frames.push_back({std::move(input.name), std::get<Frame>(std::move(input.spectra))});
  return JoinFrames(std::move(frames));
}

absl::Status KeepArms(const std::vector<std::string>& letters, TargetSpectra* spectra) {
  if (letters.empty()) return absl::OkStatus();
  const std::string kept = absl::AsciiStrToUpper(absl::StrJoin(letters, ""));
  std::vector<std::string> there;
  for (const SpectraArm& arm : spectra->arms) {
    there.push_back(arm.name);
    const size_t own = static_cast<size_t>(std::count_if(
        arm.name.begin(), arm.name.end(), [&](char letter) { return absl::StrContains(kept, letter); }));
    if (own > 0 && own < arm.name.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "arms: the arm ", arm.name, " is of several cameras combined; name all of them, or none"));
    }
  }
  std::erase_if(spectra->arms, [&](const SpectraArm& arm) { return !absl::StrContains(kept, arm.name[0]); });
  if (!spectra->arms.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("arms: there is no such arm; there are ", absl::StrJoin(there, ", ")));
}

}  // namespace spexd
