#include "client/bench/measure.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/machine/cpus.h"
#include "core/base/seconds_since.h"
#include "core/base/status_macros.h"
#include "core/model/psf_traces/move_psf.h"

namespace spexd::bench {
namespace {

using Clock = std::chrono::steady_clock;

void SetImage(Engine* engine, const Inputs& inputs, RequestImage* request) {
  request->image = inputs.image;
  if (engine->Info().decodes) request->coded = inputs.coded;
}

absl::StatusOr<FrameTiming> Time(Engine* engine, const Inputs& inputs,
                                 std::shared_ptr<const PreparedPsf> prepared, Clock::time_point start,
                                 const BundleSink& sink,
                                 std::shared_ptr<const LoadedImage> loaded = nullptr) {
  FrameTiming timing;
  int bundles = 0;
  ExtractRequest request;
  request.prepared = std::move(prepared);
  request.loaded = std::move(loaded);
  SetImage(engine, inputs, &request);
  request.fibres = inputs.fibres();
  request.psferr = inputs.psf->psferr;
  request.float32 = true;
  const BundleSink count = [&](BundleResult bundle) -> absl::Status {
    if (bundles++ == 0) timing.first_bundle = SecondsSince(start);
    if (!bundle.status.ok()) {
      return absl::InternalError(
          absl::StrFormat("bundle %d failed: %s", bundle.bundle, std::string(bundle.status.message())));
    }
    return sink ? sink(std::move(bundle)) : absl::OkStatus();
  };
  SPEXD_ASSIGN_OR_RETURN(timing.stages, engine->Extract(request, count));
  timing.wall = SecondsSince(start);
  if (bundles != inputs.bundles()) {
    return absl::InternalError(
        absl::StrFormat("%d bundles arrived, the frame has %d", bundles, inputs.bundles()));
  }
  return timing;
}

}  // namespace

const char* PsfKindName(PsfKind kind) {
  return kind == PsfKind::kPrepared ? "prepared" : kind == PsfKind::kOwn ? "own" : "moved";
}

double FrameTiming::engine() const {
  return std::accumulate(stages.seconds.begin(), stages.seconds.end(), 0.0);
}

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
  return {median, values.front(), values.back()};
}

Spread SpreadOf(const std::vector<FrameTiming>& frames,
                const std::function<double(const FrameTiming&)>& value) {
  std::vector<double> values;
  for (const FrameTiming& frame : frames) values.push_back(value(frame));
  return SpreadOf(std::move(values));
}

absl::StatusOr<FrameTiming> TimePrepared(Engine* engine, const Inputs& inputs,
                                         std::shared_ptr<const PreparedPsf> prepared,
                                         const BundleSink& sink) {
  return Time(engine, inputs, std::move(prepared), Clock::now(), sink);
}

absl::StatusOr<FrameTiming> TimeWithPsf(Engine* engine, const Inputs& inputs, std::shared_ptr<const Psf> psf,
                                        const WavelengthGrid& grid, const BundleSink& sink) {
  const Clock::time_point start = Clock::now();
  SPEXD_ASSIGN_OR_RETURN(std::shared_ptr<const PreparedPsf> prepared,
                         engine->Prepare(std::move(psf), grid, inputs.bundle_size));
  const double prepare = SecondsSince(start);
  SPEXD_ASSIGN_OR_RETURN(FrameTiming timing, Time(engine, inputs, std::move(prepared), start, sink));
  timing.prepare = prepare;
  return timing;
}

absl::StatusOr<FrameTiming> TimeMoved(Engine* engine, const Inputs& inputs, std::shared_ptr<const Psf> psf) {
  const Clock::time_point start = Clock::now();
  TraceRequest request;
  SetImage(engine, inputs, &request);
  request.psf = psf;
  request.reference = inputs.sky;
  request.options.bundle_size = inputs.bundle_size;
  request.threads = AvailableCpus();
  SPEXD_ASSIGN_OR_RETURN(const MeasuredTraces measured, engine->MeasureTraces(request));
  const Clock::time_point begin = Clock::now();
  SPEXD_ASSIGN_OR_RETURN(std::shared_ptr<const PreparedPsf> prepared,
                         engine->Prepare(std::make_shared<const Psf>(MovePsf(*psf, measured.shifts)),
                                         inputs.grid, inputs.bundle_size));
  const double prepare = SecondsSince(begin);
  SPEXD_ASSIGN_OR_RETURN(FrameTiming timing,
                         Time(engine, inputs, std::move(prepared), start, nullptr, measured.image));
  timing.traces = measured.seconds;
  timing.prepare = prepare;
  return timing;
}

