// The exposures of a batch: frames of one exposure and spectrograph, whose products are made together.
#ifndef SPEXD_CLIENT_CLI_BATCH_EXPOSURES_H_
#define SPEXD_CLIENT_CLI_BATCH_EXPOSURES_H_

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/batch/batch_record.h"
#include "client/cli/batch/frame_task.h"
#include "client/cli/flags/batch_products.h"
#include "client/cli/joint/analysis_units.h"
#include "core/base/threads/mutex.h"

namespace spexd::cli {

struct Exposure {
  AnalysisUnit unit;
  nlohmann::json frames;  // the checksum of each frame, by its path from the folder of the first
  absl::Status refused;   // not OK: its products are not made, for this reason
};

// Safe to use from many threads.
class Exposures {
 public:
  // `cameras`: those that a batch without end has; none: exposures are complete when the batch ends.
  Exposures(const BatchProducts& products, std::set<std::string> cameras);

  // A frame is there, with its record: returns its exposure if all cameras of the spectrograph are there
  // now, and again if the frame replaces another. Frames without EXPID or CAMERA belong to no exposure. One
  // with two frames of a camera, or with the file of another result, is refused.
  std::optional<Exposure> Add(const FrameTask& task, const nlohmann::json& record)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // A frame is missing that may be there after another run: its exposure waits for it. Reads the header of
  // the image.
  void Await(const std::string& image) ABSL_LOCKS_EXCLUDED(mutex_);

  // The exposures that Add has not returned yet and that await no frame, with the frames that they have.
  std::vector<Exposure> Rest() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Arm {
    std::string frame, file, checksum;  // file "": the frame has no part in the exposure
  };
  using Arms = std::map<std::string, Arm>;  // by camera

  struct Group {
    std::string expid;
    Arms arms;
    bool returned = false;  // with these arms
    absl::Status refused;
  };

  // nullopt: none of its frames has a part in it.
  std::optional<Exposure> MakeExposure(const std::string& key, const Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsComplete(const Arms& arms) const;

  const bool velocities_, redshifts_, less_sky_;
  const std::set<std::string> cameras_;
  Mutex mutex_;
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mutex_);  // by ExposureKey
  // Files of frames and exposures, with the frame or the ExposureKey that each is of.
  std::map<std::string, std::string> owners_ ABSL_GUARDED_BY(mutex_);
};

NamedFiles FilesOf(const Exposure& exposure);

// What the products of an exposure are made of.
absl::StatusOr<nlohmann::json> DescribeExposure(const Exposure& exposure, const ProductInputs& inputs,
                                                BatchRecord* record);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_EXPOSURES_H_
