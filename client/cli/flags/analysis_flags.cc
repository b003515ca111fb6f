#include "client/cli/flags/analysis_flags.h"

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/flags/where_flags.h"
#include "client/cli/terminal/frame_output.h"
#include "client/cli/terminal/terminal_text.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "core/products/analyse.h"
#include "core/products/product_files.h"
#include "core/products/template_file.h"
#include "cuda/loader/choose_analyser.h"

namespace spexd::cli {
namespace {

constexpr char kGroup[] = "Products";  // of flags

// The first error, and what was said of each.
class Results {
 public:
  explicit Results(bool quiet) : quiet_(quiet) {}

  void Wrote(const std::string& path, const std::string& what, const absl::Status& status) {
    if (!status.ok()) {
      all_safe_ = false;
      return Failed(status);
    }
    if (!quiet_) std::printf("%s: %s\n", ForTerminal(path).c_str(), ForTerminal(what).c_str());
  }
  void Failed(const absl::Status& status) {
    if (error_.ok()) {
      error_ = status;  // the caller prints it
    } else if (error_ != status) {
      std::fprintf(stderr, "spex: %s\n", ForTerminal(status.message()).c_str());
    }
  }
  WrittenProducts written() const { return {error_, all_safe_}; }

 private:
  const bool quiet_;
  absl::Status error_;
  bool all_safe_ = true;
};

// All but the velocities.
absl::StatusOr<AnalysisRequest> RequestOf(const AnalysisFlags& flags, int threads) {
  AnalysisRequest request;
  request.sky_subtracted = flags.sky_subtracted;
  request.lines = !flags.lines.empty();
  request.threads = threads;
  if (!flags.fiberflat.empty()) {
    SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(flags.fiberflat));
    SPEXD_ASSIGN_OR_RETURN(request.fiberflat, ReadFiberflat(source));
    request.fiberflat->name = flags.fiberflat;
  }
  return request;
}

absl::StatusOr<TemplateLibrary> LoadTemplates(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  return ReadTemplates(source);
}

void DeliverSky(const Frame& frame, const AnalysisFlags& flags, const absl::StatusOr<Sky>& sky,
                Results* results) {
  if (flags.sky.empty() && flags.sframe.empty()) return;
  if (!sky.ok()) return results->Failed(sky.status());
  const std::string what = absl::StrCat("sky of ", sky->sky_fibres.size(), " fibres, ", sky->rejected,
                                        " bins rejected in ", sky->rounds, " rounds");
  if (!flags.sky.empty()) results->Wrote(flags.sky, what, WriteSky(frame, *sky, flags.sky));
  if (!flags.sframe.empty()) {
    results->Wrote(flags.sframe, "spectra without the sky",
                   WriteFrame(SkySubtracted(frame, *sky), flags.sframe));
  }
}

void AddProductInputs(CLI::App* command, std::string* fiberflat, std::string* templates) {
  command->add_option("--fiberflat", *fiberflat, "Fiberflat to divide by first (HDU FIBERFLAT)")
      ->group(kGroup);
  command->add_option("--velocity", *templates, "Templates of stars to fit velocities with")->group(kGroup);
}

}  // namespace

void AddProductFiles(CLI::App* command, AnalysisFlags* flags) {
  AnalysisFlags& f = *flags;
  command->add_option("--sky", f.sky, "Write the sky model to this file")->group(kGroup);
  command->add_option("--sframe", f.sframe, "Write the spectra without the sky to this file")->group(kGroup);
  command->add_option("--velocity-out", f.velocities, "Write the table of velocities to this file")
      ->group(kGroup);
  command->add_option("--lines-out", f.lines, "Write the table of emission-line redshifts to this file")
      ->group(kGroup);
}

void AddAskedProducts(CLI::App* command, client::JobProducts* asked) {
  command->add_flag("--sky", asked->sky, "Also make the sky model")->group(kGroup);
  command->add_flag("--lines", asked->lines, "Also make redshifts of emission lines")->group(kGroup);
  AddProductInputs(command, &asked->fiberflat, &asked->templates);
}

absl::Status CheckAskedProducts(const client::JobProducts& asked) {
  if (asked.fiberflat.empty() || asked.any()) return absl::OkStatus();
  return absl::InvalidArgumentError("--fiberflat: no product is asked for; see --sky, --lines, --velocity");
}

void AddAnalysisFlags(CLI::App* command, AnalysisFlags* flags) {
  AddProductFiles(command, flags);
  AddProductInputs(command, &flags->fiberflat, &flags->templates);
}

absl::Status CheckAnalysisFlags(const AnalysisFlags& flags, const std::vector<std::string>& others) {
  if (flags.templates.empty() != flags.velocities.empty()) {
    return absl::InvalidArgumentError("--velocity TEMPLATES and --velocity-out FILE go together");
  }
  if (flags.sky_subtracted && (!flags.sky.empty() || !flags.sframe.empty())) {
    return absl::InvalidArgumentError("--sky-subtracted: there is no sky left for --sky or --sframe");
  }
  if (!flags.fiberflat.empty() && !flags.any()) {
    return absl::InvalidArgumentError("--fiberflat: no product is asked for");
  }
  std::vector<std::string> read = others;
  read.insert(read.end(), {flags.fiberflat, flags.templates});
  return CheckProductFiles(flags, read);
}

