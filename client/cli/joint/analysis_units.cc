#include "client/cli/joint/analysis_units.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/analysis/analysis_job.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/output_file.h"
#include "core/products/joint/exposure_spectra.h"
#include "core/products/joint/redrock_table.h"

namespace spexd::cli {
namespace {

struct FileContent {
  SpectraKind kind = SpectraKind::kTargets;
  std::string exposure, camera;  // only for frames
};

absl::StatusOr<FileContent> ContentOf(const std::string& path, int threads) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path, {.threads = threads}));
  FileContent content;
  SPEXD_ASSIGN_OR_RETURN(content.kind, KindOfSpectra(source));
  if (content.kind == SpectraKind::kTargets) return content;
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> cards, ReadFrameCards(source));
  content.exposure = ExposureKey(cards);
  content.camera = absl::AsciiStrToLower(FindString(cards, "CAMERA").value_or(""));
  return content;
}

std::string CanonicalPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

std::string IdOf(const std::string& job) { return job.substr(sizeof(client::kJobPrefix) - 1); }

// Creates the folder of a file. Errors are ignored, because creating the file then fails.
void MakeFolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
}

}  // namespace

std::vector<std::string> AnalysisUnit::outputs() const {
  std::vector<std::string> paths;
  for (const std::string& path : {velocities, models, redshifts}) {
    if (!path.empty()) paths.push_back(path);
  }
  return paths;
}

bool NamesJob(const std::string& file) { return absl::StartsWith(file, client::kJobPrefix); }

absl::Status CheckJobNames(const std::vector<std::string>& files, bool on_server) {
  for (const std::string& file : files) {
    if (!NamesJob(file)) continue;
    const std::string id = IdOf(file);
    // The id becomes part of a file's name.
    const bool good = !id.empty() && std::all_of(id.begin(), id.end(), [](char letter) {
      return absl::ascii_isalnum(static_cast<unsigned char>(letter)) || letter == '-' || letter == '_';
    });
    if (!good) {
      return absl::InvalidArgumentError(
          absl::StrCat(ForMessage(file), ": is no id of a job; spex submit prints it, spex jobs lists all"));
    }
    if (!on_server) {
      return absl::InvalidArgumentError(
          absl::StrCat(file, ": detached jobs are on servers; give --server, or a file"));
    }
  }
  return absl::OkStatus();
}

UnitList ListUnits(const std::vector<std::string>& files, int threads) {
  UnitList list;
  std::map<std::string, size_t> unit_of;                                 // by exposure
  std::vector<std::vector<std::pair<std::string, std::string>>> frames;  // cameras and files of each unit
  AnalysisUnit jobs;
  jobs.kind = SpectraKind::kFrame;
  for (const std::string& path : files) {
    if (NamesJob(path)) {
      jobs.files.push_back(path);
      continue;
    }
    const absl::StatusOr<FileContent> content = ContentOf(path, threads);
    if (!content.ok()) {
      list.unreadable.emplace_back(path, content.status());
      continue;
    }
    const auto known = unit_of.find(content->exposure);
    if (known != unit_of.end()) {
      frames[known->second].emplace_back(content->camera, path);
      continue;
    }
    if (!content->exposure.empty()) unit_of[content->exposure] = list.units.size();
    list.units.emplace_back().kind = content->kind;
    frames.push_back({{content->camera, path}});
  }
  for (size_t k = 0; k < frames.size(); ++k) {
    // The letters of cameras are in the order of wavelength.
    std::sort(frames[k].begin(), frames[k].end());
    for (const auto& [camera, path] : frames[k]) list.units[k].files.push_back(path);
  }
  if (!jobs.files.empty()) list.units.push_back(std::move(jobs));
  return list;
}

void NameOutputs(const JointFlags& flags, const AnalysisFlags& products, std::vector<AnalysisUnit>* units) {
  for (AnalysisUnit& unit : *units) {
    if (flags.output_dir.empty()) {
      unit.velocities = products.files.velocities;
      unit.models = flags.models;
      unit.redshifts = products.files.lines;
      continue;
    }
    const std::string& first = unit.files[0];
    const std::string file = NamesJob(first) ? absl::StrCat(IdOf(first), ".fits")
                                             : std::filesystem::path(first).filename().string();
    const auto in_folder = [&](const std::string& prefix) {
      const std::string name = absl::StrCat(prefix, "_", absl::StripSuffix(file, ".gz"));
      return (std::filesystem::path(flags.output_dir) / name).string();
    };
    if (!products.inputs.templates.empty()) {
      unit.velocities = in_folder(flags.table_prefix);
      unit.models = in_folder(flags.model_prefix);
    }
    if (flags.lines) unit.redshifts = in_folder("zlines");
  }
}

absl::Status CheckUnitOutputs(const std::vector<AnalysisUnit>& units, const std::vector<std::string>& read) {
  std::map<std::string, std::string> taken;  // paths, and what messages say about them
  for (const std::string& path : read) {
    if (!path.empty()) taken.emplace(CanonicalPath(path), "is a file that is read");
  }
  for (const AnalysisUnit& unit : units) {
    for (const std::string& path : unit.outputs()) {
      const auto [other, is_new] =
          taken.emplace(CanonicalPath(path), absl::StrCat("would be written for ", unit.files[0], ", too"));
      if (!is_new) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": ", other->second, "; a product must have a file of its own"));
      }
    }
  }
  for (const AnalysisUnit& unit : units) {
    for (const std::string& path : unit.outputs()) {
      MakeFolderOf(path);
      SPEXD_RETURN_IF_ERROR(CheckWritable(path));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> RedrockFileOf(const AnalysisUnit& unit, const JointFlags& flags, bool quiet) {
  if (!flags.select_by_redrock && !flags.include_redrock) return std::string();
  const std::string path = unit.kind == SpectraKind::kTargets ? RedrockPathOf(unit.files[0]) : "";
  if (!path.empty()) return path;
  const std::string lack = absl::StrCat(unit.files[0], ": there is no file redrock-* or zbest-* beside it");
  if (flags.select_by_redrock) {
    return absl::InvalidArgumentError(absl::StrCat(lack, "; leave out --zbest-select"));
  }
  if (!quiet) std::fprintf(stderr, "spex: %s: no columns RR_*\n", ForTerminal(lack).c_str());
  return std::string();
}

}  // namespace spexd::cli
