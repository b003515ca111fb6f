#include "client/cli/batch/run_batch_at.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "client/cli/terminal/exit_code.h"
#include "client/connection/grpc_connection.h"
#include "client/embedded/embedded_extractor.h"
#include "client/embedded/shared_psfs.h"
#include "client/extract_client.h"

namespace spexd::cli {
namespace {

constexpr int kFramesAtOncePerServer = 4;
constexpr int kFramesAtOncePerDevice = 3;  // one computes, others are read and written
constexpr int kFramesAtOnceOnTheCpu = 2;

int RunRemotely(const WhereFlags& where, bool upload, const std::vector<FrameTask>& tasks, BatchOptions batch,
                const std::stop_token& stop) {
  const auto directory = client::OpenDirectory(where.server);
  if (!directory.ok()) return Fail(directory.status());
  const absl::StatusOr<client::Servers> servers = (*directory)->Find();
  if (!servers.ok()) return Fail(servers.status());
  if (batch.in_flight == 0) {
    batch.in_flight =
        std::min<int>(kFramesAtOncePerServer * static_cast<int>(servers->size()), kMaxFramesAtOnce);
  }
  client::RemoteOptions remote;
  remote.upload = upload;
  client::RemoteExtractor extractor((*directory)->source(), remote);
  return RunBatch(tasks, batch, &extractor, stop);
}

int RunEmbedded(const WhereFlags& where, const std::vector<FrameTask>& tasks, BatchOptions batch,
                const std::stop_token& stop) {
  const absl::StatusOr<EngineChoice> choice = MakeChoice(where);
  if (!choice.ok()) return Fail(choice.status());
  HideOtherDevices(*choice);
  const absl::StatusOr<ChosenEngine> chosen = ChooseEngine(*choice);
  if (!chosen.ok()) return Fail(chosen.status());
  const std::string note =
      NoteOnCpu("running on the CPU", chosen->note, TellsWhyCpu(batch.verbose, batch.quiet));
  if (!note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
  Engine* const engine = chosen->engine.get();
  if (batch.in_flight == 0) {
    const int devices = static_cast<int>(engine->Devices().size());
    batch.in_flight = devices > 0 ? kFramesAtOncePerDevice * devices : kFramesAtOnceOnTheCpu;
  }
  std::vector<std::string> psfs;
  for (const FrameTask& task : tasks) psfs.push_back(task.job.psf);
  client::SharedPsfs shared(psfs);
  batch.on_unused = [&shared](const client::Job& job) {
    if (shared.Shares(job.psf)) shared.EndJob(job.psf);
  };
  client::EmbeddedExtractor extractor(engine, FileThreads(where), &shared);
  return RunBatch(tasks, batch, &extractor, stop);
}

}  // namespace

int RunBatchAt(const WhereFlags& where, bool upload, const std::vector<FrameTask>& tasks, BatchOptions batch,
               const std::stop_token& stop) {
  batch.threads = FileThreads(where);
  return where.server.address.empty() ? RunEmbedded(where, tasks, std::move(batch), stop)
                                      : RunRemotely(where, upload, tasks, std::move(batch), stop);
}

}  // namespace spexd::cli
