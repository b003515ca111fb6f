// The timing of frames through an engine.
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

// The wall-clock seconds of one frame with float32 results, beginning when its PSF and image are in memory.
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
// REQUIRES: `values` is not empty.
Spread SpreadOf(std::vector<double> values);
Spread SpreadOf(const std::vector<FrameTiming>& frames,
                const std::function<double(const FrameTiming&)>& value);

// Returns the wall-clock seconds of `work`, which returns a status, or its error.
template <typename Work>
absl::StatusOr<double> SecondsOf(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  SPEXD_RETURN_IF_ERROR(work());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The PSF with which a frame is extracted.
enum class PsfKind {
  kPrepared,  // one PSF for all frames, prepared once
  kOwn,       // a PSF of the frame's own, prepared for it
  kMoved,     // one PSF for all frames, moved by the measured trace shifts of each frame, then prepared
};
// Returns "prepared", "own" or "moved".
const char* PsfKindName(PsfKind kind);

// Frames that ran one after the other, by PsfKind. `moved` is empty unless it was asked for.
struct FrameSeries {
  std::vector<FrameTiming> prepared, own_psf, moved;
};

// Frames that ran on `in_flight` threads at once, each with one frame after the other.
struct Throughput {
  int in_flight = 1;
  PsfKind psf = PsfKind::kPrepared;
  double seconds = 0;  // from the start of the first frame to the end of the last
  std::vector<FrameTiming> frames;

  double rate() const { return static_cast<double>(frames.size()) / seconds; }
};

struct ThroughputOptions {
  int in_flight = 1;
  PsfKind psf = PsfKind::kPrepared;
  int warmup = 1;      // frames per thread before the clock starts
  int frames = 3;      // minimum number of frames
  double seconds = 5;  // minimum duration, too
};

// The following functions time jobs. Internal: a job lost a bundle or had one that failed. `sink` (may be
// null) gets the bundles.
absl::StatusOr<FrameTiming> TimePrepared(Engine* engine, const Inputs& inputs,
                                         std::shared_ptr<const PreparedPsf> prepared,
                                         const BundleSink& sink = nullptr);
absl::StatusOr<FrameTiming> TimeWithPsf(Engine* engine, const Inputs& inputs, std::shared_ptr<const Psf> psf,
                                        const WavelengthGrid& grid, const BundleSink& sink = nullptr);

// Measures the trace shifts of the frame against `psf`, and extracts with that PSF moved.
absl::StatusOr<FrameTiming> TimeMoved(Engine* engine, const Inputs& inputs, std::shared_ptr<const Psf> psf);

// Times `repeats` frames of each kind, in turn, after `warmup` frames of each; kMoved only if `traces` is
// set.
absl::StatusOr<FrameSeries> TimeFrames(Engine* engine, const Inputs& inputs, int repeats, int warmup,
                                       bool traces);
absl::StatusOr<Throughput> TimeThroughput(Engine* engine, const Inputs& inputs,
                                          const ThroughputOptions& options);

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_MEASURE_H_
