#include "client/cli/night/night_list.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/frame/job_options.h"

namespace spexd::cli {
namespace {

using Words = std::vector<std::string>;

const std::map<std::string, std::string NightRow::*>& Columns() {
  static const auto* const columns = new std::map<std::string, std::string NightRow::*>{
      {"image", &NightRow::image},
      {"psf", &NightRow::psf},
      {"output", &NightRow::output},
      {"model", &NightRow::model},
      {"expid", &NightRow::expid},
      {"fibermap", &NightRow::fibermap},
      {"trace_reference", &NightRow::trace_reference},
  };
  return *columns;
}

bool IsRequired(absl::string_view column) {
  return column == "image" || column == "psf" || column == "output";
}

// Returns the option of a column; null: there is no option of this name.
const JobOption* OptionOf(absl::string_view column) {
  for (const JobOption& option : kJobOptions) {
    if (column == option.name && !option.for_server_only && column != "model") return &option;
  }
  return nullptr;
}

absl::Status LineError(int line, absl::string_view message) {
  return absl::InvalidArgumentError(absl::StrFormat("line %d: %s", line, message));
}

absl::Status CheckColumns(int line, const Words& names) {
  for (const std::string& name : names) {
    if (!Columns().contains(name) && OptionOf(name) == nullptr) {
      return LineError(line,
                       absl::StrCat("no column is called ", ForMessage(name),
                                    "; the first line names the columns: image psf output, and perhaps "
                                    "model expid fibermap trace_reference or options, such as wavelength"));
    }
    if (std::count(names.begin(), names.end(), name) > 1) {
      return LineError(line, absl::StrCat("the column ", name, " stands there twice"));
    }
  }
  for (const char* name : {"image", "psf", "output"}) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return LineError(line, absl::StrCat("the column ", name, " is missing"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<NightRow> ParseRow(int line, const Words& names, const Words& words) {
  if (words.size() != names.size()) {
    return LineError(
        line, absl::StrFormat("%d columns, must be %d as in the first line", words.size(), names.size()));
  }
  NightRow row;
  row.line = line;
  for (size_t k = 0; k < names.size(); ++k) {
    if (words[k] == "-") {
      if (IsRequired(names[k])) return LineError(line, absl::StrCat(names[k], " is -, must be a file"));
      continue;
    }
    const auto column = Columns().find(names[k]);
    if (column != Columns().end()) {
      row.*column->second = words[k];
    } else {
      row.options.emplace_back(names[k], words[k]);
    }
  }
  return row;
}

}  // namespace

absl::StatusOr<std::vector<NightRow>> ParseNightList(absl::string_view text) {
  std::vector<NightRow> rows;
  Words names;
  int line = 0;
  absl::ConsumePrefix(&text, "\xEF\xBB\xBF");  // the byte order mark that some editors write
  for (absl::string_view all : absl::StrSplit(text, '\n')) {
    ++line;
    const absl::string_view content = all.substr(0, all.find('#'));
    const Words words = absl::StrSplit(content, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    if (names.empty()) {
      SPEXD_RETURN_IF_ERROR(CheckColumns(line, words));
      names = words;
      continue;
    }
    SPEXD_ASSIGN_OR_RETURN(NightRow row, ParseRow(line, names, words));
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return absl::InvalidArgumentError("the list has no frames");
  return rows;
}

absl::StatusOr<std::vector<NightRow>> ReadNightList(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad()) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  absl::StatusOr<std::vector<NightRow>> rows = ParseNightList(text);
  if (!rows.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", rows.status().message()));
  return rows;
}

absl::StatusOr<NightPart> ParseNightPart(const std::string& text) {
  const Words numbers = absl::StrSplit(text, '/');
  NightPart part;
  if (numbers.size() == 2 && absl::SimpleAtoi(numbers[0], &part.number) &&
      absl::SimpleAtoi(numbers[1], &part.of) && part.number >= 1 && part.number <= part.of) {
    return part;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--part: ", ForMessage(text), ", must be a part and their number, such as 2/8"));
}

absl::StatusOr<std::vector<NightRow>> PartOf(const std::vector<NightRow>& rows, const NightPart& part,
                                             bool whole_exposures) {
  std::map<std::string, int> exposures;  // numbered in the order in which they appear
  std::vector<NightRow> own;
  for (size_t k = 0; k < rows.size(); ++k) {
    int number = static_cast<int>(k);
    if (whole_exposures && part.of > 1) {
      if (rows[k].expid.empty()) {
        return LineError(
            rows[k].line,
            "has no expid, by which --part keeps the cameras of an exposure together; add the column, or "
            "leave out --part");
      }
      number = exposures.emplace(rows[k].expid, static_cast<int>(exposures.size())).first->second;
    }
    if (number % part.of == part.number - 1) own.push_back(rows[k]);
  }
  return own;
}

absl::StatusOr<std::vector<FrameTask>> NightTasks(const JobFlags& flags, const std::vector<NightRow>& rows,
                                                  const BatchProducts& products) {
  std::vector<FrameTask> tasks;
  for (const NightRow& row : rows) {
    JobFlags own = flags;
    own.input = row.image;
    own.psf = row.psf;
    if (!row.fibermap.empty()) own.fibermap = row.fibermap;
    if (!row.trace_reference.empty()) own.trace_reference = row.trace_reference;
    for (const auto& [name, text] : row.options) {
      const absl::Status status = SetOption(*OptionOf(name), text, &own.spec);
      if (!status.ok()) return LineError(row.line, status.message());
    }
    FrameTask task;
    SPEXD_ASSIGN_OR_RETURN(task.job, MakeJob(own, !row.model.empty()));
    task.output.frame = row.output;
    task.output.model = row.model;
    task.output.wants_scores = own.spec.scores;
    task.products = NameProducts(products, row.output);
    task.expid = row.expid;
    tasks.push_back(std::move(task));
  }
  return tasks;
}

}  // namespace spexd::cli
