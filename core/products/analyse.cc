#include "core/products/analyse.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "core/analysis/usable_spectra.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/table_file.h"
#include "core/frame/summary.h"

namespace spexd {

namespace {

// Fatal bits of FIBERSTATUS, numbered as in desispec's fibermask.
constexpr int64_t kFatal = 1 << 2      // BROKENFIBER
                           | 1 << 8    // MISSINGPOSITION
                           | 1 << 9    // BADPOSITION
                           | 1 << 16   // BADFIBER
                           | 1 << 17   // BADTRACE
                           | 1 << 18   // BADFLAT
                           | 1 << 19   // BADARC
                           | 1 << 20   // MANYBADCOL
                           | 1 << 21;  // MANYREJECTED
constexpr int64_t kVariableThroughput = 1 << 14;
constexpr int64_t kBadAmplifierB = 1 << 22, kBadAmplifierR = 1 << 23, kBadAmplifierZ = 1 << 24;

int64_t BadAmplifier(const Frame& frame) {
  switch (ArmOf(frame)) {
    case 'B':
      return kBadAmplifierB;
    case 'R':
      return kBadAmplifierR;
    default:
      return kBadAmplifierZ;
  }
}

}  // namespace

char ArmOf(const Frame& frame) {
  const std::string camera = FindString(frame.origin.image_cards, "CAMERA").value_or("");
  const char letter = camera.empty() ? ' ' : absl::ascii_toupper(static_cast<unsigned char>(camera[0]));
  return letter == 'B' || letter == 'R' || letter == 'Z' ? letter : BandOf(frame.grid);
}

const char* StatusColumn(const RawTable& fibermap) {
  return HasColumn(fibermap, "FIBERSTATUS") ? "FIBERSTATUS" : "COADD_FIBERSTATUS";
}

bool IsCoadd(const Frame& frame) {
  return frame.origin.fibermap.has_value() && HasColumn(*frame.origin.fibermap, "COADD_NUMEXP");
}

absl::StatusOr<FibreKinds> FibreKindsOf(const Frame& frame) {
  if (!frame.origin.fibermap.has_value()) {
    return absl::InvalidArgumentError("frame: has no FIBERMAP, which tells the sky fibres");
  }
  const RawTable& fibermap = *frame.origin.fibermap;
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> types, TextColumn(fibermap, "OBJTYPE"));
  if (static_cast<int64_t>(types.size()) != frame.spectra.flux.shape(0)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("frame: FIBERMAP has %d rows, must have one for each of the %d spectra", types.size(),
                        frame.spectra.flux.shape(0)));
  }
  std::vector<int64_t> status(types.size(), 0);
  if (const char* const column = StatusColumn(fibermap); HasColumn(fibermap, column)) {
    SPEXD_ASSIGN_OR_RETURN(status, IntegerColumn(fibermap, column));
  }
  const int64_t fatal = kFatal | BadAmplifier(frame);
  FibreKinds kinds;
  for (size_t row = 0; row < types.size(); ++row) {
    kinds.fatal.push_back((status[row] & fatal) != 0);
    if (types[row] != "SKY") {
      kinds.targets.push_back(static_cast<int>(row));
    } else if ((status[row] & (fatal | kVariableThroughput)) == 0) {
      kinds.good_sky.push_back(static_cast<int>(row));
    }
  }
  return kinds;
}

const char* MakerOf(Product product, const FrameProducts& products) {
  const std::vector<Product>& there = products.by_device;
  return std::find(there.begin(), there.end(), product) != there.end() ? "cuda" : "cpu";
}

namespace {

bool CannotOnDevice(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
}

// Makes one product after the other and reports each to the observer.
class Analyst {
 public:
  Analyst(const AnalysisRequest& request, FibreKinds kinds, FrameAnalysis* analysis,
          const ProductObserver& observer)
      : request_(request), kinds_(std::move(kinds)), analysis_(*analysis), observer_(observer) {
    products_.targets = kinds_.targets;
  }

  FrameProducts Run() {
    if (!has_no_sky()) Make(Product::kSky, [this] { MakeSky(); });
    if (request_.lines) Make(Product::kLines, [this] { products_.lines = Lines(); });
    if (request_.velocities) Make(Product::kVelocity, [this] { products_.velocities = Velocities(); });
    return std::move(products_);
  }

