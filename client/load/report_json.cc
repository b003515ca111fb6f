#include "client/bench/machine/host.h"
#include "client/load/report.h"
#include "core/base/build_version.h"
#include "core/base/version.h"

namespace spexd::load {
namespace {

using Json = nlohmann::ordered_json;

Json OfJob(const JobTiming& job) {
  Json stages = Json::object();
  for (const StageSeconds& stage : job.stages) stages[stage.stage] = stage.seconds;
  return {{"wall", job.wall},       {"first_bundle", job.first_bundle},
          {"refused", job.retries}, {"queue", job.queue},
          {"run", job.run},         {"extract", job.extract()},
          {"rest", job.rest()},     {"stages", std::move(stages)}};
}

Json OfRow(const Row& row) {
  Json jobs = Json::array();
  for (const JobTiming& job : row.jobs) jobs.push_back(OfJob(job));
  return {{"frame", row.image},           {"by", WayName(row.way)}, {"clients", row.clients},
          {"frames", row.jobs.size()},    {"seconds", row.seconds}, {"frames_per_second", row.rate()},
          {"client_cpu", row.client_cpu}, {"jobs", std::move(jobs)}};
}

Json OfPercentiles(const Percentiles& values) {
  return {{"p50", values.p50}, {"p95", values.p95}, {"p99", values.p99}};
}

Json OfOpenRow(const OpenRow& row) {
  Json jobs = Json::array();
  for (const OpenJob& job : row.jobs) {
    jobs.push_back({{"arrival", job.arrival},
                    {"start", job.start},
                    {"whole", job.whole()},
                    {"queue", job.queue},
                    {"service", job.service},
                    {"end", JobEndName(job.end)}});
  }
  return {{"frame", row.image},
          {"by", WayName(row.way)},
          {"rate", row.rate},
          {"done", row.Count(JobEnd::kDone)},
          {"refused", row.Count(JobEnd::kRefused)},
          {"failed", row.Count(JobEnd::kFailed)},
          {"first_error", row.first_error},
          {"late", row.max_late()},
          {"queue", OfPercentiles(row.Of([](const OpenJob& job) { return job.queue; }))},
          {"service", OfPercentiles(row.Of([](const OpenJob& job) { return job.service; }))},
          {"whole", OfPercentiles(row.Of([](const OpenJob& job) { return job.whole(); }))},
          {"jobs", std::move(jobs)}};
}

Json OfArrivals(const Report& report) {
  Json json = {{"seconds", report.open->seconds},
               {"seed", report.open->seed},
               {"clients", report.clients},
               {"rows", Json::array()}};
  for (const OpenRow& row : report.open_rows) json["rows"].push_back(OfOpenRow(row));
  if (!report.open->goal.has_value()) return json;
  json["goal"] = {{"latency", *report.open->goal},
                  {"percentile", report.open->percentile},
                  {"highest_rates", Json::array()}};
  for (const Report::BestRate& best : report.best_rates) {
    json["goal"]["highest_rates"].push_back(
        {{"frame", best.image}, {"by", WayName(best.way)}, {"rate", best.rate}});
  }
  return json;
}

Json OfCeiling(const DecodeCeiling& ceiling) {
  return {{"frame", ceiling.image},
          {"bytes", ceiling.file_bytes},
          {"threads", ceiling.threads},
          {"one_thread", ceiling.one_thread},
          {"all_threads", ceiling.all_threads},
          {"frames_per_second", ceiling.rate}};
}

}  // namespace

Json ToJson(const Report& report) {
  const ServerInfo& server = report.server;
  const WavelengthGrid& grid = report.grid;
  Json json = {{"format", kReportFormat},
               {"unit", "second"},
               {"version", kVersion},
               {"commit", BuildCommit()},
               {"command", report.command},
               {"time", report.time},
               {"host", {{"processor", report.processor}, {"processors", report.processors}}},
               {"server",
                {{"address", server.address},
                 {"version", server.version},
                 {"engine", server.engine},
                 {"devices", server.devices},
                 {"max_running_jobs", server.max_running_jobs}}},
               {"input",
                {{"psf", report.psf},
                 {"fibres", report.fibres},
                 {"bins", grid.count},
                 {"grid", {{"first", grid.first}, {"last", grid.last()}, {"step", grid.step}}}}},
               {"decoding", Json::array()},
               {"rows", Json::array()}};
  for (const DecodeCeiling& ceiling : report.ceilings) json["decoding"].push_back(OfCeiling(ceiling));
  for (const Row& row : report.rows) json["rows"].push_back(OfRow(row));
  if (report.open.has_value()) json["arrivals"] = OfArrivals(report);
  return json;
}

}  // namespace spexd::load
