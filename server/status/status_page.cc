#include "server/status/status_page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/products/analyse.h"
#include "core/products/joint/joint_product.h"
#include "server/base/retry.h"
#include "server/status/html.h"
#include "server/status/human_units.h"

namespace spexd {
namespace {

constexpr int kMaxUnderWay = 20;
constexpr int kMaxPsfs = 20;

constexpr char kHead[] =
    R"(<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="5">
<meta name="viewport" content="width=device-width,initial-scale=1"><title>spexd</title><style>
:root{color-scheme:light dark;--back:#f5f6f8;--card:#fff;--ink:#1c2330;--soft:#667085;--line:#e2e5ea;--good:#1a7f4b;--warn:#a86200;--bad:#c22d2d;--bar:#3b7dd8}
@media(prefers-color-scheme:dark){:root{--back:#12151b;--card:#1b2029;--ink:#e4e7ec;--soft:#98a2b3;--line:#2d3440;--good:#4cc38a;--warn:#e0a14a;--bad:#f07070;--bar:#5b9bf0}}
*{box-sizing:border-box}body{margin:0 auto;max-width:60rem;padding:.8rem;background:var(--back);color:var(--ink);font:15px/1.4 system-ui,sans-serif;font-variant-numeric:tabular-nums}
h1{margin:0;font-size:1.4rem}h1 small{font-size:.9rem;font-weight:400;color:var(--soft)}h2{margin:0 0 .5rem;font-size:1rem}
p{margin:.25rem 0}.soft{color:var(--soft);font-size:.85rem}.good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad)}
section{margin:.7rem 0;padding:.7rem .8rem;background:var(--card);border:1px solid var(--line);border-radius:.5rem}
.badge{font-size:.85rem;font-weight:600;padding:.1rem .6rem;border:1px solid;border-radius:1rem;white-space:nowrap}
.row{display:flex;gap:.6rem;align-items:baseline}.row>:first-child{flex:1;min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}.row>*{white-space:nowrap}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.5rem}.tiles div{border-left:3px solid var(--line);padding-left:.5rem}.tiles b{display:block;font-size:1.25rem}
.item{padding:.4rem 0;border-top:1px solid var(--line)}.item:first-of-type{border-top:0}.item p{overflow-wrap:anywhere}.item p.bad{font-size:.85rem}
.bar{display:flex;height:.7rem;margin:.2rem 0;border-radius:.2rem;overflow:hidden;background:var(--line)}.bar i{min-width:1px}
.legend{display:flex;flex-wrap:wrap;gap:.1rem .7rem}.legend i{display:inline-block;width:.7rem;height:.7rem;margin-right:.25rem;border-radius:.15rem}
svg{display:block;width:100%;height:5rem;border-bottom:1px solid var(--line)}svg rect{fill:var(--bar)}a{color:var(--bar)}
.receive{background:#8fb8de}.queue{background:#9aa3af}.decode{background:#4bb3a7}.traces{background:#8a9a5b}.prepare{background:#2f8f5b}.spots{background:#f2c14e}.normal{background:#f2994a}
.eliminate{background:#eb6e4b}.solve{background:#d64550}.resolution{background:#a23b72}.model{background:#7b4fa0}.sky{background:#5fb3d4}.lines{background:#c98bb9}.velocity{background:#6d7bc4}.redshifts{background:#b06fa0}.velocities{background:#5563ad}.models{background:#8f9bd8}.send{background:#3b7dd8}.resident{background:#2f8f5b}.workspace{background:#f2994a}
</style>
)";

double Seconds(JobBoard::Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

// Returns the last part of a path.
absl::string_view LastPart(absl::string_view name) {
  const size_t slash = name.rfind('/');
  return slash == absl::string_view::npos || slash + 1 == name.size() ? name : name.substr(slash + 1);
}

void AddState(const StatusPageContent& content, Html* page) {
  *page << "<span class=\"badge ";
  if (content.status.draining()) {
    *page << "warn\">draining</span>";
  } else if (!content.not_ready.empty()) {
    *page << "bad\">not serving</span>";
  } else {
    *page << "good\">serving</span>";
  }
}

void AddHeader(const StatusPageContent& content, Html* page) {
  *page << "<header><div class=\"row\"><h1>spexd <small>";
  page->Text(content.status.version());
  *page << "</small></h1>";
  AddState(content, page);
  *page << "</div><p class=\"soft\">";
  page->Text(absl::StrCat(content.address, ", up ", HumanSeconds(content.status.uptime_seconds())));
  *page << "</p>";
  if (!content.not_ready.empty() && !content.status.draining()) {
    *page << "<p class=\"bad\">";
    page->Text(content.not_ready);
    *page << "</p>";
  }
  int devices = 0, failed = 0;
  for (const v1::EngineStatus& engine : content.status.engines()) {
    devices += engine.devices_size();
    for (const v1::DeviceInfo& device : engine.devices()) failed += device.healthy() ? 0 : 1;
  }
  if (failed > 0) {
    *page << "<p class=\"bad\">";
    page->Text(absl::StrCat(failed, " of ", devices, devices == 1 ? " device" : " devices", " failed"));
    *page << "</p>";
  }
  *page << "</header>\n";
}

void AddTile(const std::string& value, absl::string_view what, Html* page) {
  *page << "<div><b>";
  page->Text(value);
  *page << "</b><span class=\"soft\">";
  page->Text(what);
  *page << "</span></div>";
}

void AddQueue(const StatusPageContent& content, Html* page) {
  const v1::Capabilities& status = content.status;
  double oldest = -1;
  for (const JobBoard::UnderWay& job : content.jobs.under_way) {
    if (job.waits()) oldest = std::max(oldest, Seconds(content.jobs.now - job.since));
  }
  *page << "<section id=\"queue\"><h2>Queue</h2><div class=\"tiles\">";
  AddTile(absl::StrCat(status.jobs_running()),
          absl::StrCat("running, of ", status.limits().max_running_jobs()), page);
  AddTile(absl::StrCat(status.jobs_queued()), absl::StrCat("waiting, of ", status.limits().max_queued_jobs()),
          page);
  AddTile(oldest < 0 ? "none" : HumanSeconds(oldest), "waits longest", page);
  AddTile(HumanCount(content.jobs.jobs_ok),
          absl::StrCat("done, ", HumanCount(content.jobs.jobs_failed), " failed, last hour"), page);
  *page << "</div>";
  if (content.detached_queued + content.detached_running > 0) {
    *page << "<p class=\"soft\">";
    page->Text(absl::StrCat("Detached jobs: ", HumanCount(content.detached_queued), " queued, ",
                            HumanCount(content.detached_running), " running"));
    *page << "</p>";
  }
  *page << "</section>\n";
}

// Adds a bar for each minute. The largest one is as high as the picture.
void AddThroughput(const JobBoard::View& jobs, Html* page) {
  const int64_t most = *std::max_element(jobs.spectra.begin(), jobs.spectra.end());
  int64_t all = 0;
  for (const int64_t spectra : jobs.spectra) all += spectra;
  *page << "<section id=\"throughput\"><h2>Spectra per minute</h2>"
           "<svg viewBox=\"0 0 600 100\" preserveAspectRatio=\"none\" role=\"img\">";
  for (size_t k = 0; k < jobs.spectra.size(); ++k) {
    if (jobs.spectra[k] == 0) continue;
    const double height =
        std::max(1.0, 98.0 * static_cast<double>(jobs.spectra[k]) / static_cast<double>(most));
    const size_t ago = jobs.spectra.size() - 1 - k;
    *page << "<rect width=\"8.5\" x=\"";
    page->Text(absl::StrCat(10 * k));
    *page << "\" y=\"";
    page->Text(absl::StrFormat("%.1f", 100 - height));
    *page << "\" height=\"";
    page->Text(absl::StrFormat("%.1f", height));
    *page << "\"><title>";
    page->Text(absl::StrCat(ago == 0 ? "this minute" : HumanAge(60.0 * static_cast<double>(ago)), ": ",
                            HumanCount(jobs.spectra[k])));
    *page << "</title></rect>";
  }
  *page << "</svg><div class=\"row soft\"><span>an hour ago</span><span>now</span></div><p class=\"soft\">";
  page->Text(absl::StrCat(HumanCount(all), " in the last hour, at most ", HumanCount(most), " a minute"));
  *page << "</p></section>\n";
}

void AddSegment(absl::string_view kind, double share, const std::string& title, Html* page) {
  *page << "<i class=\"";
  page->Text(kind);
  *page << "\" style=\"width:";
  page->Text(absl::StrFormat("%.2f%%", 100 * share));
  *page << "\" title=\"";
  page->Text(title);
  *page << "\"></i>";
}

std::string JobsAndLoad(const v1::DeviceInfo& device, const DeviceUsage& usage) {
  std::string text = absl::StrCat(device.running_jobs(), device.running_jobs() == 1 ? " job" : " jobs");
  if (usage.busy.has_value()) absl::StrAppendFormat(&text, ", %.0f %% busy", 100 * *usage.busy);
  return text;
}

void AddDevice(const v1::DeviceInfo& device, const DeviceUsage& usage, Html* page) {
  *page << "<div class=\"item\"><div class=\"row\"><span>device ";
  page->Text(absl::StrCat(device.index(), ", ", device.name()));
  *page << "</span>";
  if (device.healthy()) {
    page->Text(JobsAndLoad(device, usage));
  } else {
    *page << "<span class=\"bad\">failed</span>";
  }
  *page << "</div>";
  if (!device.healthy()) {
    *page << "<p class=\"bad\">";
    page->Text(device.detail());
    *page << "</p>";
  }
  const double all = std::max<double>(1, static_cast<double>(device.memory_bytes()));
  const std::string resident = HumanBytes(static_cast<int64_t>(device.resident_bytes()));
  const std::string workspace = HumanBytes(static_cast<int64_t>(device.workspace_bytes()));
  *page << "<div class=\"bar\">";
  AddSegment("resident", static_cast<double>(device.resident_bytes()) / all, "PSFs: " + resident, page);
  AddSegment("workspace", static_cast<double>(device.workspace_bytes()) / all, "jobs: " + workspace, page);
  *page << "</div><p class=\"soft legend\"><span><i class=\"resident\"></i>PSFs ";
  page->Text(resident);
  *page << "</span><span><i class=\"workspace\"></i>jobs ";
  page->Text(workspace);
  *page << "</span><span>of ";
  page->Text(HumanBytes(static_cast<int64_t>(device.memory_bytes())));
  if (usage.used_bytes.has_value())
    page->Text(absl::StrCat("; all programs ", HumanBytes(*usage.used_bytes)));
  *page << "</span></p></div>";
}

void AddEngines(const StatusPageContent& content, Html* page) {
  *page << "<section id=\"engine\"><h2>Engine</h2>";
  for (const v1::EngineStatus& engine : content.status.engines()) {
    *page << "<div class=\"item\"><div class=\"row\"><b>";
    page->Text(engine.kind());
    *page << "</b>";
    if (engine.runnable()) {
      *page << "<span class=\"good\">runs</span>";
    } else {
      *page << "<span class=\"soft\">does not run</span>";
    }
    *page << "</div><p class=\"soft\">";
    page->Text(engine.detail());
    *page << "</p></div>";
    for (const v1::DeviceInfo& device : engine.devices()) {
      const auto usage = content.usage.find(static_cast<int>(device.index()));
      AddDevice(device, usage == content.usage.end() ? DeviceUsage() : usage->second, page);
    }
  }
  *page << "</section>\n";
}

void AddImageName(const std::string& image, const std::string& id, Html* page) {
  *page << "<span title=\"";
  page->Text(image);
  *page << "\">";
  page->Text(image.empty() ? id : LastPart(image));
  *page << "</span>";
}

void AddUnderWay(const JobBoard::View& jobs, Html* page) {
  *page << "<section id=\"under-way\"><h2>Jobs under way</h2>";
  if (jobs.under_way.empty()) *page << "<p class=\"soft\">None.</p>";
  int shown = 0;
  for (const JobBoard::UnderWay& job : jobs.under_way) {
    if (++shown > kMaxUnderWay) break;
    *page << "<div class=\"item\"><div class=\"row\">";
    AddImageName(job.image, job.id, page);
    *page << "<span>";
    page->Text(job.state);
    if (job.bundles_total > 0) page->Text(absl::StrCat(" ", job.bundles_done, "/", job.bundles_total));
    *page << "</span><span class=\"soft\">";
    page->Text(absl::StrCat("for ", HumanSeconds(Seconds(jobs.now - job.since))));
    *page << "</span></div>";
    if (job.bundles_total > 0) {
      const double share = static_cast<double>(job.bundles_done) / job.bundles_total;
      *page << "<div class=\"bar\">";
      AddSegment("send", share, absl::StrFormat("%.0f %%", 100 * share), page);
      *page << "</div>";
    }
    *page << "<p class=\"soft\">";
    page->Text(job.id);
    *page << "</p></div>";
  }
  if (const size_t all = jobs.under_way.size(); all > kMaxUnderWay) {
    *page << "<p class=\"soft\">and ";
    page->Text(absl::StrCat(all - kMaxUnderWay, " more"));
    *page << "</p>";
  }
  *page << "</section>\n";
}

bool IsOfEngine(const std::string& stage) {
  return std::any_of(kAllStages.begin(), kAllStages.end(), [&](Stage s) { return stage == StageName(s); });
}

// Adds the stages' shares of a job's time. The seconds of the engine's stages are sums over threads or
// devices; they are scaled to the time that extraction took.
void AddStages(const JobBoard::Outcome& job, Html* page) {
  double engine = 0, extracting = job.engine_seconds, all = 0;
  for (const StageSeconds& stage : job.stages) {
    if (IsOfEngine(stage.stage)) engine += stage.seconds;
    if (stage.stage == "prepare") extracting -= stage.seconds;
  }
  const auto lasted = [&](const StageSeconds& stage) {
    return IsOfEngine(stage.stage) ? stage.seconds / engine * std::max(extracting, 0.0) : stage.seconds;
  };
  for (const StageSeconds& stage : job.stages) all += stage.seconds > 0 ? lasted(stage) : 0;
  all = std::max(all, job.seconds);
  *page << "<div class=\"bar\">";
  for (const StageSeconds& stage : job.stages) {
    if (stage.seconds <= 0) continue;
    AddSegment(stage.stage, lasted(stage) / all, absl::StrCat(stage.stage, " ", HumanSeconds(stage.seconds)),
               page);
  }
  *page << "</div>";
}

void AddEndedJob(const JobBoard::Ended& job, JobBoard::Clock::time_point now, Html* page) {
  const JobBoard::Outcome& outcome = job.outcome;
  const bool ok = outcome.code == absl::StatusCode::kOk;
  *page << "<div class=\"item\"><div class=\"row\">";
  AddImageName(job.image, job.id, page);
  if (ok) {
    *page << "<span>";
    page->Text(outcome.spectra > 0 ? absl::StrCat(HumanCount(outcome.spectra), " spectra") : "analysed");
  } else {
    *page << "<span class=\"bad\">";
    page->Text(CodeLabel(outcome.code));
  }
  *page << "</span><span>";
  page->Text(HumanSeconds(outcome.seconds));
  *page << "</span></div>";
  AddStages(outcome, page);
  if (!ok) {
    *page << "<p class=\"bad\">";
    page->Text(outcome.message);
    *page << "</p>";
  }
  *page << "<p class=\"soft\">";
  page->Text(absl::StrCat(HumanAge(Seconds(now - job.at)), ", ", job.id));
  *page << "</p></div>";
}

void AddEnded(const JobBoard::View& jobs, Html* page) {
  *page << "<section id=\"ended\"><h2>Last jobs</h2>";
  if (jobs.ended.empty()) {
    *page << "<p class=\"soft\">None yet.</p></section>\n";
    return;
  }
  *page << "<p class=\"soft legend\">";
  std::vector<absl::string_view> stages = {"receive", "queue", "decode", "traces", "prepare"};
  for (const Stage stage : kAllStages) stages.push_back(StageName(stage));
  for (const ProductInfo& product : kProducts) stages.push_back(product.name);
  for (const JointProduct product : kJointProducts) stages.push_back(NameOf(product));
  stages.push_back("send");
  for (const absl::string_view stage : stages) {
    *page << "<span><i class=\"";
    page->Text(stage);
    *page << "\"></i>";
    page->Text(stage);
    *page << "</span>";
  }
  *page << "</p>";
  for (const JobBoard::Ended& job : jobs.ended) AddEndedJob(job, jobs.now, page);
  *page << "</section>\n";
}

void AddPsfs(const v1::Capabilities& status, Html* page) {
  uint64_t bytes = 0;
  for (const v1::PsfInfo& psf : status.psfs()) bytes += psf.bytes();
  *page << "<section id=\"psfs\"><h2>Warm PSFs</h2><p class=\"soft\">";
  page->Text(absl::StrCat(status.psfs_total(), " with ", HumanBytes(static_cast<int64_t>(bytes)), " of ",
                          HumanBytes(static_cast<int64_t>(status.limits().psf_cache_bytes()))));
  *page << "</p>";
  for (int k = 0; k < std::min(status.psfs_size(), kMaxPsfs); ++k) {
    const v1::PsfInfo& psf = status.psfs(k);
    *page << "<div class=\"item\"><div class=\"row\"><span title=\"";
    page->Text(psf.name());
    *page << "\">";
    page->Text(LastPart(psf.name()));
    *page << "</span><span>";
    page->Text(HumanBytes(static_cast<int64_t>(psf.bytes())));
    *page << "</span></div><p class=\"soft\">";
    page->Text(absl::StrCat(psf.fibres(), " fibres, ", psf.prepared_grids(),
                            psf.prepared_grids() == 1 ? " grid" : " grids", psf.pinned() ? ", pinned" : "",
                            psf.in_use() ? ", in use" : "", ", ", psf.hash().substr(0, 12)));
    *page << "</p></div>";
  }
  if (status.psfs_total() > kMaxPsfs) {
    *page << "<p class=\"soft\">and ";
    page->Text(absl::StrCat(status.psfs_total() - kMaxPsfs, " more: spex psf list"));
    *page << "</p>";
  }
  *page << "</section>\n";
}

}  // namespace

std::string StatusPage(const StatusPageContent& content) {
  Html page;
  page << kHead << "<body>";
  AddHeader(content, &page);
  page << "<main>";
  AddQueue(content, &page);
  AddUnderWay(content.jobs, &page);
  AddThroughput(content.jobs, &page);
  AddEngines(content, &page);
  AddEnded(content.jobs, &page);
  AddPsfs(content.status, &page);
  page << "</main><footer class=\"soft\"><a href=\"/metrics\">metrics</a> <a href=\"/livez\">livez</a> <a "
          "href=\"/readyz\">readyz</a></footer></body></html>\n";
  return page.Take();
}

}  // namespace spexd
