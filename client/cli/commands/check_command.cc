#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/commands.h"
#include "client/cli/flags/job_flags.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/extract/request_checks.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/readers.h"
#include "core/frame/cards.h"
#include "core/frame/job.h"
#include "core/job/job_traces.h"
#include "core/job/run_job.h"
#include "core/plan/grid_plan.h"

namespace spexd::cli {
namespace {

constexpr double kProposedStep = 0.8;  // Angstrom; the default of an extraction

// The errors and warnings that an extraction would have about its inputs.
struct Findings {
  std::vector<std::string> refusals, warnings;

  void Refuse(const absl::Status& status) {
    if (!status.ok()) refusals.emplace_back(status.message());
  }
};

// Returns "IVAR 4128 x 4114", "FIBERMAP 500 rows" and so on.
std::string DescribeHdu(const Hdu& hdu) {
  const bool coded = hdu.IsTrue("ZIMAGE");
  std::string text = hdu.name.empty() ? "(no name)" : ForMessage(hdu.name);
  if (hdu.IsTable() && !coded) {
    return absl::StrCat(text, " ", hdu.axes.size() > 1 ? hdu.axes[1] : 0, " rows");
  }
  std::vector<int64_t> axes = hdu.axes;
  if (coded) {
    axes.clear();
    for (int64_t k = 1; k <= hdu.Integer("ZNAXIS").value_or(0) && k < 10; ++k) {
      axes.push_back(hdu.Integer(absl::StrCat("ZNAXIS", k)).value_or(0));
    }
  }
  const bool empty = axes.empty() || std::find(axes.begin(), axes.end(), 0) != axes.end();
  absl::StrAppend(&text, " ", empty ? "without data" : absl::StrJoin(axes.rbegin(), axes.rend(), " x "));
  return coded ? absl::StrCat(text, " compressed") : text;
}

std::string CameraText(const std::string& camera) {
  return camera.empty() ? "camera not stated" : absl::StrCat("camera ", ForMessage(camera));
}

// Opens a file and prints its HDUs. Errors: it does not exist or is not FITS.
absl::StatusOr<Source> Open(const char* what, const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(Source source, Source::FromFile(path));
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  std::vector<std::string> hdus;
  for (const Hdu& hdu : file.hdus()) hdus.push_back(DescribeHdu(hdu));
  std::printf("%-6s %s\n       HDUs: %s\n", what, ForTerminal(path).c_str(),
              ForTerminal(absl::StrJoin(hdus, ", ")).c_str());
  return source;
}

// Reads what an extraction reads of the image, including its pixels.
std::optional<PreprocHeader> CheckImageFile(const Source& source, const std::string& path, Findings* findings) {
  absl::StatusOr<PreprocHeader> header = ReadPreprocHeader(source);
  findings->Refuse(header.status());
  if (!header.ok()) return std::nullopt;
  const std::string camera = CameraName(TextOf(header->image_cards, "CAMERA").value_or(""));
  std::printf("       %s; %d x %d pixels (rows x columns)\n", ForTerminal(CameraText(camera)).c_str(),
              header->rows, header->columns);
  const absl::StatusOr<Image> image = ReadPreprocImage(source, {AvailableCpus(), {}});
  findings->Refuse(image.status());
  if (image.ok()) {
    if (auto warning = WarnOfNegativeIvar(path, image->negative_ivar); warning.has_value())
      findings->warnings.push_back(*std::move(warning));
  }
  return *std::move(header);
}

std::shared_ptr<const Psf> CheckPsfFile(const Source& source, Findings* findings) {
  absl::StatusOr<Psf> psf = ReadPsf(source);
  findings->Refuse(psf.status());
  if (!psf.ok()) return nullptr;
  const WaveRange range = RangeOnCcd(*psf);
  std::printf("       %s; for %d x %d pixels; %d fibres, %g to %g Angstrom\n",
              ForTerminal(CameraText(CameraName(psf->camera))).c_str(), psf->rows, psf->columns, psf->fibres,
              psf->wave_min, psf->wave_max);
  std::printf("       all fibres are on the CCD from %g to %g Angstrom: -w %.10g,%.10g,%g\n", range.first,
              range.last, range.first, range.last, kProposedStep);
  return std::make_shared<const Psf>(*std::move(psf));
}

void CheckJob(const client::Job& job, const PreprocHeader& header, const std::shared_ptr<const Psf>& psf,
              Findings* findings) {
  const JobInput input = {job.image,          job.psf,         header.rows, header.columns,
                          header.image_cards, header.fibermap, psf};
  const absl::StatusOr<JobPlan> plan = PlanJob(job.spec, input);
  if (!plan.ok()) return findings->Refuse(plan.status());
  if (plan->trace_shifts != TraceAxes::kOff) findings->Refuse(CheckTraces(*psf, job.psf));
  findings->Refuse(CheckPreparation(*psf, plan->solve_grid, plan->bundle_size));
  std::printf("Job    fibres %d to %d in bundles of %d; %g to %g Angstrom in %d bins of %g\n", plan->fibres.first,
              plan->fibres.end() - 1, plan->bundle_size, plan->output_grid.first, plan->output_grid.last(),
              plan->output_grid.count, plan->output_grid.step);
}

absl::StatusOr<int> Check(const JobFlags& flags) {
  SPEXD_ASSIGN_OR_RETURN(const client::Job job, MakeJob(flags, /*model=*/false));
  Findings findings;
  SPEXD_ASSIGN_OR_RETURN(const Source image, Open("Image", job.image));
  std::optional<PreprocHeader> header = CheckImageFile(image, job.image, &findings);
  SPEXD_ASSIGN_OR_RETURN(const Source psf_file, Open("PSF", job.psf));
  const std::shared_ptr<const Psf> psf = CheckPsfFile(psf_file, &findings);
  if (!job.fibermap.empty()) {
    SPEXD_ASSIGN_OR_RETURN(const Source source, Open("Fibres", job.fibermap));
    absl::StatusOr<RawTable> table = ReadTableHdu(source, "FIBERMAP");
    findings.Refuse(table.status());
    if (table.ok() && header.has_value()) header->fibermap = *std::move(table);
  }
  if (!job.trace_reference.empty()) {
    const auto reference = ReadTraceReference(job.trace_reference, {});
    findings.Refuse(reference.status());
    if (reference.ok()) {
      const std::vector<double>& wave = (*reference)->wave;
      std::printf("Traces %s\n       %d samples, %g to %g Angstrom\n",
                  ForTerminal(job.trace_reference).c_str(), static_cast<int>(wave.size()), wave.front(),
                  wave.back());
    }
  }
  if (header.has_value() && psf != nullptr) CheckJob(job, *header, psf, &findings);
  for (const std::string& warning : findings.warnings)
    std::printf("Warning: %s\n", ForTerminal(warning).c_str());
  for (const std::string& refusal : findings.refusals)
    std::printf("Refused: %s\n", ForTerminal(refusal).c_str());
  if (findings.refusals.empty()) std::printf("An extraction takes these files.\n");
  return findings.refusals.empty() ? kOk : kDifferent;
}

}  // namespace

void AddCheck(CLI::App* app, Action* action) {
  auto flags = std::make_shared<JobFlags>();
  CLI::App* command = app->add_subcommand("check",
                                          "Check whether a frame can be extracted with a PSF. Exit code 0: "
                                          "it can; 1: it would be refused; 2: a file cannot be read");
  command->add_option("image", flags->input, "Preprocessed frame")->type_name("FILE")->required();
  command->add_option("psf", flags->psf, "PSF file")->type_name("FILE")->required();
  AddExtractionFlags(command, flags.get());
  command->callback([flags, action] {
    *action = [flags] {
      const absl::StatusOr<int> code = Check(*flags);
      return code.ok() ? *code : Fail(code.status());
    };
  });
}

}  // namespace spexd::cli