absl::Status CheckProductFiles(const AnalysisFlags& flags, const std::vector<std::string>& others) {
  std::vector<std::string> taken = others;
  for (const std::string& path : {flags.sky, flags.sframe, flags.velocities, flags.lines}) {
    if (path.empty()) continue;
    const auto same = [&path](const std::string& other) { return !other.empty() && SameFile(path, other); };
    if (std::any_of(taken.begin(), taken.end(), same)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": a product must have a file of its own"));
    }
    taken.push_back(path);
    SPEXD_RETURN_IF_ERROR(CheckWritable(path));
  }
  return absl::OkStatus();
}

absl::Status CheckWereAsked(const AnalysisFlags& flags, const std::optional<NamedProducts>& made) {
  const FrameProducts none;
  const FrameProducts& products = made.has_value() ? made->products : none;
  const struct {
    const char* flag;
    const std::string& path;
    Product product;
    const char* submit;
  } files[] = {{"--sky", flags.sky, Product::kSky, "--sky"},
               {"--sframe", flags.sframe, Product::kSky, "--sky"},
               {"--velocity-out", flags.velocities, Product::kVelocity, "--velocity"},
               {"--lines-out", flags.lines, Product::kLines, "--lines"}};
  for (const auto& file : files) {
    if (!file.path.empty() && absl::IsCancelled(InfoOf(file.product).StatusIn(products)))
      return absl::InvalidArgumentError(absl::StrCat(file.flag, ": submitted without ", file.submit));
  }
  return absl::OkStatus();
}

WrittenProducts WriteProducts(const Frame& frame, const AnalysisFlags& flags, const NamedProducts& made,
                              bool quiet) {
  const FrameProducts& products = made.products;
  Results results(quiet);
  DeliverSky(frame, flags, products.sky, &results);
  if (!flags.velocities.empty() && products.velocities.ok()) {
    const auto safe = std::count_if(products.velocities->begin(), products.velocities->end(),
                                    [](const StarVelocity& star) { return star.flag == 0; });
    results.Wrote(
        flags.velocities,
        absl::StrCat("velocities of ", products.targets.size(), " targets, ", safe, " without a warning"),
        WriteVelocities(frame, products.targets, *products.velocities, made.parameters, VelocityOptions(),
                        flags.velocities));
  } else if (!flags.velocities.empty()) {
    results.Failed(products.velocities.status());
  }
  if (!flags.lines.empty() && products.lines.ok()) {
    const auto accepted = std::count_if(products.lines->begin(), products.lines->end(),
                                        [](const LineRedshift& line) { return line.warning == 0; });
    results.Wrote(flags.lines,
                  absl::StrCat("redshifts of ", products.targets.size(), " targets, ", accepted, " accepted"),
                  WriteLines(frame, products.targets, *products.lines, flags.lines));
  } else if (!flags.lines.empty()) {
    results.Failed(products.lines.status());
  }
  return results.written();
}

bool MayTakeGpu(const AnalysisFlags& flags, const EngineChoice& where) {
  if (where.device == "cpu" || !flags.any()) return false;
  // To wake a device up for less than velocities takes longer than processors do.
  return !flags.velocities.empty() || where.device == "cuda" || !where.devices.empty();
}

absl::Status MakeProducts(const Frame& frame, const DeviceSpectra* resident, const AnalysisFlags& flags,
                          const EngineChoice& where, bool quiet, std::stop_token stop) {
  const int threads = where.threads > 0 ? where.threads : AvailableCpus();
  SPEXD_ASSIGN_OR_RETURN(AnalysisRequest request, RequestOf(flags, threads));
  NamedProducts made;
  absl::Status templates_status;  // templates that cannot be used are an error of the velocities alone
  if (!flags.velocities.empty()) {
    absl::StatusOr<TemplateLibrary> templates = LoadTemplates(flags.templates);
    templates_status = templates.status();
    request.velocities = templates.ok();
    if (templates.ok()) {
      made.parameters = templates->names;
      request.templates = *std::move(templates);
    }
  }
  ChosenAnalyser chosen;
  if (MayTakeGpu(flags, where)) {
    SPEXD_ASSIGN_OR_RETURN(chosen, ChooseAnalyser(where));
  }
  const std::string note =
      NoteOnCpu("products are made by processors", chosen.note, TellsWhyCpu(/*verbose=*/false, quiet));
  if (!note.empty()) std::fprintf(stderr, "%s\n", note.c_str());
  request.analyser = chosen.analyser.get();
  request.resident = resident;
  request.stop = std::move(stop);
  SPEXD_ASSIGN_OR_RETURN(made.products, Analyse(frame, request));
  if (!templates_status.ok()) made.products.velocities = templates_status;
  return WriteProducts(frame, flags, made, quiet).error;
}

client::JobProducts ProductsToAsk(const AnalysisFlags& flags) {
  return {.sky = !flags.sky.empty() || !flags.sframe.empty(),
          .lines = !flags.lines.empty(),
          .templates = flags.templates,
          .fiberflat = flags.fiberflat};
}

}  // namespace spexd::cli
