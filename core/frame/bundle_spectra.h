// A finished bundle in float32, as messages and files carry it.
#ifndef SPEXD_CORE_FRAME_BUNDLE_SPECTRA_H_
#define SPEXD_CORE_FRAME_BUNDLE_SPECTRA_H_

#include "absl/status/status.h"
#include "core/extract/engine.h"
#include "core/model/frame.h"

namespace spexd {

struct BundleSpectra {
  int bundle = 0;
  FibreRange fibres;
  absl::Status status;                  // not OK if the bundle failed; then all its bins are NODATA
  double residual = 0, root_error = 0;  // see BundleResult
  Spectra spectra;
  ModelWindow model;  // empty unless requested
};

// Converts an engine's result. Rounds to float32 unless the engine did.
BundleSpectra ToBundleSpectra(BundleResult result);

}  // namespace spexd

#endif  // SPEXD_CORE_FRAME_BUNDLE_SPECTRA_H_
