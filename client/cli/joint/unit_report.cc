#include "client/cli/joint/unit_report.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/fits/hdu/output_file.h"

namespace spexd::cli {

absl::Status WithFile(const absl::Status& status, const std::string& path) {
  if (status.ok() || absl::StrContains(status.message(), path)) return status;
  return absl::Status(status.code(), absl::StrCat(path, ": ", status.message()));
}

void UnitReport::Take(JointProduct product, const absl::StatusOr<JointFile>& file) {
  const std::string& path = product == JointProduct::kVelocities ? unit_.velocities
                            : product == JointProduct::kModels   ? unit_.models
                                                                 : unit_.redshifts;
  if (path.empty()) return;  // not asked for: a server makes velocities whenever it makes models
  if (!file.ok()) return Fail(file.status());
  result_.fits = std::max(result_.fits, file->targets);
  if (const absl::Status status = WriteFileAtomically(path, file->bytes); !status.ok()) return Fail(status);
  if (product != JointProduct::kModels) {
    const char* const good = product == JointProduct::kVelocities ? "good" : "accepted";
    result_.numbers[NameOf(product)] = {{"targets", file->targets}, {good, file->good}};
  }
  const std::string targets = absl::StrCat(NameOf(product), " of ", file->targets, " targets");
  switch (product) {
    case JointProduct::kVelocities:
      return Print(path, absl::StrCat(targets, ", ", file->good, " without a warning"), *file);
    case JointProduct::kModels:
      if (unit_.velocities.empty()) Print(path, targets, *file);
      return;
    case JointProduct::kRedshifts:
      return Print(path, absl::StrCat(targets, ", ", file->good, " accepted"), *file);
  }
}

void UnitReport::Fail(const absl::Status& status) {
  const absl::Status error = WithFile(status, unit_.files[0]);
  std::vector<absl::Status>& errors = result_.errors;
  if (std::find(errors.begin(), errors.end(), error) == errors.end()) errors.push_back(error);
}

void UnitReport::Print(const std::string& path, const std::string& what, const JointFile& file) const {
  if (quiet_) return;
  std::printf("%s: %s\n", ForTerminal(path).c_str(),
              file.targets > 0 ? ForTerminal(what).c_str() : "no row is selected");
  std::fflush(stdout);
}

}  // namespace spexd::cli
