#include "client/cli/batch/run_batch_at.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "client/cli/joint/local_work.h"
#include "client/cli/joint/remote_work.h"
#include "client/cli/products/product_tools.h"
#include "client/connection/grpc_connection.h"
#include "client/embedded/embedded_extractor.h"
#include "client/embedded/shared_psfs.h"
#include "client/extract_client.h"
#include "core/base/status_macros.h"

namespace spexd::cli {
namespace {

constexpr int kFramesAtOncePerServer = 4;
constexpr int kFramesAtOncePerDevice = 8;  // some compute while others are read, written and hashed
constexpr int kFramesAtOnceOnTheCpu = 4;

absl::StatusOr<BatchEnd> RunRemotely(const WhereFlags& where, const JobFlags& job, FrameSource* source,
                                     BatchOptions batch, const std::stop_token& stop) {
  const ProductInputs& inputs = batch.products.inputs;
  SPEXD_ASSIGN_OR_RETURN(const auto directory, client::OpenDirectory(where.server));
  SPEXD_ASSIGN_OR_RETURN(const client::Servers servers, directory->Find());
  SPEXD_ASSIGN_OR_RETURN(const NamedFiberflats fiberflats, NamedFiberflats::Load(inputs.fiberflats));
  std::unique_ptr<UnitWork> exposures;
  if (batch.products.of_exposures()) {
    SPEXD_ASSIGN_OR_RETURN(exposures,
                           RemoteWork::Prepare(where.server, job, JointFlags(), inputs, /*quiet=*/true));
  }
  if (batch.in_flight == 0) {
    batch.in_flight =
        std::min<int>(kFramesAtOncePerServer * static_cast<int>(servers.size()), kMaxFramesAtOnce);
  }
  client::RemoteOptions remote;
  remote.upload = job.upload;
  client::RemoteExtractor extractor(directory->source(), remote);
  const BatchWorkers workers = {.extractor = &extractor,
                                .fiberflats = &fiberflats,
                                .exposures = exposures.get(),
                                .threads = FileThreads(where)};
  return RunBatch(source, batch, workers, stop);
}

absl::StatusOr<BatchEnd> RunEmbedded(const WhereFlags& where, FrameSource* source, BatchOptions batch,
                                     const std::stop_token& stop) {
  const BatchProducts& products = batch.products;
  SPEXD_ASSIGN_OR_RETURN(const EngineChoice choice, MakeChoice(where));
  HideOtherDevices(choice);
  SPEXD_ASSIGN_OR_RETURN(const ChosenEngine chosen, ChooseEngine(choice));
  const std::string note =
      NoteOnCpu("running on the CPU", chosen.note, TellsWhyCpu(batch.verbose, batch.quiet));
  if (!note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
  Engine* const engine = chosen.engine.get();
  const int devices = static_cast<int>(engine->Devices().size());
  if (batch.in_flight == 0) {
    batch.in_flight = devices > 0 ? kFramesAtOncePerDevice * devices : kFramesAtOnceOnTheCpu;
  }
  // The frames in flight share the processors.
  const int threads = std::max(1, FileThreads(where) / batch.in_flight);
  SPEXD_ASSIGN_OR_RETURN(const NamedFiberflats fiberflats, NamedFiberflats::Load(products.inputs.fiberflats));
  const auto tools = std::make_shared<ProductTools>();
  SPEXD_ASSIGN_OR_RETURN(*tools, LoadTools(products.inputs, threads));
  if (!products.inputs.templates.empty()) SPEXD_RETURN_IF_ERROR(tools->templates.status());
  const bool by_device = devices > 0 && products.any() && MayTakeGpu(tools->templates.ok(), choice);
  if (by_device) SPEXD_RETURN_IF_ERROR(TakeAnalyser(choice, batch.quiet, tools.get()));
  std::unique_ptr<UnitWork> exposures;
  if (products.of_exposures()) {
    SPEXD_ASSIGN_OR_RETURN(exposures, LocalWork::Prepare(JointFlags(), tools, /*quiet=*/true));
  }
  using Keep = client::SharedPsfs::Keep;
  client::SharedPsfs shared(source->Psfs(),
                            source->Count().has_value() ? Keep::kUntilTheLastJob : Keep::kAlways);
  client::EmbeddedExtractor extractor(engine, FileThreads(where), &shared);
  const BatchWorkers workers = {.extractor = &extractor,
                                .tools = tools.get(),
                                .fiberflats = &fiberflats,
                                .exposures = exposures.get(),
                                .keep_on_device = by_device,
                                .threads = threads,
                                .on_unused = [&shared](const client::Job& job) {
                                  if (shared.Shares(job.psf)) shared.EndJob(job.psf);
                                }};
  return RunBatch(source, batch, workers, stop);
}

}  // namespace

absl::StatusOr<BatchEnd> RunBatchAt(const WhereFlags& where, const JobFlags& job, FrameSource* source,
                                    BatchOptions batch, const std::stop_token& stop) {
  return where.server.address.empty() ? RunEmbedded(where, source, std::move(batch), stop)
                                      : RunRemotely(where, job, source, std::move(batch), stop);
}

}  // namespace spexd::cli
