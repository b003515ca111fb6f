#include "client/cli/night/night_metrics.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/median.h"
#include "core/base/seconds_since.h"
#include "core/fits/hdu/output_file.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"

namespace spexd::cli {
namespace {

using nlohmann::json;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using State = BatchResult::State;

constexpr std::pair<State, const char*> kStates[] = {{State::kWritten, "written"},
                                                     {State::kSkipped, "skipped"},
                                                     {State::kFailed, "failed"},
                                                     {State::kNotReached, "not_reached"}};
constexpr char kUnknown[] = "unknown";  // camera of frames that could not be read

struct Quantity {
  const char* name;
  const char* help;
};
constexpr Quantity kGauges[NightNumbers::kQuantities] = {
    {"chi2pix", "Median chi2pix of a frame; above 1, image and PSF do not fit"},
    {"snr", "Median over targets of their S/N per bin"},
    {"sky_level", "Median sky of a frame, electrons per Angstrom"},
    {"masked_ratio", "Share of a frame's bins that are masked"},
    {"trace_shift_x_pixels", "Mean shift of a frame's traces against its PSF in x"},
    {"trace_shift_y_pixels", "Mean shift of a frame's traces against its PSF in y"},
    {"redshift_ratio", "Share of a frame's targets whose redshift was accepted"},
    {"frame_seconds", "Seconds that a frame took, in the queue too"}};

std::optional<double> MaybeNumber(const json& value) {
  return value.is_number() ? std::optional<double>(value.get<double>()) : std::nullopt;
}

std::optional<double> Share(const json& record, const char* part, const char* of) {
  const double whole = NumberIn(record, of);
  if (whole <= 0 || !ValueIn(record, part).is_number()) return std::nullopt;
  return NumberIn(record, part) / whole;
}

// Returns the mean of the shifts along an axis; nullopt: its status has no mean.
std::optional<double> Shift(const json& record, const char* axis) {
  const json& shift = ValueIn(ValueIn(record, "trace_shifts"), axis);
  const json& status = ValueIn(shift, "status");
  return status == "ok" || status == "weak" ? MaybeNumber(ValueIn(shift, "mean")) : std::nullopt;
}

// Returns the values of a record, in the order of kGauges.
std::array<std::optional<double>, NightNumbers::kQuantities> ValuesOf(const json& record) {
  const json& products = ValueIn(record, "products");
  return {MaybeNumber(ValueIn(record, "chi2pix")),
          MaybeNumber(ValueIn(record, "snr")),
          MaybeNumber(ValueIn(ValueIn(products, "sky"), "level")),
          Share(record, "masked_bins", "bins"),
          Shift(record, "x"),
          Shift(record, "y"),
          Share(ValueIn(products, "redshifts"), "accepted", "targets"),
          NumberIn(record, "seconds") + NumberIn(record, "queue_seconds")};
}

std::string CameraOf(const json& record) {
  const std::string camera = TextIn(record, "camera");
  return camera.empty() ? kUnknown : camera;
}

// Families of gauges, in the order of Begin.
class Gauges {
 public:
  void Begin(const std::string& name, const std::string& help) {
    families_.push_back({"spexd_night_" + name, help, prometheus::MetricType::Gauge, {}});
  }
  void Add(double value, const std::vector<ClientMetric::Label>& labels = {}) {
    ClientMetric metric;
    metric.label = labels;
    metric.gauge.value = value;
    families_.back().metric.push_back(std::move(metric));
  }
  void AddStates(const std::map<State, int>& counts, const std::vector<ClientMetric::Label>& labels = {}) {
    for (const auto& [state, name] : kStates) {
      const auto count = counts.find(state);
      std::vector<ClientMetric::Label> all = labels;
      all.push_back({"state", name});
      Add(count == counts.end() ? 0 : count->second, all);
    }
  }
  // Returns the text, without empty families.
  std::string Text() {
    std::erase_if(families_, [](const MetricFamily& family) { return family.metric.empty(); });
    return prometheus::TextSerializer().Serialize(families_);
  }

