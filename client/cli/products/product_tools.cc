#include "client/cli/products/product_tools.h"

#include <cstdio>
#include <utility>

#include "client/cli/flags/where_flags.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/source.h"
#include "core/products/analyse.h"
#include "core/products/template_file.h"

namespace spexd::cli {
namespace {

absl::StatusOr<TemplateLibrary> LoadTemplates(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  return ReadTemplates(source);
}

}  // namespace

bool MayTakeGpu(bool velocities, const EngineChoice& where) {
  return where.device != "cpu" && (velocities || where.device == "cuda" || !where.devices.empty());
}

absl::StatusOr<ProductTools> LoadTools(const ProductInputs& inputs, int threads) {
  ProductTools tools;
  SPEXD_ASSIGN_OR_RETURN(tools.fiberflats, CameraFiberflats::Load(inputs.fiberflats));
  if (!inputs.templates.empty()) tools.templates = LoadTemplates(inputs.templates);
  tools.sky_subtracted = inputs.sky_subtracted;
  tools.threads = threads;
  return tools;
}

absl::Status TakeAnalyser(const EngineChoice& where, bool quiet, ProductTools* tools) {
  SPEXD_ASSIGN_OR_RETURN(tools->analyser, ChooseAnalyser(where));
  tools->fall_back = where.device == "auto" && where.devices.empty();
  const std::string note = NoteOnCpu("products are made by processors", tools->analyser.note,
                                     TellsWhyCpu(/*verbose=*/false, quiet));
  if (!note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
  return absl::OkStatus();
}

absl::StatusOr<NamedProducts> MakeProducts(const Frame& frame, const DeviceSpectra* resident,
                                           const ProductPaths& asked, const ProductTools& tools,
                                           std::stop_token stop) {
  NamedProducts made;
  AnalysisRequest request;
  SPEXD_ASSIGN_OR_RETURN(request.fiberflat, tools.fiberflats.Of(frame));
  request.sky_subtracted = tools.sky_subtracted;
  request.lines = !asked.lines.empty();
  request.velocities = !asked.velocities.empty() && tools.templates.ok();
  if (request.velocities) {
    request.templates = &*tools.templates;
    made.parameters = tools.templates->names;
  }
  request.analyser = tools.analyser.analyser.get();
  request.fall_back = tools.fall_back;
  request.resident = resident;
  request.threads = tools.threads;
  request.stop = std::move(stop);
  SPEXD_ASSIGN_OR_RETURN(made.products, Analyse(frame, request));
  if (!asked.velocities.empty() && !tools.templates.ok()) {
    made.products.velocities = tools.templates.status();
  }
  return made;
}

}  // namespace spexd::cli