 private:
  template <typename Step>
  void Make(Product product, const Step& step) {
    const auto begin = std::chrono::steady_clock::now();
    step();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (observer_) observer_(product, products_, took.count());
  }
  // Makes a product with the analysis, or on CPUs if the analysis' device cannot make it and the request
  // allows that.
  template <typename Analysed, typename Processed>
  auto MadeBy(Product product, const Analysed& analysed, const Processed& processed) {
    auto made = analysed();
    if (request_.fall_back && CannotOnDevice(made.status())) {
      made = processed();
    } else if (made.ok() && analysis_.by_device()) {
      products_.by_device.push_back(product);
    }
    return made;
  }
  void MakeSky() {
    const SkyOptions options = {.threads = request_.threads, .stop = request_.stop};
    products_.sky = MadeBy(
        Product::kSky, [&] { return analysis_.FitSky(kinds_.good_sky, options); },
        [&] { return analysis_.FrameAnalysis::FitSky(kinds_.good_sky, options); });
  }
  bool has_no_sky() const { return request_.sky_subtracted || request_.sky != nullptr; }
  absl::Status SpectraWithoutSky() const { return has_no_sky() ? absl::OkStatus() : products_.sky.status(); }
  absl::StatusOr<std::vector<LineRedshift>> Lines() {
    SPEXD_RETURN_IF_ERROR(SpectraWithoutSky());
    LineOptions options = request_.line_options;
    options.threads = request_.threads;
    options.stop = request_.stop;
    return MadeBy(
        Product::kLines, [&] { return analysis_.FindLineRedshifts(products_.targets, options); },
        [&] { return analysis_.FrameAnalysis::FindLineRedshifts(products_.targets, options); });
  }
  absl::StatusOr<std::vector<StarVelocity>> Velocities() {
    SPEXD_RETURN_IF_ERROR(SpectraWithoutSky());
    if (request_.templates == nullptr) return absl::InvalidArgumentError("velocity: there are no templates");
    VelocityOptions options = request_.velocity_options;
    options.threads = request_.threads;
    options.stop = request_.stop;
    const TemplateLibrary& library = *request_.templates;
    return MadeBy(
        Product::kVelocity, [&] { return analysis_.FitVelocities(products_.targets, library, options); },
        [&] { return analysis_.FrameAnalysis::FitVelocities(products_.targets, library, options); });
  }

  const AnalysisRequest& request_;
  const FibreKinds kinds_;
  FrameAnalysis& analysis_;
  const ProductObserver& observer_;
  FrameProducts products_;
};

absl::StatusOr<std::unique_ptr<FrameAnalysis>> Begin(const AnalysisRequest& request, UsableSpectra spectra) {
  // The device has the frame's own resolution, not a mended one.
  const DeviceSpectra* const resident = spectra.mended_resolution == nullptr ? request.resident : nullptr;
  if (request.analyser != nullptr) return request.analyser->Begin(std::move(spectra), resident);
  return std::make_unique<FrameAnalysis>(std::move(spectra));
}

}  // namespace

absl::StatusOr<FrameProducts> Analyse(const Frame& frame, const AnalysisRequest& request,
                                      const ProductObserver& observer) {
  SPEXD_ASSIGN_OR_RETURN(FibreKinds kinds, FibreKindsOf(frame));
  SPEXD_ASSIGN_OR_RETURN(UsableSpectra spectra, MakeUsable(frame, {.threads = request.threads}));
  DropFibres(kinds.fatal, &spectra);
  if (request.fiberflat != nullptr)
    SPEXD_RETURN_IF_ERROR(ApplyFiberflat(*request.fiberflat, frame, &spectra));
  SPEXD_ASSIGN_OR_RETURN(const auto analysis, Begin(request, std::move(spectra)));
  if (request.sky != nullptr) SPEXD_RETURN_IF_ERROR(analysis->TakeSky(*request.sky));
  return Analyst(request, std::move(kinds), analysis.get(), observer).Run();
}

AnalysisParts AnalysisPartsOf(const AnalysisSize& size) {
  // bytes for each fibre and bin; without a sky, a copy of the resolution
  constexpr int64_t kUsable = 20, kFiberflat = 12, kSky = 44, kSkyFit = 16, kResolution = 44;
  constexpr int64_t kBands = 64 * 11, kProfiles = 8 * 64;  // bytes for each bin
  constexpr int64_t kStack = int64_t{2} << 20;             // bytes for each thread
  const int64_t spectra = size.fibres * size.bins;
  const int64_t beside = size.sky ? kFiberflat + kSky + kSkyFit : kResolution;
  AnalysisParts parts = {(kUsable + beside) * spectra + (kBands + kProfiles) * size.bins,
                         kStack * size.threads};
  if (size.templates == 0) return parts;
  const VelocityOptions scan;
  const int64_t velocities = static_cast<int64_t>(ScannedVelocities(scan).size());
  constexpr int64_t kWeighted = 4 * 11, kFits = 3 * 8;  // bytes for each fibre and bin: scan's rows, results
  constexpr int64_t kPositions = 72;                    // bytes for each velocity and bin
  constexpr int64_t kShifted = 4 * 2 * 4;               // bytes for each velocity, bin and thread of a task
  constexpr int64_t kProducts = 64 * 11 * 4 * 4;        // bytes for each velocity and thread: one task
  constexpr int64_t kFit = 8 * 200, kLibrary = 64;      // bytes for each bin and thread; for each sample
  constexpr int64_t kScan = 8, kBest = 2 * 8;  // bytes for each target and velocity: each template, the best
  const int64_t scans =
      kScan * std::min(size.fibres, TargetsAtOnce(size.templates, velocities)) * velocities * size.templates;
  parts.kept +=
      kFits * spectra + kBest * size.fibres * velocities + scans + kLibrary * size.templates * size.samples;
  parts.working += kWeighted * spectra + kPositions * velocities * size.bins + scans +
                   ((kShifted * velocities + kFit) * size.bins + kProducts * velocities) * size.threads;
  return parts;
}

int64_t AnalysisBytes(const AnalysisSize& size) {
  const AnalysisParts parts = AnalysisPartsOf(size);
  return parts.kept + parts.working;
}

}  // namespace spexd
