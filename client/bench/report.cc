#include "client/bench/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/bench/table.h"
#include "core/base/version.h"

namespace spexd::bench {
namespace {

using Rows = std::vector<std::vector<std::string>>;

double Wall(const FrameTiming& frame) { return frame.wall; }

std::string SpreadText(const std::vector<FrameTiming>& frames, double (*value)(const FrameTiming&)) {
  const Spread spread = SpreadOf(frames, value);
  return MillisecondSpread(spread.median, spread.least, spread.most);
}

// Returns the name of the unit of the engine's StageTimes.
std::string SecondsKind(const Report& report) { return report.engine.kind == "cpu" ? "CPU" : "device"; }

std::string FormatHead(const Report& report) {
  std::string text = absl::StrCat("$ ", report.command, "\n");
  absl::StrAppend(&text, "engine  ", report.engine.kind, " (", report.engine.device, "), spexd ", kVersion,
                  "\n");
  for (const DeviceStatus& device : report.devices) {
    absl::StrAppend(&text, absl::StrFormat("device  %d: %s, %.1f GiB\n", device.index, device.name,
                                           static_cast<double>(device.memory_bytes) / (1 << 30)));
  }
  if (!report.note.empty()) absl::StrAppend(&text, "note    ", report.note, "\n");
  absl::StrAppend(&text, "host    ", report.processor, ", ", report.processors, " processors\n");
  absl::StrAppend(
      &text, absl::StrFormat("input   %s: %d fibres x %d bins (%.6g to %.6g by %.6g Angstrom), %d bundle%s, "
                             "CCD %d x %d\n",
                             report.input, report.fibres, report.grid.count, report.grid.first,
                             report.grid.last(), report.grid.step, report.bundles,
                             report.bundles == 1 ? "" : "s", report.ccd_rows, report.ccd_columns));
  return text;
}

std::string FormatCheck(const CheckReport& check) {
  std::string text =
      absl::StrFormat("check   %d bundle%s, all values finite, %.2f %% of the bins good", check.bundles,
                      check.bundles == 1 ? "" : "s",
                      100.0 * static_cast<double>(check.good_bins) / static_cast<double>(check.bins));
  if (check.truth.has_value()) {
    absl::StrAppend(&text, absl::StrFormat("; pulls against the truth: robust sigma %.4f of %d bins",
                                           check.truth->robust_sigma, check.truth->compared));
  }
  if (check.engines.has_value()) {
    const EngineDifference& d = *check.engines;
    absl::StrAppend(&text,
                    absl::StrFormat("; bundle %d against the %s engine: flux %.1g sigma, sqrt(ivar) %.1g, "
                                    "resolution %.1g, MASK the same",
                                    d.bundle, d.reference, d.pull, d.sqrt_ivar, d.resolution));
  }
  return text + "\n";
}

std::string FormatPeaks(const Peaks& peaks) {
  std::string text = absl::StrFormat("peaks   %.4g GFLOP/s", 1e-9 * peaks.flops);
  if (peaks.matrix_flops != peaks.flops) {
    absl::StrAppend(&text, absl::StrFormat(" (%.4g in matrix units)", 1e-9 * peaks.matrix_flops));
  }
  absl::StrAppend(&text, absl::StrFormat(", %.4g GB/s of memory", 1e-9 * peaks.bytes));
  if (peaks.link_bytes > 0) {
    absl::StrAppend(&text, absl::StrFormat(", %.4g GB/s each way to the host", 1e-9 * peaks.link_bytes));
  }
  return absl::StrCat(text, "; ", peaks.origin, "\n");
}

std::string FormatCold(const ColdStart& cold) {
  const Rows rows = {
      {"cold start", "ms"},
      {"process started", cold.process > 0 ? Milliseconds(cold.process) : "?"},
      {"engine made", Milliseconds(cold.engine)},
      {"PSF prepared", Milliseconds(cold.frame.prepare)},
      {"first bundle", Milliseconds(cold.frame.first_bundle - cold.frame.prepare)},
      {"all, to the first bundle", Milliseconds(cold.total())},
      {"and to the last", Milliseconds(cold.total() - cold.frame.first_bundle + cold.frame.wall)}};
  return absl::StrCat(
      "\nThe first frame of the process; its input lay in memory, reading it is left out.\n\n",
      FormatTable(rows));
}

std::string FormatStages(const Report& report) {
  const FrameSeries& series = *report.series;
  Rows rows = {{"stage", "own PSF, ms", "prepared, ms", "GFLOP", "MB", "floor, ms", "bound", "ratio"}};
  double floor_sum = 0, flops_sum = 0, bytes_sum = 0;
  for (Stage stage : kAllStages) {
    const Floor& floor = report.floors[static_cast<size_t>(stage)];
    const double least = LeastSeconds(stage, floor, report.peaks);
    const auto value = [stage](const FrameTiming& frame) { return frame.stages[stage]; };
    const Spread own = SpreadOf(series.own_psf, value), prepared = SpreadOf(series.prepared, value);
    rows.push_back({StageName(stage), MillisecondSpread(own.median, own.least, own.most),
                    Milliseconds(prepared.median), absl::StrFormat("%.4g", 1e-9 * floor.flops),
                    absl::StrFormat("%.0f", 1e-6 * floor.bytes), Milliseconds(least),
                    IsMemoryBound(stage, floor, report.peaks) ? "memory" : "arithmetic",
                    absl::StrFormat("%.1f", own.median / least)});
    floor_sum += least;
    flops_sum += floor.flops;
    bytes_sum += floor.bytes;
  }
  const auto engine = [](const FrameTiming& frame) { return frame.engine(); };
  rows.push_back({"all", SpreadText(series.own_psf, engine),
                  Milliseconds(SpreadOf(series.prepared, engine).median),
                  absl::StrFormat("%.4g", 1e-9 * flops_sum), absl::StrFormat("%.0f", 1e-6 * bytes_sum),
                  Milliseconds(floor_sum), "",
                  absl::StrFormat("%.1f", SpreadOf(series.own_psf, engine).median / floor_sum)});
  std::string text = absl::StrFormat("\nStages of a frame, %s seconds; medians of %d (least .. most)\n\n",
                                     SecondsKind(report), series.own_psf.size());
  absl::StrAppend(&text, FormatTable(rows));
  if (report.peaks.link_bytes > 0) {
    const double in = static_cast<double>(report.image_bytes), out = static_cast<double>(report.result_bytes);
    absl::StrAppend(&text,
                    absl::StrFormat("\nThe link to the host takes at least %s ms in (%.0f MB) and %s ms out "
                                    "(%.0f MB); no stage counts it.\n",
                                    Milliseconds(in / report.peaks.link_bytes), 1e-6 * in,
                                    Milliseconds(out / report.peaks.link_bytes), 1e-6 * out));
  }
  return text;
}

std::string FormatFrames(const Report& report) {
  Rows rows = {
      {"frame", "wall, ms", "first bundle, ms", "traces, ms", "Prepare, ms", SecondsKind(report) + ", ms"}};
  const FrameSeries& series = *report.series;
  for (const auto& [name, frames] : {std::pair{"own PSF", &series.own_psf},
                                     {"prepared", &series.prepared},
                                     {"moved PSF", &series.moved}}) {
    if (frames->empty()) continue;
    const auto median = [&](double FrameTiming::*value) {
      return Milliseconds(SpreadOf(*frames, [value](const FrameTiming& f) { return f.*value; }).median);
    };
    rows.push_back({name, SpreadText(*frames, Wall), median(&FrameTiming::first_bundle),
                    median(&FrameTiming::traces), median(&FrameTiming::prepare),
                    SpreadText(*frames, [](const FrameTiming& f) { return f.engine(); })});
  }
  return absl::StrFormat(
      "\nOne frame in flight, float32 result; medians of %d (least .. most); wall and first "
      "bundle with traces and Prepare\n\n%s",
      report.series->own_psf.size(), FormatTable(rows));
}

std::string FormatThroughput(const Report& report) {
  Rows rows = {{"in flight", "PSF", "frames", "seconds", "frames/s", "a frame, ms"}};
  for (const Throughput& run : report.throughput) {
    rows.push_back({absl::StrCat(run.in_flight), PsfKindName(run.psf), absl::StrCat(run.frames.size()),
                    absl::StrFormat("%.2f", run.seconds),
                    absl::StrFormat("%.*f", run.rate() < 10 ? 3 : 1, run.rate()),
                    SpreadText(run.frames, Wall)});
  }
  return absl::StrCat("\nThroughput\n\n", FormatTable(rows));
}

std::string FormatProducts(const ProductReport& report) {
  Rows rows = {{"product", "of", "ms", "GFLOP", "MB", "floor, ms", "ratio"}};
  for (const ProductTiming& product : report.products) {
    const double least = report.LeastSeconds(product);
    rows.push_back({product.name, product.of,
                    MillisecondSpread(product.seconds.median, product.seconds.least, product.seconds.most),
                    absl::StrFormat("%.4g", 1e-9 * product.floor.flops),
                    absl::StrFormat("%.3g", 1e-6 * product.floor.bytes), Milliseconds(least),
                    absl::StrFormat("%.1f", product.seconds.median / least)});
  }
  return absl::StrFormat(
      "\nProducts of a made-up frame of %d fibres, %d of them sky, on %s (%.4g GFLOP/s, %.4g GB/s); "
      "medians of %d (least .. most); %.0f evaluations of a star's model\n\n%s",
      report.fibres, report.sky_fibres, report.where, 1e-9 * report.flops, 1e-9 * report.bytes,
      report.repeats, report.evaluations, FormatTable(rows));
}

}  // namespace

double LeastSeconds(Stage stage, const Floor& floor, const Peaks& peaks) {
  const double arithmetic = floor.flops / (IsMatrixWork(stage) ? peaks.matrix_flops : peaks.flops);
  return peaks.threads * std::max(arithmetic, floor.bytes / peaks.bytes);
}

bool IsMemoryBound(Stage stage, const Floor& floor, const Peaks& peaks) {
  return floor.bytes / peaks.bytes > floor.flops / (IsMatrixWork(stage) ? peaks.matrix_flops : peaks.flops);
}

std::string FormatReport(const Report& report) {
  std::string text = FormatHead(report);
  if (report.check.has_value()) {
    absl::StrAppend(&text, FormatCheck(*report.check));
  } else {
    absl::StrAppend(&text, "check   none (--no-check): the results may be wrong\n");
  }
  if (report.stages) absl::StrAppend(&text, FormatPeaks(report.peaks));
  if (report.cold.has_value()) absl::StrAppend(&text, FormatCold(*report.cold));
  if (report.stages) absl::StrAppend(&text, FormatStages(report));
  if (report.frame) absl::StrAppend(&text, FormatFrames(report));
  if (!report.throughput.empty()) absl::StrAppend(&text, FormatThroughput(report));
  for (const auto& products : {report.products, report.device_products}) {
    if (products.has_value()) absl::StrAppend(&text, FormatProducts(*products));
  }
  return text;
}

}  // namespace spexd::bench