absl::StatusOr<FrameSeries> TimeFrames(Engine* engine, const Inputs& inputs, int repeats, int warmup,
                                       bool traces) {
  FrameSeries series;
  const OwnPsfs psfs(inputs);
  const std::shared_ptr<const Psf> displaced = DisplacedPsf(inputs);
  SPEXD_ASSIGN_OR_RETURN(const std::shared_ptr<const PreparedPsf> prepared,
                         engine->Prepare(inputs.psf, inputs.grid, inputs.bundle_size));
  // The kinds take turns, so that other load on the machine affects all of them.
  for (int frame = 0; frame < warmup + repeats; ++frame) {
    SPEXD_ASSIGN_OR_RETURN(const FrameTiming own,
                           TimeWithPsf(engine, inputs, psfs.psf(frame), psfs.grid(frame)));
    SPEXD_ASSIGN_OR_RETURN(const FrameTiming again, TimePrepared(engine, inputs, prepared));
    FrameTiming moved;
    if (traces) {
      SPEXD_ASSIGN_OR_RETURN(moved, TimeMoved(engine, inputs, displaced));
    }
    if (frame < warmup) continue;
    if (traces) series.moved.push_back(moved);
    series.own_psf.push_back(own);
    series.prepared.push_back(again);
  }
  return series;
}

absl::StatusOr<Throughput> TimeThroughput(Engine* engine, const Inputs& inputs,
                                          const ThroughputOptions& options) {
  Throughput result;
  result.in_flight = options.in_flight;
  result.psf = options.psf;
  const OwnPsfs psfs(inputs);
  const std::shared_ptr<const Psf> displaced = DisplacedPsf(inputs);
  std::shared_ptr<const PreparedPsf> prepared;
  if (options.psf == PsfKind::kPrepared) {
    SPEXD_ASSIGN_OR_RETURN(prepared, engine->Prepare(inputs.psf, inputs.grid, inputs.bundle_size));
  }
  std::atomic<int> next = 0;
  std::atomic<bool> failed = false;
  std::vector<absl::Status> status(options.in_flight);
  absl::Status no_threads;
  std::vector<std::vector<FrameTiming>> frames(options.in_flight);
  // Runs frames on one thread until `enough` is true for the number of the next frame.
  const auto work = [&](int thread, const std::function<bool(int)>& enough) {
    for (int frame = next++; !failed && !enough(frame); frame = next++) {
      const absl::StatusOr<FrameTiming> timing =
          options.psf == PsfKind::kPrepared ? TimePrepared(engine, inputs, prepared)
          : options.psf == PsfKind::kOwn    ? TimeWithPsf(engine, inputs, psfs.psf(frame), psfs.grid(frame))
                                            : TimeMoved(engine, inputs, displaced);
      if (timing.ok()) {
        frames[thread].push_back(*timing);
      } else {
        status[thread] = timing.status();
        failed = true;
      }
    }
  };
  const auto run = [&](const std::function<bool(int)>& enough) {
    next = 0;
    for (std::vector<FrameTiming>& own : frames) own.clear();
    std::vector<std::thread> threads;
    try {
      for (int k = 0; k < options.in_flight; ++k) threads.emplace_back([&, k] { work(k, enough); });
    } catch (const std::system_error& error) {
      no_threads = absl::ResourceExhaustedError(
          absl::StrFormat("%d threads for as many frames in flight: %s", options.in_flight, error.what()));
      failed = true;
    }
    for (std::thread& thread : threads) thread.join();
  };
  run([&](int frame) { return frame >= options.warmup * options.in_flight; });
  const Clock::time_point start = Clock::now();
  const int least = std::max(options.frames, options.in_flight);
  if (!failed) run([&](int frame) { return frame >= least && SecondsSince(start) >= options.seconds; });
  result.seconds = SecondsSince(start);
  SPEXD_RETURN_IF_ERROR(no_threads);
  for (const absl::Status& thread : status) SPEXD_RETURN_IF_ERROR(thread);
  for (const std::vector<FrameTiming>& own : frames) {
    result.frames.insert(result.frames.end(), own.begin(), own.end());
  }
  return result;
}

}  // namespace spexd::bench
