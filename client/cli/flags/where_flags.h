// The flags that select where frames are extracted and analysed: on which device of this machine, or on which
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
  client::ServerAddress server;  // empty address: run in this process
  bool no_gpu = false;
  int threads = 0;
  std::string device = "auto";
  std::optional<std::string> devices;
};

// Adds the flags of servers and devices, in the group Where.
void AddWhereFlags(CLI::App* command, WhereFlags* flags);
// Adds --in-flight, whose help begins with `help`, to the same group.
CLI::Option* AddInFlightFlag(CLI::App* command, const std::string& help, int* in_flight);

// Returns the engine that the flags select. InvalidArgument names a flag that cannot be parsed.
absl::StatusOr<EngineChoice> MakeChoice(const WhereFlags& flags);
// Number of threads that read or write the files of a frame.
int FileThreads(const WhereFlags& flags);
// Hides all GPUs but the first from CUDA unless the choice names devices. The others take time to initialise.
void HideOtherDevices(const EngineChoice& choice);
// Whether this machine has a driver for NVIDIA GPUs: its own, or in WSL that of Windows.
bool HasGpu();
// Whether to report why the CPU is used: on machines with a GPU, or if `verbose`, but not if `quiet`.
bool TellsWhyCpu(bool verbose, bool quiet);
// The reason without the list of paths where the CUDA module was searched; only the error of --device cuda
// shows the list.
std::string WithoutPlaces(const std::string& why);
// A line of text that says what the CPU does and why. `why`: ChosenEngine::note or another reason. "" if
// `why` is empty or `tell` is false.
std::string NoteOnCpu(const std::string& what, const std::string& why, bool tell);

// Prints to stderr which of the given flags have no effect: flags of the pipeline's extractors, and flags
// that apply only to servers or only to this process.
void ReportIdleFlags(const JobFlags& job, const WhereFlags& where, bool quiet);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_FLAGS_WHERE_FLAGS_H_
