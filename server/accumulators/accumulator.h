// What frames add up to under a name: components of their sky residuals, or coadded spectra.
#ifndef SPEXD_SERVER_ACCUMULATORS_ACCUMULATOR_H_
#define SPEXD_SERVER_ACCUMULATORS_ACCUMULATOR_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/sky/sky.h"
#include "core/base/array.h"
#include "core/model/frame.h"
#include "core/products/coadd_frames.h"
#include "core/products/sky_pca.h"
#include "server/accumulators/state_file.h"

namespace spexd {

enum class AccumulatorKind : uint8_t { kPca = 1, kCoadd = 2 };

// What its owner asked for.
struct AccumulatorSpec {
  std::string owner, name;
  AccumulatorKind kind = AccumulatorKind::kPca;
  PcaOptions pca;         // of PCA
  bool with_sky = false;  // of coadds
  double created = 0;     // seconds since 1970
};

// A frame that is to be added, with what a job has made of it.
struct FrameToAdd {
  const Frame& frame;
  std::string name;    // in the series, and in errors
  std::string digest;  // see DigestOf
  std::string job_id;
  const std::optional<Fiberflat>& fiberflat;  // that the sky was made with
  const absl::StatusOr<Sky>& sky;
  int threads;
};

// SHA-256 of a frame's grid, flux, ivar and mask: it tells frames apart.
std::string DigestOf(const Frame& frame);

// Memory that one of PCA takes with a frame of so many fibres and bins, beside the frame; the frame that is
// added included.
int64_t PcaAccumulatorBytes(int64_t fibres, int64_t bins);
// Memory of a frame without its sky.
int64_t SkySubtractedBytes(int64_t fibres, int64_t bins);

// Not safe to use from many threads.
class Accumulator {
 public:
  explicit Accumulator(AccumulatorSpec spec);
  // What Write wrote. DataLoss names the file.
  static absl::StatusOr<Accumulator> Read(StateReader* file);
  void Write(StateWriter* file) const;

  // Whether it has this frame: by its digest, or as that of the same job, which may have run again. It is
  // known of the last kMostFrames frames.
  bool Has(const FrameToAdd& frame) const;
  // The most bytes, of memory and of its file, that it has with this frame. Errors of Add.
  absl::StatusOr<int64_t> BytesWith(const FrameToAdd& frame) const;
  // InvalidArgument: the frame is on another grid, or lacks what is needed. FailedPrecondition: it has no
  // sky. After an error nothing was added.
  absl::Status Add(const FrameToAdd& frame, double now);

  // The file that `spex pca` (with so many components; 0: the usual number) or `spex coadd` writes.
  // FailedPrecondition: there is too little in it.
  absl::StatusOr<std::string> File(int components) const;

  const AccumulatorSpec& spec() const { return spec_; }
  double changed() const { return changed_; }
  int64_t frames() const { return frames_; }
  double rows() const;  // spectra of PCA, targets of a coadd
  const WavelengthGrid& grid() const;

  static constexpr size_t kMostFrames = 10000;

 private:
  // How a frame that was added is known again.
  struct Known {
    std::string digest, job_id;
  };
  absl::Status ReadSums(StateReader* file);

  AccumulatorSpec spec_;
  double changed_ = 0;
  int64_t frames_ = 0;
  std::deque<Known> known_;
  std::variant<SkyPcaSums, CoaddFrameSums> sums_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ACCUMULATORS_ACCUMULATOR_H_
