// Timing frames through an engine.
#ifndef SPEXD_CLIENT_BENCH_MEASURE_H_
#define SPEXD_CLIENT_BENCH_MEASURE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/bench/inputs.h"
#include "core/base/status_macros.h"
#include "core/extract/engine.h"

namespace spexd::bench {

// Wall-clock seconds of one frame, from when its PSF and image are in memory; float32 result.
struct FrameTiming {
  double traces = 0;        // measurement of trace shifts, without the wait for a device
  double prepare = 0;       // Prepare only; 0 if the PSF was prepared before
  double first_bundle = 0;  // time until the first bundle arrived, Prepare included
  double wall = 0;          // time until the last bundle arrived and Extract returned
  StageTimes stages;        // CPU or device seconds

  double engine() const;  // sum of the stages
};

struct Spread {
  double median = 0, least = 0, most = 0;
};
// REQUIRES: values is not empty.
Spread SpreadOf(std::vector<double> values);
Spread SpreadOf(const std::vector<FrameTiming>& frames,
                const std::function<double(const FrameTiming&)>& value);

// Wall-clock seconds of `work`, which returns a status; its error if it failed.
template <typename Work>
absl::StatusOr<double> SecondsOf(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  SPEXD_RETURN_IF_ERROR(work());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Which PSF a frame is extracted with.
enum class PsfKind {
  kPrepared,  // one for all frames, prepared once
  kOwn,       // its own, which is prepared
  kMoved,     // one for all frames, moved by the trace shifts that are measured in the frame, then prepared
};
// "prepared", "own", "moved".
const char* PsfKindName(PsfKind kind);

// Frames one after the other, by PsfKind. Without kMoved where it was not asked for.
struct FrameSeries {
  std::vector<FrameTiming> prepared, own_psf, moved;
};

// `in_flight` threads, each with one frame after the other.
struct Throughput {
  int in_flight = 1;
  PsfKind psf = PsfKind::kPrepared;
  double seconds = 0;  // time from the first frame's start to the last one's end
  std::vector<FrameTiming> frames;

  double rate() const { return static_cast<double>(frames.size()) / seconds; }
};

struct ThroughputOptions {
  int in_flight = 1;
  PsfKind psf = PsfKind::kPrepared;
  int warmup = 1;      // frames of each thread before the clock starts
  int frames = 3;      // minimum number of frames ...
  double seconds = 5;  // ... and minimum duration
};

// A job that lost a bundle or had one that failed is an error (Internal), whatever is timed. `sink`, if any,
// gets the bundles.
absl::StatusOr<FrameTiming> TimePrepared(Engine* engine, const Inputs& inputs,
                                         std::shared_ptr<const PreparedPsf> prepared,
                                         const BundleSink& sink = nullptr);
absl::StatusOr<FrameTiming> TimeWithPsf(Engine* engine, const Inputs& inputs, std::shared_ptr<const Psf> psf,
                                        const WavelengthGrid& grid, const BundleSink& sink = nullptr);

// Measures the trace shifts of the frame against `psf`, and extracts with that PSF moved.
absl::StatusOr<FrameTiming> TimeMoved(Engine* engine, const Inputs& inputs, std::shared_ptr<const Psf> psf);

// `repeats` frames of each kind, in turn, after `warmup`; of kMoved only if `traces`.
absl::StatusOr<FrameSeries> TimeFrames(Engine* engine, const Inputs& inputs, int repeats, int warmup,
                                       bool traces);
absl::StatusOr<Throughput> TimeThroughput(Engine* engine, const Inputs& inputs,
                                          const ThroughputOptions& options);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_MEASURE_H_
