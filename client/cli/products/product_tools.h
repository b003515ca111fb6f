// The making of frames' products in this process.
#ifndef SPEXD_CLIENT_CLI_PRODUCTS_PRODUCT_TOOLS_H_
#define SPEXD_CLIENT_CLI_PRODUCTS_PRODUCT_TOOLS_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "client/cli/flags/product_paths.h"
#include "client/cli/products/camera_fiberflats.h"
#include "core/analysis/velocity/template_library.h"
#include "core/extract/device_spectra.h"
#include "core/model/frame.h"
#include "cuda/loader/choose_analyser.h"
#include "cuda/loader/choose_engine.h"
#include "proto/assembler/job_outcome.h"

namespace spexd::cli {

// The tools for the products of all frames of a command: inputs that are read once, and the analyser.
struct ProductTools {
  CameraFiberflats fiberflats;
  // The library for velocities. An error concerns only the velocities. Cancelled: no library was named.
  absl::StatusOr<TemplateLibrary> templates = absl::CancelledError("no templates are named");
  bool sky_subtracted = false;
  ChosenAnalyser analyser;
  bool fall_back = false;  // processors make products that the analyser cannot make
  int threads = 1;
};

// Whether a GPU should make products if there is one. Without velocities, waking up a device takes longer
// than making the products on processors.
bool MayTakeGpu(bool velocities, const EngineChoice& where);

// Reads the files of `inputs`. Does not set the analyser. Errors as in CameraFiberflats::Load.
absl::StatusOr<ProductTools> LoadTools(const ProductInputs& inputs, int threads);

// Sets the analyser by `where`. Prints on stderr if it is not the requested one, unless `quiet`. Errors as in
// ChooseAnalyser.
absl::Status TakeAnalyser(const EngineChoice& where, bool quiet, ProductTools* tools);

// Makes the products that have files in `asked`. Each has a status of its own; after a stop request it is
// Cancelled. `resident`: the frame's spectra on a device; may be null. Errors that concern all products:
// those of Analyse; InvalidArgument: there is no fiberflat of the frame's camera. Safe to call from many
// threads.
absl::StatusOr<NamedProducts> MakeProducts(const Frame& frame, const DeviceSpectra* resident,
                                           const ProductPaths& asked, const ProductTools& tools,
                                           std::stop_token stop = {});

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_PRODUCTS_PRODUCT_TOOLS_H_
