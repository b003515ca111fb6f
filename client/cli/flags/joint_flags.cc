#include "client/cli/flags/joint_flags.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/cli/terminal/real_range.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/fits/hdu/source.h"
#include "core/products/joint/joint_analysis.h"

namespace spexd::cli {
namespace {

constexpr char kFileGroup[] = "Files", kRowGroup[] = "Rows", kFitGroup[] = "Joint fits";

// Flags of rvs_desi_fit that spex refuses, and what to use instead.
constexpr struct {
  const char* name;
  const char* instead;
} kRefused[] = {
    {"config", "--velocity names the library of templates, other flags the settings"},
    {"queue_file", "--input-file-from reads a list of files and leaves it as it is"},
    {"param_init", "every fit begins at the minima of a scan of all templates"},
    {"doplot", "spex plot draws results"},
    {"figure_dir", "spex plot draws results"},
    {"figure_prefix", "spex plot draws results"},
    {"mpi", "one process uses all processors (--threads); give each node files of its own"},
    {"no_ccf_continuum_normalize", "there is no cross-correlation; the scan fits each continuum"},
    {"no_resolution_matrix", "the resolution is always used"},
    {"log", "redirect stderr"},
    {"log_level", "--quiet prints errors only"},
    {"overwrite", "files are always replaced; --skipexisting leaves those that are there"},
    {"throw_exceptions", "a file that fails is always named, and stops no other"},
    {"version", "spex --version"},
};

// Returns both spellings of a flag: "--output-dir,--output_dir".
std::string Spellings(const std::string& name) {
  const std::string dashed = absl::StrReplaceAll(name, {{"_", "-"}});
  return dashed == name ? absl::StrCat("--", name) : absl::StrCat("--", dashed, ",--", name);
}

// Lets a flag be repeated, each time with one argument. CLI11's default is to take all arguments that follow.
CLI::Option* Repeated(CLI::Option* option) {
  return option->expected(1)->take_all()->allow_extra_args(false);
}

// Returns the lines of a text file that are not empty, without leading and trailing blanks.
absl::StatusOr<std::vector<std::string>> LinesOf(const std::string& path) {
  constexpr int64_t kMaxBytes = int64_t{256} << 20;
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path, {.max_bytes = kMaxBytes}));
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(source.bytes(), '\n')) {
    const absl::string_view text = absl::StripAsciiWhitespace(line);
    if (!text.empty()) lines.emplace_back(text);
  }
  return lines;
}

absl::StatusOr<WavelengthRange> RangeOf(const std::string& text) {
  const std::vector<std::string> ends = absl::StrSplit(text, ',');
  WavelengthRange range = {0, 0};
  // The comparison is false for NaN.
  if (ends.size() == 2 && absl::SimpleAtod(ends[0], &range.first) && absl::SimpleAtod(ends[1], &range.last) &&
      range.first < range.last) {
    return range;
  }
  return absl::InvalidArgumentError(absl::StrCat("--exclude: ", ForMessage(text),
                                                 ", must be FIRST,LAST in Angstrom, as 4300,4450, or none"));
}

absl::Status CheckFiles(const JointFlags& flags, const AnalysisFlags& products) {
  const auto refuse = [](const std::string& text) { return absl::InvalidArgumentError(text); };
  const bool names_files =
      !products.files.velocities.empty() || !flags.models.empty() || !products.files.lines.empty();
  if (!flags.output_dir.empty()) {
    if (names_files) {
      return refuse(
          "--output-dir names all files: leave out --velocity-out, --model-out and --lines-out, or it");
    }
    if (products.inputs.templates.empty() && !flags.lines) {
      return refuse("analyse: no product is asked for; see --velocity, --lines");
    }
    return absl::OkStatus();
  }
  if (products.inputs.templates.empty() != (products.files.velocities.empty() && flags.models.empty())) {
    return refuse("--velocity TEMPLATES and --velocity-out FILE go together; or give --output-dir");
  }
  if (flags.lines && products.files.lines.empty()) {
    return refuse("--lines: name the file with --lines-out, or a folder with --output-dir");
  }
  if (!names_files) {
    return refuse(
        "analyse: no product is asked for; see --output-dir, --velocity-out, --model-out, --lines-out");
  }
  return absl::OkStatus();
}

}  // namespace

