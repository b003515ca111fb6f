#include "client/load/load.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/bench/machine/host.h"
#include "client/connection/grpc_connection.h"
#include "client/load/own_psf_files.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/fits/readers.h"
#include "core/plan/grid_plan.h"

namespace spexd::load {
namespace {

constexpr std::chrono::seconds kPatience(10);  // time limit of GetCapabilities
constexpr int kFramesOfEachClient = 4, kMinFrames = 8;
constexpr double kBinWidth = 0.8;
constexpr int kShifts = 100;  // shifts are at most 1e-4, the size of a barycentric correction
constexpr double kShift = 1e-6;
constexpr int kMaxOpenPsfs = 100;  // PSF files that jobs that arrive at random share

int FramesOf(const LoadOptions& options, int clients) {
  return options.frames.value_or(std::max(kFramesOfEachClient * clients, kMinFrames));
}

int MostClients(const LoadOptions& options) {
  if (options.open.has_value()) return options.open_clients;
  return *std::max_element(options.clients.begin(), options.clients.end());
}

absl::Status CheckCounts(const LoadOptions& options) {
  if (options.open.has_value()) {
    const OpenLoopOptions& open = *options.open;
    if (!PoissonArrivals(open.rate, open.seconds, open.seed).empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrFormat("--rate: of %g jobs a second none arrives within --seconds %g with --seed %d",
                        open.rate, open.seconds, open.seed));
  }
  const int most = MostClients(options);
  if (FramesOf(options, most) >= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--frames: %d, must be at least %d, the most of --clients", *options.frames, most));
}

absl::StatusOr<std::shared_ptr<const Psf>> OpenPsf(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadPsf(source));
  return std::make_shared<const Psf>(std::move(psf));
}

// Whether each job has a grid of its own. Redshifts and velocities need tables for each grid, which in
// production the frames of a camera share.
bool HaveOwnGrids(const client::JobProducts& products) {
  return products.templates.empty() && !products.lines;
}

WavelengthGrid Shifted(const WavelengthGrid& grid, int number) {
  return grid.Scaled(1 + kShift * (1 + number % kShifts));
}

absl::StatusOr<WavelengthGrid> ChooseGrid(const LoadOptions& options, const Psf& psf) {
  WavelengthGrid grid;
  if (options.grid.has_value()) {
    grid = *options.grid;
  } else {
    SPEXD_ASSIGN_OR_RETURN(grid, MakeWavelengthGrid(psf.wave_min, psf.wave_max, kBinWidth));
  }
  SPEXD_RETURN_IF_ERROR(CheckGrid(psf, grid));
  SPEXD_RETURN_IF_ERROR(CheckGrid(psf, Shifted(grid, kShifts - 1)));
  return grid;
}

absl::StatusOr<ServerInfo> AskServer(const LoadOptions& options, client::Connection* connection) {
  SPEXD_ASSIGN_OR_RETURN(const v1::Capabilities status,
                         connection->GetCapabilities(client::Clock::now() + kPatience));
  ServerInfo info;
  info.address = options.server;
  info.version = status.version();
  for (const v1::EngineStatus& engine : status.engines()) {
    if (!engine.runnable()) continue;
    info.engine = absl::StrCat(engine.kind(), ", ", engine.detail());
    info.devices = engine.devices_size();
    if (engine.kind() == "cuda") break;  // runs the jobs if both engines could
  }
  info.max_running_jobs = static_cast<int>(status.limits().max_running_jobs());
  return info;
}

// Makes the jobs, with PSF files and grids of their own.
class JobMaker {
 public:
  JobMaker(const LoadOptions& options, const WavelengthGrid& grid, std::unique_ptr<OwnPsfFiles> psfs)
      : options_(options), grid_(grid), psfs_(std::move(psfs)) {}

  // Adds to an error about a copy of the PSF how to put the copies elsewhere.
  absl::Status Explain(const absl::Status& status) const {
    if (!absl::StrContains(status.message(), psfs_->folder())) return status;
    return absl::Status(
        status.code(), absl::StrCat(status.message(), " (a copy of the PSF; --folder makes them elsewhere)"));
  }

  // Makes `count` jobs. `psfs`: the number of PSF files, which the jobs use in turn.
  absl::StatusOr<std::vector<client::Job>> Make(const std::string& image, int count, int psfs) {
    SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> files, psfs_->Write(psfs));
    std::vector<client::Job> jobs(static_cast<size_t>(count));
    for (size_t k = 0; k < jobs.size(); ++k) {
      jobs[k].image = image;
      jobs[k].psf = files[k % files.size()];
      jobs[k].spec.grid = HaveOwnGrids(options_.products) ? Shifted(grid_, number_++ % kShifts) : grid_;
      jobs[k].products = options_.products;
      jobs[k].spec.fibre_count = options_.fibres;
    }
    return jobs;
  }

