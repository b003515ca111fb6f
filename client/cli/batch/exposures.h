// The exposures of a batch: the frames of one exposure and spectrograph, for which joint products are made.
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
  nlohmann::json frames;  // checksum of each frame, by its path relative to the folder of the first
  absl::Status refused;   // not OK: why its products are not made
};

// Safe to use from many threads.
class Exposures {
 public:
  // `cameras`: the cameras of a batch without end; empty: exposures are complete when the batch ends.
  Exposures(const BatchProducts& products, std::set<std::string> cameras);

  // Adds a frame that was written, with its record. Returns its exposure if all cameras of the spectrograph
  // have come, and again if the frame replaces another. Frames without EXPID or CAMERA belong to no exposure.
  // An exposure with two frames of a camera, or with the file of another result, is refused.
  std::optional<Exposure> Add(const FrameTask& task, const nlohmann::json& record)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Marks the exposure of a missing frame, which another run may extract, as incomplete. Reads the image's
  // header.
  void Await(const std::string& image) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the exposures that Add has not returned and that await no frame, with the frames that they have.
  std::vector<Exposure> Rest() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Arm {
    std::string frame, file, checksum;  // file "": the exposure is made without the frame
  };
  using Arms = std::map<std::string, Arm>;  // by camera

  struct Group {
    std::string expid;
    Arms arms;
    bool returned = false;  // was returned with these arms
    absl::Status refused;
  };

  // Returns nullopt if the exposure would be made of no frame.
  std::optional<Exposure> MakeExposure(const std::string& key, const Group& group)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsComplete(const Arms& arms) const;

  const bool velocities_, redshifts_, less_sky_;
  const std::set<std::string> cameras_;
  Mutex mutex_;
  std::map<std::string, Group> groups_ ABSL_GUARDED_BY(mutex_);  // by ExposureKey
  // The files of frames and exposures, with the frame or ExposureKey to which each belongs.
  std::map<std::string, std::string> owners_ ABSL_GUARDED_BY(mutex_);
};

NamedFiles FilesOf(const Exposure& exposure);

// Returns the description of an exposure's products: checksums of inputs, and settings.
absl::StatusOr<nlohmann::json> DescribeExposure(const Exposure& exposure, const ProductInputs& inputs,
                                                BatchRecord* record);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_BATCH_EXPOSURES_H_
