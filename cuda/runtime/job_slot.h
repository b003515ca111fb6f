// Resources of a device, besides memory, that one job at a time uses: streams and events of its stages, made
// once.
#ifndef SPEXD_CUDA_RUNTIME_JOB_SLOT_H_
#define SPEXD_CUDA_RUNTIME_JOB_SLOT_H_

#include <array>

#include "core/extract/engine.h"
#include "core/extract/stage.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/memory/handles.h"
#include "cuda/runtime/pipeline.h"

namespace spexd::cuda {

struct JobSlot {
  Stream stream;
  Event begin;
  Event uploaded;
  Event ready;  // the job's PSF is on the device
  std::array<Event, kStageCount> stages;
  // Downloads in the order of their bundles: at most kDownloads, each of consecutive bundles. The last one's
  // event marks the job's end.
  static constexpr int kDownloads = 16;
  Stream download;
  std::array<Event, kDownloads> downloaded;
  int downloads = 0;  // number of downloads of the current job
  std::array<Stream, SideStreams::kCount> side;
  std::array<Event, SideStreams::kCount> side_done;
  Event side_begun;

  // `least`: the priority of the last side stream, that of the model, which fills what the others leave free.
  // All others have the next higher priority (CUDA keeps priorities within the device's range).
  cudaError_t Make(int least) {
    const int priority = least - 1;
    cudaError_t first = cudaSuccess;
    const auto note = [&first](cudaError_t error) { first = FirstError({first, error}); };
    note(MakeStream(priority, &stream));
    note(MakeStream(priority, &download));
    for (Stream& one : side) note(MakeStream(&one == &side.back() ? least : priority, &one));
    for (Event* event : {&begin, &uploaded, &ready, &side_begun}) note(MakeEvent(event));
    for (Event& event : downloaded) note(MakeEvent(&event));
    for (Event& event : stages) note(MakeEvent(&event));
    for (Event& event : side_done) note(MakeEvent(&event));
    return first;
  }

  JobStreams streams() const {
    JobStreams all;
    all.own = stream.get();
    for (int i = 0; i < SideStreams::kCount; ++i) {
      all.side.streams[i] = side[i].get();
      all.side.done[i] = side_done[i].get();
    }
    all.side.begun = side_begun.get();
    return all;
  }

  const Event& After(Stage stage) const { return stages[static_cast<size_t>(stage)]; }

  // Device seconds between the events of a job that has ended. The upload counts as kNormal, the download as
  // kModel. Other jobs share the device meanwhile. kSpots is not included: spots belong to the PSF.
  StageTimes Times() const {
    StageTimes times;
    const Event* before = &ready;
    for (Stage stage : kAllStages) {
      if (stage == Stage::kSpots) continue;
      times[stage] = SecondsBetween(*before, After(stage));
      before = &After(stage);
    }
    times[Stage::kNormal] += SecondsBetween(begin, uploaded);
    if (downloads > 0) times[Stage::kModel] += SecondsBetween(*before, downloaded[downloads - 1]);
    return times;
  }
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_JOB_SLOT_H_