void AddJointFlags(CLI::App* command, JointFlags* flags) {
  JointFlags& f = *flags;
  const auto add = [command](const char* group, const char* name, auto& value, const char* help) {
    return command->add_option(Spellings(name), value, help)->group(group);
  };
  const auto add_flag = [command](const char* group, const char* name, bool& value, const char* help) {
    command->add_flag(Spellings(name), value, help)->group(group);
  };
  add(kFileGroup, "output_dir", f.output_dir,
      "Folder to write rvtab_NAME, rvmod_NAME and zlines_NAME of each file or exposure to")
      ->type_name("DIR");
  add(kFileGroup, "output_tab_prefix", f.table_prefix, "Beginning of the names of tables of velocities")
      ->type_name("NAME")
      ->capture_default_str();
  add(kFileGroup, "output_mod_prefix", f.model_prefix, "Beginning of the names of files of models")
      ->type_name("NAME")
      ->capture_default_str();
  add(kFileGroup, "model_out", f.models, "File to write: best models")->type_name("FILE");
  add(kFileGroup, "input_file_from", f.input_list,
      "Text file with the name of a file to analyse on each line")
      ->type_name("FILE");
  add(kFileGroup, "process_status_file", f.status_file,
      "Text file to write, with a line for each file: its name, SUCCESS, FAILURE or EXISTING, the number of "
      "fits, seconds")
      ->type_name("FILE");
  add_flag(kFileGroup, "skipexisting", f.skip_existing,
           "Skip each file or exposure whose output files all exist");

  Repeated(
      add(kRowGroup, "targetid", f.target_ids, "TARGETIDs to analyse, such as 39627,39628; may be repeated")
          ->type_name("LIST"))
      ->delimiter(',');
  add(kRowGroup, "targetid_file_from", f.target_id_file, "Text file with a TARGETID to analyse on each line")
      ->type_name("FILE");
  add(kRowGroup, "minsn", f.min_snr,
      "Analyse only rows whose median S/N per bin is above this in at least one arm")
      ->check(RealRange(-1e9, 1e9));
  add(kRowGroup, "minexpid", f.min_exposure, "Analyse only rows whose EXPID is above this");
  add(kRowGroup, "maxexpid", f.max_exposure, "Analyse only rows whose EXPID is at most this");
  Repeated(add(kRowGroup, "objtypes", f.object_types,
               "Analyse only rows with a targeting bit whose name begins with a match of one of these "
               "regular expressions, such as MWS_ANY,STD_.*")
               ->type_name("LIST"))
      ->delimiter(',');
  add_flag(
      kRowGroup, "zbest_select", f.select_by_redrock,
      "Analyse only rows that are stars or slower than 1500 km/s by the redrock file beside the spectra");
  add_flag(kRowGroup, "zbest_include", f.include_redrock,
           "Write columns RR_Z, RR_SPECTYPE, RR_SUBTYPE from the redrock file beside the spectra");

  add_flag(kFitGroup, "lines", f.lines, "Also fit redshifts of emission lines");
  add_flag(kFitGroup, "per_target", f.per_target,
           "Fit all exposures of a TARGETID together. Default: each row alone");
  Repeated(add(kFitGroup, "exclude", f.exclude,
               "Range of wavelengths in Angstrom to leave out of velocity fits, or none; may be repeated. "
               "Default: 4300,4450 for files of spectra, none for frames")
               ->type_name("FIRST,LAST"));
  Repeated(add(kFitGroup, "fitarm", f.arms, "Arms to fit, such as b,r. Default: all")->type_name("LIST"))
      ->delimiter(',');
  add(kFitGroup, "npoly", f.coefficients, "Number of coefficients of the continuum of each arm. Default: 7")
      ->check(CLI::Range(1, 21));

  for (const char* name : {"resolution_matrix", "no_subdirs"}) {
    command->add_flag(Spellings(name))
        ->description("Accepted, without effect: always on. A flag of rvs_desi_fit")
        ->group(kFitGroup);
  }
  for (const auto& [name, instead] : kRefused) {
    const std::string message = absl::StrCat("--", name, " of rvs_desi_fit: ", instead);
    const auto refuse = [flags, message](const std::string&) { flags->refused.push_back(message); };
    std::string names = Spellings(name);
    if (std::string(name) == "no_resolution_matrix") names += ",--no-resolution_matrix";
    // Hidden from --help. A value may follow.
    command->add_option_function<std::string>(names, refuse)->expected(0, 1)->take_last()->group("");
  }
}

