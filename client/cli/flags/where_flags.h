// The flags that say where frames are extracted and analysed: in this process, on which device, or on
// servers.
#ifndef SPEXD_CLIENT_CLI_FLAGS_WHERE_FLAGS_H_
#define SPEXD_CLIENT_CLI_FLAGS_WHERE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/flags/job_flags.h"
#include "client/connection/grpc_connection.h"
#include "cuda/loader/choose_engine.h"

namespace spexd::cli {

inline constexpr int kMaxFramesAtOnce = 1000;

struct WhereFlags {
  client::ServerAddress server;  // address "": in this process
  bool no_gpu = false;
  int threads = 0;
  std::string device = "auto";
  std::optional<std::string> devices;
};

// Adds the flags of servers and devices, in the group Where.
void AddWhereFlags(CLI::App* command, WhereFlags* flags);
// Adds --in-flight, whose help begins with `help`, to the same group. 0: by where the frames are extracted.
CLI::Option* AddInFlightFlag(CLI::App* command, const std::string& help, int* in_flight);

// The engine that the flags ask for. InvalidArgument names what cannot be read.
absl::StatusOr<EngineChoice> MakeChoice(const WhereFlags& flags);
// Threads that read or write the files of a frame.
int FileThreads(const WhereFlags& flags);
// If there are several GPUs, hides those that the choice leaves alone: waking them up takes time, too.
void HideOtherDevices(const EngineChoice& choice);
// Whether the kernel has a driver for NVIDIA's GPUs, or, in a virtual machine of Windows, the host's.
bool HasGpu();
// Whether to report why the CPU is used: on machines with a GPU and with --verbose, but not if `quiet`.
bool TellsWhyCpu(bool verbose, bool quiet);
// A reason without the places where the module was looked for, which the error of --device cuda lists.
std::string WithoutPlaces(const std::string& why);
// One line that says what the CPU does, and why: ChosenEngine::note, or another reason. "" if there is none,
// or without `tell`.
std::string NoteOnCpu(const std::string& what, const std::string& why, bool tell);

// Says on stderr which of the flags given change nothing here: those of the pipeline's extractors, and those
// that only servers, or only this process, heed.
void ReportIdleFlags(const JobFlags& job, const WhereFlags& where, bool quiet);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_WHERE_FLAGS_H_
