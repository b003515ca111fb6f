#include "client/cli/doctor/machine_checks.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/cli/commands/python_script.h"
#include "client/cli/doctor/cuda_checks.h"
#include "core/base/build_version.h"
#include "core/base/machine/cpus.h"
#include "core/base/machine/group_limits.h"
#include "core/base/machine/memory.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/extract/cpu/cpu_engine.h"
#include "core/fits/hdu/output_file.h"
#include "core/simulate/simulator.h"

namespace spexd::cli {
namespace {

constexpr double kLittleDisk = kGiB;  // a frame of 500 fibres with its model takes about 0.2 GiB

Finding CheckProcessors(const Engine& engine) {
  const int usable = AvailableCpus();
  std::string found = absl::StrFormat("%d of %d usable (%s)", usable, std::thread::hardware_concurrency(),
                                      engine.Info().device);
  const std::optional<double> limit = GroupLimit("cpu.max");
  if (limit.has_value()) absl::StrAppendFormat(&found, "; the control group allows %.1f", *limit);
  return Good("processors", found);
}

// Returns the memory that a new process could get, in bytes; nullopt: not known.
std::optional<double> AvailableMemory() {
  std::ifstream file("/proc/meminfo");
  std::string name, unit;
  double kilobytes = 0;
  while (file >> name >> kilobytes) {
    std::getline(file, unit);
    if (name == "MemAvailable:") return std::min(1024 * kilobytes, static_cast<double>(MachineMemory()));
  }
  return std::nullopt;
}

struct FrameMemory {
  double least = 0, whole = 0;  // bytes with one bundle at a time, and with all threads at work
};

// Returns the memory of a frame of the usual size on the CPU: image, spectra and workspaces.
absl::StatusOr<FrameMemory> MemoryOfAFrame(const Engine& engine) {
  SPEXD_ASSIGN_OR_RETURN(const Psf psf, SimulatePsf({}));
  SPEXD_ASSIGN_OR_RETURN(const WavelengthGrid grid, ParseWavelengthGrid("5760,7620,0.8"));
  JobOutline job;
  job.psf = &psf;
  job.grid = grid;
  job.fibres = {0, psf.fibres};
  job.want_model = true;
  job.float32 = true;
  const JobEstimate estimate = engine.Estimate(job);
  constexpr int kImageBytes = 16;          // flux, ivar, mask, model
  constexpr int kBinBytes = 4 * (4 + 11);  // flux, ivar, mask, chi2pix and resolution
  const double data = static_cast<double>(kImageBytes) * psf.rows * psf.columns +
                      static_cast<double>(kBinBytes) * psf.fibres * grid.count;
  return FrameMemory{data + static_cast<double>(estimate.min_bytes),
                     data + static_cast<double>(estimate.host_bytes)};
}

Finding CheckMemory(const Engine& engine) {
  const double memory = static_cast<double>(MachineMemory());
  const double available = AvailableMemory().value_or(memory);
  const absl::StatusOr<FrameMemory> frame = MemoryOfAFrame(engine);
  if (!frame.ok()) return Bad("memory", frame.status(), "");
  const std::string found = absl::StrFormat(
      "%.1f of %.1f GiB available; a frame of 500 fibres x 2326 bins takes %.1f GiB, at least %.1f",
      available / kGiB, memory / kGiB, frame->whole / kGiB, frame->least / kGiB);
  if (available >= frame->whole) return Good("memory", found);
  if (available >= frame->least)
    return Doubtful("memory", found,
                    "end other programs, or give --threads to let fewer bundles run at once");
  return Doubtful("memory", found, "extract on another machine, or on a server (--server)");
}

Finding CheckFolder() {
  std::error_code error;
  const std::string folder = std::filesystem::current_path(error).string();
  if (const absl::Status status = CheckWritable("spex-doctor.fits"); !status.ok())
    return Doubtful("folder", absl::StrCat(folder, " cannot be written"),
                    "give outputs (-o, --output-dir) in a folder of yours");
  const std::filesystem::space_info space = std::filesystem::space(".", error);
  const std::string found = absl::StrFormat("%s can be written, %.1f GiB free", folder,
                                            static_cast<double>(space.available) / kGiB);
  if (error || static_cast<double>(space.available) >= kLittleDisk) return Good("folder", found);
  return Doubtful("folder", found, "make room, or give outputs (-o, --output-dir) on another disk");
}

Finding CheckPython() {
  constexpr char kName[] = "plot";
  const absl::StatusOr<PythonOutput> python = ReadPythonScript("spex plot", "plot_check.py", {});
  if (!python.ok())
    return Doubtful(
        kName, std::string(python.status().message()),
        "install Python with numpy, astropy and matplotlib for pictures; spex needs it for nothing "
        "else");
  if (python->code == 0) return Good(kName, std::string(absl::StripAsciiWhitespace(python->text)));
  return Doubtful(kName, std::string(absl::StripPrefix(absl::StripAsciiWhitespace(python->text), "spex: ")),
                  "install it for pictures, or name another Python in $SPEXD_PYTHON");
}

struct Variable {
  const char* name;
  const char* effect;
};
constexpr Variable kVariables[] = {
    {"SPEXD_SERVER", "the server, where --server is not given"},
    {"SPEXD_TLS_CA", "the authorities that are trusted, where --tls-ca is not given"},
    {"SPEXD_TLS_CERT", "the certificate that is shown, where --tls-cert is not given"},
    {"SPEXD_TLS_KEY", "its key, where --tls-key is not given"},
    {"SPEXD_TOKEN_FILE", "the token that is sent, where --token-file is not given"},
    {"SPEXD_PYTHON", "the Python of pictures"},
    {"SPEXD_CUDA_MODULE", "the CUDA engine, which is looked for nowhere else"},
    {"CUDA_VISIBLE_DEVICES", "the devices that CUDA shows"},
};
constexpr char kPrefix[] = "SPEXD_";

std::optional<Finding> CheckVariable(const std::string& name, const std::string& value) {
  std::vector<std::string> names;
  for (const Variable& variable : kVariables) {
    if (name == variable.name)
      return Good("environment", absl::StrCat(name, "=", value, ": ", variable.effect));
    names.emplace_back(variable.name);
  }
  if (!absl::StartsWith(name, kPrefix)) return std::nullopt;
  const std::string meant = MeantWord(name, names);
  if (!meant.empty())
    return Doubtful("environment", absl::StrCat(name, "=", value, ": spex does not read it"),
                    absl::StrCat("did you mean ", meant, "?"));
  return Good(
      "environment",
      absl::StrCat(name, " is set: spex does not read it; spexd does, if it has a flag of that name"));
}

}  // namespace

FindingList CheckMachine() {
  const std::unique_ptr<Engine> engine = MakeCpuEngine({});
  FindingList findings = {Good("program", "spex " + BuildVersion()), CheckProcessors(*engine),
                          CheckMemory(*engine), CheckFolder()};
  for (Finding& finding : CheckCuda()) findings.push_back(std::move(finding));
  findings.push_back(CheckPython());
  return findings;
}

FindingList CheckEnvironment() {
  std::vector<std::string> settings;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) settings.emplace_back(*entry);
  std::sort(settings.begin(), settings.end());
  FindingList findings;
  for (const std::string& setting : settings) {
    const size_t sign = setting.find('=');
    if (sign == std::string::npos || sign + 1 == setting.size()) continue;
    std::optional<Finding> finding = CheckVariable(setting.substr(0, sign), setting.substr(sign + 1));
    if (finding.has_value()) findings.push_back(*std::move(finding));
  }
  return findings;
}

}  // namespace spexd::cli
