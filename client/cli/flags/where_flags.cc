#include "client/cli/flags/where_flags.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/flags/server_flags.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "cuda/loader/device_list.h"

namespace spexd::cli {

void AddWhereFlags(CLI::App* command, WhereFlags* flags) {
  WhereFlags& f = *flags;
  AddServerFlags(command,
                 "Servers to run on, separated by commas: host:port, unix:/path, or dns:///name:port for all "
                 "addresses of a name; the first that accepts the job runs it. Default: run in this process",
                 "Where", &f.server);
  CLI::Option* device =
      command->add_option("--device", f.device, "Engine. auto: CUDA, or the CPU if CUDA is not available")
          ->capture_default_str()
          ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
          ->group("Where");
  command->add_option("--devices", f.devices, "CUDA devices by their CUDA numbers, such as 0,2. Default: 0")
      ->type_name("LIST")
      ->group("Where");
  CLI::Option* no_gpu = command->add_flag("--no-gpu", f.no_gpu, "Same as --device cpu")->group("Where");
  command
      ->add_flag_callback(
          "--gpu,--use-gpu", [&f] { f.device = "cuda"; }, "Same as --device cuda")
      ->excludes(no_gpu)
      ->excludes(device)
      ->group("Where");
  command
      ->add_option("--threads", f.threads,
                   "Threads of the CPU engine, of products, of reading and of writing. 0: one per processor")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024))
      ->group("Where");
}

CLI::Option* AddInFlightFlag(CLI::App* command, const std::string& help, int* in_flight) {
  return command
      ->add_option("--in-flight", *in_flight,
                   absl::StrCat(help, ". Default: 4 for each server, 8 for each GPU, 4 on the CPU"))
      ->check(CLI::Range(1, kMaxFramesAtOnce))
      ->group("Where");
}

absl::StatusOr<EngineChoice> MakeChoice(const WhereFlags& flags) {
  EngineChoice choice;
  choice.device = flags.no_gpu ? "cpu" : flags.device;
  if (flags.devices.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(choice.devices, ParseDeviceList(*flags.devices));
  }
  choice.threads = flags.threads;
  choice.one_job = true;
  return choice;
}

int FileThreads(const WhereFlags& flags) { return flags.threads > 0 ? flags.threads : AvailableCpus(); }

void HideOtherDevices(const EngineChoice& choice) {
  if (choice.device != "cpu" && choice.devices.empty()) setenv("CUDA_VISIBLE_DEVICES", "0", /*overwrite=*/0);
}

bool HasGpu() {
  for (const char* device : {"/dev/nvidiactl", "/dev/dxg"}) {
    if (access(device, F_OK) == 0) return true;
  }
  return false;
}

bool TellsWhyCpu(bool verbose, bool quiet) { return (verbose || HasGpu()) && !quiet; }

std::string WithoutPlaces(const std::string& why) { return why.substr(0, why.find(": neither ")); }

std::string NoteOnCpu(const std::string& what, const std::string& why, bool tell) {
  if (why.empty() || !tell) return "";
  return absl::StrCat("spex: ", what, ": ", WithoutPlaces(why));
}

void ReportIdleFlags(const JobFlags& job, const WhereFlags& where, bool quiet) {
  std::vector<std::string> idle = IdleFlags(job);
  if (!where.server.address.empty()) {
    if (where.no_gpu) idle.push_back("--no-gpu");
    if (where.device != "auto") idle.push_back("--device");
    if (where.devices.has_value()) idle.push_back("--devices");
  } else {
    if (job.upload) idle.push_back("--upload");
    if (job.spec.priority != 0) idle.push_back("--priority");
  }
  if (idle.empty() || quiet) return;
  std::fprintf(stderr, "spex: without effect here: %s\n", absl::StrJoin(idle, ", ").c_str());
}

}  // namespace spexd::cli
