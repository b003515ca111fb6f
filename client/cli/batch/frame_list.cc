#include "client/cli/batch/frame_list.h"

#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/cli/batch/record_file.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/writers.h"

namespace spexd::cli {
namespace {

absl::Status CheckCounts(const std::vector<std::string>& inputs, const std::vector<std::string>& psfs) {
  if (psfs.size() == 1 || psfs.size() == inputs.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--psf names %d files, --input %d; name one PSF for all frames, or one for each in the "
                      "same order",
                      psfs.size(), inputs.size()));
}

// Returns the flags (or columns) of the input files, by path.
std::map<std::string, std::string> FilesRead(const std::vector<FrameTask>& tasks, const ProductInputs& inputs,
                                             const InputNames& names) {
  std::map<std::string, std::string> files;
  for (const std::string& path : inputs.fiberflats) files[Canonical(path)] = "--fiberflat";
  if (!inputs.templates.empty()) files[Canonical(inputs.templates)] = "--velocity";
  for (const FrameTask& task : tasks) {
    files[Canonical(task.job.image)] = names.image;
    files[Canonical(task.job.psf)] = names.psf;
    if (!task.job.fibermap.empty()) files[Canonical(task.job.fibermap)] = "--fibermap";
    if (!task.job.trace_reference.empty()) files[Canonical(task.job.trace_reference)] = "--trace-reference";
  }
  return files;
}

// Creates the folders. Errors are ignored, because creating the files then fails.
void MakeFolders(const std::vector<FrameTask>& tasks) {
  std::set<std::filesystem::path> folders;
  for (const FrameTask& task : tasks) {
    for (const auto& [what, path] : task.Files()) folders.insert(std::filesystem::path(path).parent_path());
  }
  std::error_code ignored;
  for (const std::filesystem::path& folder : folders) {
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  }
}

}  // namespace

std::string Canonical(const std::string& path) {
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

std::string OutputName(const std::string& prefix, const std::string& input) {
  const std::string file = std::filesystem::path(input).filename().string();
  absl::string_view name = file;
  for (const char* end : {".gz", ".fz", ".fits"}) name = absl::StripSuffix(name, end);
  return absl::StrCat(prefix, "-", absl::StripPrefix(name, "preproc-"), ".fits");
}

absl::StatusOr<FrameTask> MakeTask(JobFlags flags, const std::string& input, const std::string& psf,
                                   const OutputFolders& folders, const BatchProducts& products) {
  const auto in_folder = [](const std::string& folder, const std::string& name) {
    return (std::filesystem::path(folder) / name).string();
  };
  flags.input = input;
  flags.psf = psf;
  FrameTask task;
  SPEXD_ASSIGN_OR_RETURN(task.job, MakeJob(flags, !folders.models.empty()));
  task.output.frame = in_folder(folders.frames, OutputName("frame", input));
  if (task.job.spec.model) task.output.model = in_folder(folders.models, OutputName("model", input));
  task.output.wants_scores = flags.spec.scores;
  task.products = NameProducts(products, task.output.frame);
  return task;
}

absl::Status PrepareOutputs(const std::vector<FrameTask>& tasks, const ProductInputs& inputs,
                            const InputNames& names) {
  MakeFolders(tasks);
  const std::map<std::string, std::string> read = FilesRead(tasks, inputs, names);
  std::map<std::string, std::string> written;  // the input of each output
  for (const FrameTask& task : tasks) {
    for (const auto& [what, name] : task.Files()) {
      const std::string path = Canonical(name);
      if (const auto reader = read.find(path); reader != read.end()) {
        return absl::InvalidArgumentError(absl::StrCat(name, " is a file that ", reader->second, " reads"));
      }
      if (std::filesystem::path(path).filename() == kRecordName) {
        return absl::InvalidArgumentError(absl::StrCat(name, " is the record of its folder"));
      }
      const auto [other, is_new] = written.emplace(path, task.job.image);
      if (!is_new) {
        return absl::InvalidArgumentError(absl::StrCat(names.image, ": ", other->second, " and ",
                                                       task.job.image, " would both become ", name));
      }
      SPEXD_RETURN_IF_ERROR(CheckWritable(name));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<FrameTask>> ListFrames(const JobFlags& flags,
                                                  const std::vector<std::string>& inputs,
                                                  const std::vector<std::string>& psfs,
                                                  const OutputFolders& folders,
                                                  const BatchProducts& products) {
  SPEXD_RETURN_IF_ERROR(CheckCounts(inputs, psfs));
  std::vector<FrameTask> tasks;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::string& psf = psfs.size() == 1 ? psfs[0] : psfs[k];
    SPEXD_ASSIGN_OR_RETURN(FrameTask task, MakeTask(flags, inputs[k], psf, folders, products));
    tasks.push_back(std::move(task));
  }
  SPEXD_RETURN_IF_ERROR(PrepareOutputs(tasks, products.inputs, {}));
  return tasks;
}

}  // namespace spexd::cli