 private:
  std::vector<MetricFamily> families_;
};

}  // namespace

void NightNumbers::Add(const BatchResult& result) {
  if (result.image.empty()) {
    ++exposures_[result.state];
    return;
  }
  std::string name = CameraOf(result.record);
  if (cameras_.size() >= kMaxCameras && !cameras_.contains(name)) name = "other";
  Camera& camera = cameras_[name];
  ++camera.frames[result.state];
  if (result.state != State::kWritten && result.state != State::kSkipped) return;
  camera.bad_fits += ValueIn(result.record, "bad_fit") == true ? 1 : 0;
  camera.failed_products += CountErrors(result.record);
  const double written = NumberIn(result.record, "written");
  const bool is_last = written >= camera.written;
  camera.written = std::max(camera.written, written);
  const auto values = ValuesOf(result.record);
  for (size_t k = 0; k < kQuantities; ++k) {
    if (!values[k].has_value()) continue;
    if (is_last || camera.values[k].empty()) camera.last[k] = *values[k];
    camera.values[k].push_back(*values[k]);
  }
}

std::string NightNumbers::Text(bool running) const {
  Gauges gauges;
  gauges.Begin("running", "1 while the run goes on");
  gauges.Add(running ? 1 : 0);
  gauges.Begin("start_timestamp_seconds", "Start of the run, seconds since the epoch");
  gauges.Add(start_);
  gauges.Begin("listed_frames", "Frames of the list; 0 where it has no end");
  gauges.Add(static_cast<double>(listed_));
  gauges.Begin("frames", "Frames by camera and what became of them");
  for (const auto& [name, camera] : cameras_) gauges.AddStates(camera.frames, {{"camera", name}});
  gauges.Begin("exposures", "Exposures whose products were made, by what became of them");
  gauges.AddStates(exposures_);
  gauges.Begin("last_frame_timestamp_seconds", "When the last frame was written, seconds since the epoch");
  for (const auto& [name, camera] : cameras_) {
    if (camera.written > 0) gauges.Add(camera.written, {{"camera", name}});
  }
  gauges.Begin("bad_fits", "Frames whose image and PSF do not fit each other");
  for (const auto& [name, camera] : cameras_) gauges.Add(camera.bad_fits, {{"camera", name}});
  gauges.Begin("failed_products", "Products of frames that could not be made");
  for (const auto& [name, camera] : cameras_) gauges.Add(camera.failed_products, {{"camera", name}});
  for (size_t k = 0; k < kQuantities; ++k) {
    const Quantity& quantity = kGauges[k];
    gauges.Begin(quantity.name, absl::StrCat(quantity.help, "; of the last frame"));
    for (const auto& [name, camera] : cameras_) {
      if (!camera.values[k].empty()) gauges.Add(camera.last[k], {{"camera", name}});
    }
    gauges.Begin(absl::StrCat(quantity.name, "_median"),
                 absl::StrCat(quantity.help, "; median of all frames"));
    for (const auto& [name, camera] : cameras_) {
      std::vector<double> values = camera.values[k];
      if (!values.empty()) gauges.Add(Median(values), {{"camera", name}});
    }
  }
  return gauges.Text();
}

NightMetricsFile::NightMetricsFile(std::string path, size_t listed, std::chrono::milliseconds pause)
    : path_(std::move(path)), pause_(pause), numbers_(listed, SecondsSince1970()) {}

NightMetricsFile::~NightMetricsFile() { StopThread(); }

absl::Status NightMetricsFile::Begin() {
  std::string text;
  {
    const MutexLock lock(&mutex_);
    text = numbers_.Text(true);
  }
  absl::Status written = WriteFileAtomically(path_, text);
  if (written.ok()) thread_ = std::thread([this] { Work(); });
  return written;
}

void NightMetricsFile::Add(const BatchResult& result) {
  const MutexLock lock(&mutex_);
  numbers_.Add(result);
  is_new_ = true;
  changed_.NotifyAll();
}

void NightMetricsFile::Work() {
  while (true) {
    std::string text;
    {
      const MutexLock lock(&mutex_);
      while (!is_new_ && !ends_) changed_.Wait(&mutex_);
      if (ends_) return;
      is_new_ = false;
      text = numbers_.Text(true);
    }
    const absl::Status written = WriteFileAtomically(path_, text);
    const auto next = std::chrono::steady_clock::now() + pause_;
    const MutexLock lock(&mutex_);
    status_.Update(written);
    while (!ends_ && changed_.WaitUntil(&mutex_, next)) {
    }
  }
}

void NightMetricsFile::StopThread() {
  {
    const MutexLock lock(&mutex_);
    ends_ = true;
    changed_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status NightMetricsFile::End() {
  StopThread();
  const MutexLock lock(&mutex_);
  status_.Update(WriteFileAtomically(path_, numbers_.Text(false)));
  return status_;
}

}  // namespace spexd::cli
