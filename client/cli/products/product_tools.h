// Makes the products of frames in this process.
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

// What all frames of a command have in common: inputs that are read once, and who makes the products.
struct ProductTools {
  CameraFiberflats fiberflats;
  // The library of velocities. Its error is that of the velocities alone; Cancelled: none was named.
  absl::StatusOr<TemplateLibrary> templates = absl::CancelledError("no templates are named");
  bool sky_subtracted = false;
  ChosenAnalyser analyser;
  bool fall_back = false;  // processors make what the analyser cannot
  int threads = 1;
};

// Whether a GPU shall make products where there is one. To wake a device up for less than velocities takes
// longer than processors do.
bool MayTakeGpu(bool velocities, const EngineChoice& where);

// Reads the files of `inputs`. Errors of CameraFiberflats::Load. The analyser is left out.
absl::StatusOr<ProductTools> LoadTools(const ProductInputs& inputs, int threads);

// Takes the analyser that `where` says, and tells on stderr if that is not the one asked for, unless `quiet`.
// Errors of ChooseAnalyser.
absl::Status TakeAnalyser(const EngineChoice& where, bool quiet, ProductTools* tools);

// The products that have files in `asked`, each with a status of its own. `resident`: null, or the frame as
// its extraction left it on a device. After a stop, those that are not made yet are Cancelled. An error of
// all: those of Analyse, and InvalidArgument if there is no fiberflat of the frame's camera. Safe to call
// from many threads.
absl::StatusOr<NamedProducts> MakeProducts(const Frame& frame, const DeviceSpectra* resident,
                                           const ProductPaths& asked, const ProductTools& tools,
                                           std::stop_token stop = {});

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_PRODUCTS_PRODUCT_TOOLS_H_
