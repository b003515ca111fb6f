// Assembly of bundles into a frame, in any order of arrival.
#ifndef SPEXD_CORE_FRAME_FRAME_ASSEMBLER_H_
#define SPEXD_CORE_FRAME_FRAME_ASSEMBLER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/frame/bundle_spectra.h"
#include "core/frame/fit_quality.h"
#include "core/frame/summary.h"
#include "core/model/frame.h"

namespace spexd {

// Results that need all bundles. They are small, so the server sends them and the client applies them.
struct FrameSummary {
  std::vector<int64_t>
      bad2dfit;  // flat indices (fibre * bins + bin) of bins whose MASK gains BAD2DFIT, ascending
  std::optional<FrameFit> fit;   // none if the server does not send it
  std::optional<Scores> scores;  // none if not requested or if the grid lies outside the camera's window
  std::vector<std::string> failed_bundles;  // "bundle 3 (fibres 75-99): reason"
  // Sentences about the inputs that a user should know of, although the job went well.
  std::vector<std::string> warnings;
  // The largest residual of the bundles' fluxes (see BundleResult), including bundles that failed; none if
  // the server does not send it.
  std::optional<double> largest_residual;
  // The largest root error (see BundleResult), likewise.
  std::optional<double> largest_root_error;
  int64_t masked_bins = 0;  // bins with MASK != 0 in the finished frame
  int64_t nodata_bins = 0;
};

class FrameAssembler {
 public:
  // rows, columns: size of the model image; 0 if no model is requested.
  FrameAssembler(const WavelengthGrid& grid, FibreRange fibres, int model_rows = 0, int model_columns = 0);
  FrameAssembler(FrameAssembler&&) = default;
  FrameAssembler& operator=(FrameAssembler&&) = default;
  // Makes an assembler that only checks and summarises, and makes no frame. It copies nothing: the bundles
  // that are added must live until Summarise.
  static FrameAssembler ForSummary(const WavelengthGrid& grid, FibreRange fibres);

  // The spectra of all fibres. Values that the caller writes here before it adds their bundle need not be in
  // the bundle. REQUIRES: not ForSummary.
  Spectra* spectra() { return &spectra_; }
  // Adds a bundle. `in_place`: its values were written to spectra(). InvalidArgument if its shape or fibres
  // do not fit, or if it was added before.
  absl::Status Add(const BundleSpectra& bundle, bool in_place = false);
  // Whether all fibres have arrived.
  bool complete() const;

  // Computes BAD2DFIT and scores from the bundles added, on up to `threads` threads. REQUIRES: complete().
  FrameSummary Summarise(bool scores, int threads = 1) const;
  // Returns the frame with the summary's bits and scores. Moves the spectra out. REQUIRES: complete(), not
  // ForSummary.
  Frame Finish(FrameOrigin origin, const FrameSummary& summary);
  // The sum of the bundles' models in bundle order, whatever their order of arrival. REQUIRES: complete(),
  // and a model was requested.
  Array<float, 2> Model() const;

 private:
  FrameAssembler(const WavelengthGrid& grid, FibreRange fibres, Spectra spectra, int model_rows,
                 int model_columns);

  WavelengthGrid grid_;
  FibreRange fibres_;
  Spectra spectra_;   // those of one fibre without data, if ForSummary
  SpectraView view_;  // view of spectra_, or of the bundles
  bool summary_only_ = false;
  std::vector<bool> present_;  // [fibre]
  int model_rows_, model_columns_;
  std::map<int, ModelWindow> models_;          // key: bundle
  std::map<int, std::string> failed_bundles_;  // key: bundle
  double largest_residual_ = 0, largest_root_error_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_FRAME_ASSEMBLER_H_