bool AsksForOneFrame(const JointFlags& flags) {
  JointFlags nothing;
  nothing.input_list = flags.input_list;
  return flags == nothing;
}

absl::Status CheckJointFlags(const JointFlags& flags, const AnalysisFlags& products) {
  if (!flags.refused.empty()) return absl::InvalidArgumentError(flags.refused.front());
  if (!flags.target_ids.empty() && !flags.target_id_file.empty()) {
    return absl::InvalidArgumentError("--targetid and --targetid-file-from: give one of them");
  }
  for (const std::string& arm : flags.arms) {
    const std::string letter = absl::AsciiStrToLower(arm);
    if (letter != "b" && letter != "r" && letter != "z") {
      return absl::InvalidArgumentError(
          absl::StrCat("--fitarm: ", ForMessage(arm), ", must be b, r or z, or several, as b,r"));
    }
  }
  SPEXD_RETURN_IF_ERROR(ExcludedOf(flags, /*of_targets=*/true).status());
  return CheckFiles(flags, products);
}

absl::StatusOr<std::vector<std::string>> FilesToAnalyse(const std::vector<std::string>& given,
                                                        const JointFlags& flags) {
  if (flags.input_list.empty()) {
    if (given.empty()) return absl::InvalidArgumentError("analyse: no file is given; see --help");
    return given;
  }
  if (!given.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--input-file-from: ", given[0], " is given too; name files, or a list of them"));
  }
  SPEXD_ASSIGN_OR_RETURN(std::vector<std::string> files, LinesOf(flags.input_list));
  if (files.empty()) return absl::InvalidArgumentError(absl::StrCat(flags.input_list, ": names no file"));
  return files;
}

absl::StatusOr<RowSelection> SelectionOf(const JointFlags& flags) {
  RowSelection selection;
  selection.min_snr = flags.min_snr;
  selection.min_exposure = flags.min_exposure;
  selection.max_exposure = flags.max_exposure;
  selection.object_types = flags.object_types;
  if (!flags.target_ids.empty()) selection.target_ids = flags.target_ids;
  if (flags.target_id_file.empty()) return selection;
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> lines, LinesOf(flags.target_id_file));
  selection.target_ids.emplace();
  for (const std::string& line : lines) {
    int64_t id = 0;
    if (!absl::SimpleAtoi(line, &id)) {
      return absl::InvalidArgumentError(absl::StrCat(flags.target_id_file, ": ", ForMessage(line),
                                                     " is no TARGETID; each line must be one integer"));
    }
    selection.target_ids->push_back(id);
  }
  return selection;
}

absl::StatusOr<std::vector<WavelengthRange>> ExcludedOf(const JointFlags& flags, bool of_targets) {
  std::vector<WavelengthRange> ranges;
  if (flags.exclude.empty()) {
    if (of_targets) ranges.push_back(kExcludedOfTargets);
    return ranges;
  }
  for (const std::string& text : flags.exclude) {
    if (text == "none") {
      if (flags.exclude.size() > 1) {
        return absl::InvalidArgumentError("--exclude: none goes with no other range");
      }
      return ranges;
    }
    SPEXD_ASSIGN_OR_RETURN(const WavelengthRange range, RangeOf(text));
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace spexd::cli
