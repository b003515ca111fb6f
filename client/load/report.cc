#include "client/load/report.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/bench/table.h"

namespace spexd::load {
namespace {

using Table = std::vector<std::vector<std::string>>;
using bench::Milliseconds;

std::string FileName(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string Rate(double per_second) { return absl::StrFormat("%.*f", per_second < 10 ? 2 : 1, per_second); }

std::string Ceilings(const Report& report) {
  if (report.ceilings.empty()) return "";
  const int threads = report.ceilings[0].threads;
  Table table = {{"decoding alone, no server", "MB", "1 thread, ms", absl::StrCat(threads, " threads, ms"),
                  absl::StrCat(threads, " files at once, frames/s")}};
  for (const DecodeCeiling& c : report.ceilings) {
    table.push_back({FileName(c.image), absl::StrFormat("%.1f", 1e-6 * static_cast<double>(c.file_bytes)),
                     Milliseconds(c.one_thread), Milliseconds(c.all_threads), Rate(c.rate)});
  }
  return absl::StrCat("\n", bench::FormatTable(table));
}

std::string Rates(const Report& report) {
  if (report.rows.empty()) return "";
  Table table = {{"frame", "by", "clients", "frames", "frames/s", "of decoding", "wall, ms", "most",
                  "first bundle, ms", "client CPU, ms", "refused"}};
  for (const Row& row : report.rows) {
    const DecodeCeiling* ceiling = report.CeilingOf(row.image);
    const bench::Spread wall = row.Of([](const JobTiming& job) { return job.wall; });
    const bench::Spread first = row.Of([](const JobTiming& job) { return job.first_bundle; });
    table.push_back({FileName(row.image), WayName(row.way), absl::StrCat(row.clients),
                     absl::StrCat(row.jobs.size()), Rate(row.rate()),
                     ceiling == nullptr ? "" : absl::StrFormat("%.0f %%", 100 * row.rate() / ceiling->rate),
                     Milliseconds(wall.median), Milliseconds(wall.most), Milliseconds(first.median),
                     Milliseconds(row.client_cpu / static_cast<double>(row.jobs.size())),
                     absl::StrCat(row.retries())});
  }
  return absl::StrCat("\n", bench::FormatTable(table));
}

// Returns the stages of the server's engine, in order.
std::vector<std::string> EngineStages(const Report& report) {
  std::vector<std::string> names;
  for (const StageSeconds& stage : report.rows[0].jobs[0].stages) {
    if (stage.stage != "receive" && stage.stage != "decode" && stage.stage != "prepare")
      names.push_back(stage.stage);
  }
  return names;
}

std::string Shares(const Report& report) {
  if (report.rows.empty()) return "";
  const std::vector<std::string> stages = EngineStages(report);
  Table table = {
      {"ms of a frame", "by", "clients", "receive", "queue", "decode", "prepare", "extract", "rest"}};
  table[0].insert(table[0].end(), stages.begin(), stages.end());
  for (const Row& row : report.rows) {
    const auto median = [&row](const std::function<double(const JobTiming&)>& value) {
      return Milliseconds(std::max(0.0, row.Of(value).median));
    };
    const auto stage = [&median](const std::string& name) {
      return median([&name](const JobTiming& job) { return job.stage(name); });
    };
    std::vector<std::string> cells = {FileName(row.image),
                                      WayName(row.way),
                                      absl::StrCat(row.clients),
                                      stage("receive"),
                                      median([](const JobTiming& job) { return job.queue; }),
                                      stage("decode"),
                                      stage("prepare"),
                                      median([](const JobTiming& job) { return job.extract(); }),
                                      median([](const JobTiming& job) { return job.rest(); })};
    for (const std::string& name : stages) cells.push_back(stage(name));
    table.push_back(std::move(cells));
  }
  return absl::StrCat("\n", bench::FormatTable(table));
}

std::string Arrivals(const Report& report) {
  if (!report.open.has_value()) return "";
  std::string text =
      absl::StrFormat("\njobs that arrive at random for %g s (--seed %d), at most %d at once; ms\n",
                      report.open->seconds, report.open->seed, report.clients);
  Table table = {{"frame", "by", "jobs/s", "jobs", "refused", "failed", "late", "queue p50", "p95", "p99",
                  "service p50", "p95", "p99", "whole p50", "p95", "p99"}};
  for (const OpenRow& row : report.open_rows) {
    std::vector<std::string> cells = {FileName(row.image),
                                      WayName(row.way),
                                      Rate(row.rate),
                                      absl::StrCat(row.jobs.size()),
                                      absl::StrCat(row.Count(JobEnd::kRefused)),
                                      absl::StrCat(row.Count(JobEnd::kFailed)),
                                      Milliseconds(row.max_late())};
    for (const Percentiles& p : {row.Of([](const OpenJob& job) { return job.queue; }),
                                 row.Of([](const OpenJob& job) { return job.service; }),
                                 row.Of([](const OpenJob& job) { return job.whole(); })}) {
      cells.insert(cells.end(), {Milliseconds(p.p50), Milliseconds(p.p95), Milliseconds(p.p99)});
    }
    table.push_back(std::move(cells));
  }
  text += bench::FormatTable(table);
  for (const OpenRow& row : report.open_rows) {
    if (!row.first_error.empty()) absl::StrAppend(&text, "first failure: ", row.first_error, "\n");
  }
  for (const Report::BestRate& best : report.best_rates) {
    absl::StrAppendFormat(&text, "%s by %s: %g %% of the jobs within %g s %s\n", FileName(best.image),
                          WayName(best.way), report.open->percentile, *report.open->goal,
                          best.rate > 0 ? absl::StrFormat("up to %s jobs/s", Rate(best.rate))
                                        : std::string("at no rate that was tried"));
  }
  return text;
}

}  // namespace

const DecodeCeiling* Report::CeilingOf(const std::string& image) const {
  for (const DecodeCeiling& ceiling : ceilings) {
    if (ceiling.image == image) return &ceiling;
  }
  return nullptr;
}

std::string FormatReport(const Report& report) {
  std::string text = absl::StrCat("$ ", report.command, "\n");
  absl::StrAppendFormat(&text, "spexd %s at %s: %s; at most %d jobs at once\n", report.server.version,
                        report.server.address, report.server.engine, report.server.max_running_jobs);
  absl::StrAppendFormat(&text, "%d fibres x %d bins, %g to %g Angstrom, each frame with its own PSF%s\n",
                        report.fibres, report.grid.count, report.grid.first, report.grid.last(),
                        report.own_grids ? " and grid" : "");
  absl::StrAppendFormat(&text, "clients on %s, %d processors\n", report.processor, report.processors);
  return absl::StrCat(text, Ceilings(report), Rates(report), Shares(report), Arrivals(report));
}

}  // namespace spexd::load
