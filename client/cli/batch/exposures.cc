#include "client/cli/batch/exposures.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/batch/batch_result.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"
#include "core/products/joint/exposure_spectra.h"

namespace spexd::cli {
namespace {

using nlohmann::json;

std::string Normal(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

// Returns the text of a header as a part of a file's name. Other characters are replaced, so that no header
// leads to another folder.
std::string ForFileName(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return !absl::ascii_isalnum(c) && c != '-' && c != '.' && c != '_'; }, '_');
  return text;
}

// Returns the spectrograph's number in the name of a camera: that of b3 is 3.
std::string SpectrographOf(const std::string& camera) { return camera.empty() ? "" : camera.substr(1); }

}  // namespace

Exposures::Exposures(const BatchProducts& products, std::set<std::string> cameras)
    : velocities_(products.Has("exposure-velocities")),
      redshifts_(products.Has("exposure-redshifts")),
      less_sky_(products.Has("sframe")),
      cameras_(std::move(cameras)) {}

std::optional<Exposure> Exposures::Add(const FrameTask& task, const json& record) {
  const std::string key = TextIn(record, "exposure"), camera = TextIn(record, "camera");
  if ((!velocities_ && !redshifts_) || key.empty() || camera.empty()) return std::nullopt;
  const char* const file = less_sky_ ? "sframe" : "frame";
  const MutexLock lock(&mutex_);
  for (const auto& [what, path] : task.Files()) owners_[Normal(path)] = task.output.frame;
  Group& group = groups_[key];
  group.expid = TextIn(record, "expid");
  // An exposure is made without a frame whose sky could not be made.
  const Arm arm = {task.output.frame,
                   HasError(record, file) ? ""
                   : less_sky_            ? task.products.sframe
                                          : task.output.frame,
                   TextIn(ValueIn(record, "files"), file)};
  const auto [at, is_new] = group.arms.try_emplace(camera, arm);
  if (at->second.frame != arm.frame && group.refused.ok()) {
    const auto [first, second] = std::minmax(at->second.frame, arm.frame);
    group.refused = absl::InvalidArgumentError(
        absl::StrCat(first, " and ", second, " are both of camera ", camera, " of ", key,
                     ", whose products need one frame of each camera"));
    group.returned = false;
  }
  const Arm before = group.refused.ok() ? std::exchange(at->second, arm) : at->second;
  const bool same = !group.refused.ok() || before.checksum == arm.checksum;
  if ((group.returned && same) || !IsComplete(group.arms)) return std::nullopt;
  group.returned = true;
  return MakeExposure(key, group);
}

bool Exposures::IsComplete(const Arms& arms) const {
  bool expects = false;
  const std::string spectrograph = SpectrographOf(arms.begin()->first);
  for (const std::string& camera : cameras_) {
    if (SpectrographOf(camera) != spectrograph) continue;
    if (!arms.contains(camera)) return false;
    expects = true;
  }
  return expects;
}

void Exposures::Await(const std::string& image) {
  const absl::StatusOr<Source> source = Source::FromFile(image);
  if (!source.ok()) return;
  const absl::StatusOr<PreprocHeader> header = ReadPreprocHeader(*source);
  if (!header.ok()) return;
  const MutexLock lock(&mutex_);
  groups_.erase(ExposureKey(header->image_cards));
}

std::vector<Exposure> Exposures::Rest() {
  const MutexLock lock(&mutex_);
  std::vector<Exposure> rest;
  for (const auto& [key, group] : groups_) {
    if (group.returned) continue;
    if (std::optional<Exposure> exposure = MakeExposure(key, group)) rest.push_back(*std::move(exposure));
  }
  groups_.clear();
  return rest;
}

std::optional<Exposure> Exposures::MakeExposure(const std::string& key, const Group& group) {
  Exposure exposure;
  exposure.refused = group.refused;
  exposure.unit.kind = SpectraKind::kFrame;
  exposure.unit.sky_subtracted = less_sky_;
  for (const auto& [camera, arm] : group.arms) {
    if (arm.file.empty()) continue;
    exposure.unit.files.push_back(arm.file);
  }
  if (exposure.unit.files.empty()) return std::nullopt;
  const std::filesystem::path folder = std::filesystem::path(exposure.unit.files[0]).parent_path();
  for (const auto& [camera, arm] : group.arms) {
    if (arm.file.empty()) continue;
    exposure.frames[std::filesystem::path(arm.file).lexically_proximate(folder).string()] = arm.checksum;
  }
  const std::string name =
      ForFileName(absl::StrCat(SpectrographOf(group.arms.begin()->first), "-",
                               std::string(8 - std::min<size_t>(8, group.expid.size()), '0'), group.expid));
  if (velocities_) exposure.unit.velocities = (folder / absl::StrCat("rvtab-", name, ".fits")).string();
  if (redshifts_) exposure.unit.redshifts = (folder / absl::StrCat("zlines-", name, ".fits")).string();
  for (const auto& [what, path] : FilesOf(exposure)) {
    const auto [owner, is_new] = owners_.emplace(Normal(path), key);
    if (is_new || owner->second == key || !exposure.refused.ok()) continue;
    exposure.refused =
        absl::InvalidArgumentError(absl::StrCat(path, " is a file of ", owner->second, " already; ", key,
                                                " needs another folder, or the other another name"));
  }
  return exposure;
}

NamedFiles FilesOf(const Exposure& exposure) {
  NamedFiles files;
  if (!exposure.unit.velocities.empty()) files.emplace_back("velocities", exposure.unit.velocities);
  if (!exposure.unit.redshifts.empty()) files.emplace_back("redshifts", exposure.unit.redshifts);
  return files;
}

absl::StatusOr<json> DescribeExposure(const Exposure& exposure, const ProductInputs& inputs,
                                      BatchRecord* record) {
  json made_of = {{"frames", exposure.frames}};
  if (!exposure.unit.velocities.empty()) {
    SPEXD_ASSIGN_OR_RETURN(made_of["templates"], record->SharedSha256(inputs.templates));
  }
  if (exposure.unit.sky_subtracted) return made_of;
  for (const std::string& path : inputs.fiberflats) {
    SPEXD_ASSIGN_OR_RETURN(const std::string checksum, record->SharedSha256(path));
    made_of["fiberflats"].push_back(checksum);
  }
  return made_of;
}

}  // namespace spexd::cli
