#include "client/bench/machine/host.h"
#include "client/bench/report.h"
#include "core/base/build_version.h"
#include "core/base/version.h"

namespace spexd::bench {
namespace {

using Json = nlohmann::ordered_json;

Json OfFrame(const FrameTiming& frame) {
  Json stages;
  for (Stage stage : kAllStages) stages[StageName(stage)] = frame.stages[stage];
  return {{"wall", frame.wall},       {"first_bundle", frame.first_bundle}, {"traces", frame.traces},
          {"prepare", frame.prepare}, {"engine", frame.engine()},           {"stages", std::move(stages)}};
}

Json OfFrames(const std::vector<FrameTiming>& frames) {
  Json array = Json::array();
  for (const FrameTiming& frame : frames) array.push_back(OfFrame(frame));
  return array;
}

Json OfSpread(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.least}, {"max", spread.most}};
}

Json OfEngine(const Report& report) {
  Json devices = Json::array();
  for (const DeviceStatus& device : report.devices) {
    devices.push_back(
        {{"index", device.index}, {"name", device.name}, {"memory_bytes", device.memory_bytes}});
  }
  return {{"kind", report.engine.kind},
          {"device", report.engine.device},
          {"threads", report.engine.threads},
          {"note", report.note},
          {"devices", std::move(devices)}};
}

Json OfInput(const Report& report) {
  return {{"description", report.input},
          {"fibres", report.fibres},
          {"bundles", report.bundles},
          {"bins", report.grid.count},
          {"grid", {{"first", report.grid.first}, {"last", report.grid.last()}, {"step", report.grid.step}}},
          {"ccd", {report.ccd_rows, report.ccd_columns}},
          {"image_bytes", report.image_bytes},
          {"result_bytes", report.result_bytes}};
}

Json OfCheck(const CheckReport& check) {
  Json json = {{"bundles", check.bundles}, {"bins", check.bins}, {"good_bins", check.good_bins}};
  if (check.truth.has_value()) {
    json["truth"] = {{"bins", check.truth->compared},
                     {"robust_sigma", check.truth->robust_sigma},
                     {"mean_pull", check.truth->mean}};
  }
  if (check.engines.has_value()) {
    json["engines"] = {{"reference", check.engines->reference}, {"bundle", check.engines->bundle},
                       {"bins", check.engines->compared},       {"flux_sigma", check.engines->pull},
                       {"sqrt_ivar", check.engines->sqrt_ivar}, {"resolution", check.engines->resolution}};
  }
  return json;
}

Json OfPeaks(const Peaks& peaks) {
  return {{"origin", peaks.origin},          {"threads", peaks.threads},
          {"flops_per_second", peaks.flops}, {"matrix_flops_per_second", peaks.matrix_flops},
          {"bytes_per_second", peaks.bytes}, {"link_bytes_per_second", peaks.link_bytes}};
}

Json OfStages(const Report& report) {
  Json array = Json::array();
  for (Stage stage : kAllStages) {
    const Floor& floor = report.floors[static_cast<size_t>(stage)];
    const auto value = [stage](const FrameTiming& frame) { return frame.stages[stage]; };
    array.push_back({{"name", StageName(stage)},
                     {"own_psf", OfSpread(SpreadOf(report.series->own_psf, value))},
                     {"prepared", OfSpread(SpreadOf(report.series->prepared, value))},
                     {"flops", floor.flops},
                     {"bytes", floor.bytes},
                     {"floor", LeastSeconds(stage, floor, report.peaks)},
                     {"bound", IsMemoryBound(stage, floor, report.peaks) ? "memory" : "arithmetic"}});
  }
  return array;
}

Json OfProducts(const ProductReport& report) {
  Json array = Json::array();
  for (const ProductTiming& product : report.products) {
    array.push_back({{"name", product.name},
                     {"of", product.of},
                     {"seconds", OfSpread(product.seconds)},
                     {"flops", product.floor.flops},
                     {"bytes", product.floor.bytes},
                     {"floor", report.LeastSeconds(product)}});
  }
  return {{"where", report.where},
          {"fibres", report.fibres},
          {"sky_fibres", report.sky_fibres},
          {"stars", report.stars},
          {"evaluations_a_star", report.evaluations},
          {"repeats", report.repeats},
          {"flops_per_second", report.flops},
          {"bytes_per_second", report.bytes},
          {"products", std::move(array)}};
}

}  // namespace

Json ToJson(const Report& report) {
  Json json = {{"format", kReportFormat},
               {"unit", "second"},
               {"version", kVersion},
               {"commit", BuildCommit()},
               {"command", report.command},
               {"time", report.time},
               {"host", {{"processor", report.processor}, {"processors", report.processors}}},
               {"engine", OfEngine(report)},
               {"input", OfInput(report)},
               {"check", report.check.has_value() ? OfCheck(*report.check) : Json()}};
  if (report.cold.has_value()) {
    json["cold"] = {{"process", report.cold->process},
                    {"engine", report.cold->engine},
                    {"total", report.cold->total()},
                    {"frame", OfFrame(report.cold->frame)}};
  }
  if (report.stages) {
    json["peaks"] = OfPeaks(report.peaks);
    json["stages"] = OfStages(report);
  }
  if (report.series.has_value()) {
    json["frames"] = {{"own_psf", OfFrames(report.series->own_psf)},
                      {"prepared", OfFrames(report.series->prepared)}};
    if (!report.series->moved.empty()) json["frames"]["moved"] = OfFrames(report.series->moved);
  }
  if (!report.throughput.empty()) json["throughput"] = Json::array();
  for (const Throughput& run : report.throughput) {
    Json walls = Json::array();
    for (const FrameTiming& frame : run.frames) walls.push_back(frame.wall);
    json["throughput"].push_back({{"in_flight", run.in_flight},
                                  {"psf", PsfKindName(run.psf)},
                                  {"seconds", run.seconds},
                                  {"frames_per_second", run.rate()},
                                  {"walls", std::move(walls)}});
  }
  if (report.products.has_value()) json["products"] = OfProducts(*report.products);
  if (report.device_products.has_value()) json["device_products"] = OfProducts(*report.device_products);
  return json;
}

}  // namespace spexd::bench