 private:
  const LoadOptions& options_;
  const WavelengthGrid grid_;
  const std::unique_ptr<OwnPsfFiles> psfs_;
  int number_ = 0;
};

using Connections = std::vector<std::unique_ptr<client::Connection>>;

absl::StatusOr<Row> RunRow(const Connections& connections, JobMaker* jobs, const std::string& image, Way way,
                           int clients, int frames, std::stop_token stop) {
  std::vector<client::Connection*> some;
  for (int k = 0; k < clients; ++k) some.push_back(connections[k].get());
  SPEXD_ASSIGN_OR_RETURN(const std::vector<client::Job> list, jobs->Make(image, frames, frames));
  absl::StatusOr<Row> row = TimeJobs(some, list, way, stop);
  if (!row.ok()) return jobs->Explain(row.status());
  return row;
}

// The common part of the tests of a frame file and way.
struct Setting {
  const LoadOptions& options;
  const Connections& connections;
  JobMaker* jobs;
  const Announce& announce;
  std::stop_token stop;
};

absl::StatusOr<OpenRow> RunArrivals(const Setting& setting, const std::string& image, Way way, double rate,
                                    const std::vector<double>& arrivals) {
  const int count = static_cast<int>(arrivals.size());
  setting.announce(absl::StrFormat("%s by %s, %d jobs, %.3g a second",
                                   std::filesystem::path(image).filename().string(), WayName(way), count,
                                   rate));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<client::Job> jobs,
                         setting.jobs->Make(image, count, std::min(count, kMaxOpenPsfs)));
  SPEXD_ASSIGN_OR_RETURN(
      OpenRow row, RunOpenLoop(client::Pointers(setting.connections), jobs, arrivals, way, setting.stop));
  row.image = image;
  row.rate = rate;
  return row;
}

absl::Status RunOpen(const Setting& setting, const std::string& image, Way way, Report* report) {
  const OpenLoopOptions& open = *setting.options.open;
  const auto run = [&](double rate) -> absl::StatusOr<bool> {
    const std::vector<double> arrivals = PoissonArrivals(rate, open.seconds, open.seed);
    if (arrivals.empty()) return false;  // the search has reached rates that cannot be measured
    SPEXD_ASSIGN_OR_RETURN(report->open_rows.emplace_back(),
                           RunArrivals(setting, image, way, rate, arrivals));
    return !open.goal.has_value() || report->open_rows.back().Keeps(*open.goal, open.percentile);
  };
  if (!open.goal.has_value()) return run(open.rate).status();
  SPEXD_ASSIGN_OR_RETURN(const double rate, HighestRate(open.rate, run));
  report->best_rates.push_back({image, way, rate});
  return absl::OkStatus();
}

absl::Status RunClosed(const Setting& setting, const std::string& image, Way way, Report* report) {
  for (const int clients : setting.options.clients) {
    const int frames = FramesOf(setting.options, clients);
    setting.announce(absl::StrFormat("%s by %s, %d clients, %d frames",
                                     std::filesystem::path(image).filename().string(), WayName(way), clients,
                                     frames));
    SPEXD_ASSIGN_OR_RETURN(report->rows.emplace_back(), RunRow(setting.connections, setting.jobs, image, way,
                                                               clients, frames, setting.stop));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Report> RunLoad(const LoadOptions& options, const ConnectionMaker& connect,
                               const Announce& announce, std::stop_token stop) {
  SPEXD_RETURN_IF_ERROR(CheckCounts(options));
  Report report;
  report.command = bench::CommandLine();
  report.time = bench::TimeNow();
  report.processor = bench::ProcessorName();
  report.processors = AvailableCpus();
  SPEXD_ASSIGN_OR_RETURN(const std::shared_ptr<const Psf> psf, OpenPsf(options.psf));
  SPEXD_ASSIGN_OR_RETURN(report.grid, ChooseGrid(options, *psf));
  report.psf = options.psf;
  report.own_grids = HaveOwnGrids(options.products);
  report.fibres = options.fibres.value_or(psf->fibres);
  if (report.fibres > psf->fibres) {
    return absl::InvalidArgumentError(
        absl::StrFormat("--nspec: %d fibres, the PSF has %d", report.fibres, psf->fibres));
  }
  Connections connections;
  report.open = options.open;
  report.clients = MostClients(options);
  for (int k = 0; k < report.clients; ++k) {
    SPEXD_ASSIGN_OR_RETURN(std::unique_ptr<client::Connection> connection, connect());
    connections.push_back(std::move(connection));
  }
  SPEXD_ASSIGN_OR_RETURN(report.server, AskServer(options, connections[0].get()));
  SPEXD_ASSIGN_OR_RETURN(std::unique_ptr<OwnPsfFiles> psfs, OwnPsfFiles::Make(psf, options.folder));
  JobMaker jobs(options, report.grid, std::move(psfs));
  const Setting setting = {options, connections, &jobs, announce, stop};

  for (const std::string& image : options.images) {
    const std::string name = std::filesystem::path(image).filename().string();
    if (options.ceiling) {
      announce(absl::StrFormat("Decoding %s on %d threads", name, options.threads));
      SPEXD_ASSIGN_OR_RETURN(report.ceilings.emplace_back(),
                             MeasureDecoding(image, options.threads, options.ceiling_seconds, stop));
    }
    for (const Way way : options.ways) {
      announce(absl::StrFormat("%s by %s, to warm up", name, WayName(way)));
      SPEXD_RETURN_IF_ERROR(RunRow(connections, &jobs, image, way, 1, 1, stop).status());
      SPEXD_RETURN_IF_ERROR(options.open.has_value() ? RunOpen(setting, image, way, &report)
                                                     : RunClosed(setting, image, way, &report));
    }
  }
  return report;
}

}  // namespace spexd::load
