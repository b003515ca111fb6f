// The products of one frame, each from those before it: sky, then redshifts of lines and velocities of stars
// from what is left.
#ifndef SPEXD_CORE_PRODUCTS_ANALYSE_H_
#define SPEXD_CORE_PRODUCTS_ANALYSE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/sky/sky.h"
#include "core/analysis/velocity/template_library.h"
#include "core/analysis/velocity/velocity.h"
#include "core/model/frame.h"
#include "core/products/inputs/fiberflat.h"

namespace spexd {

struct AnalysisRequest {
  bool sky_subtracted = false;  // the frame has no sky in it any more: no sky is made
  const Sky* sky = nullptr;     // made before of this frame and fiberflat, and taken instead of a new one
  bool velocities = false, lines = false;
  const Fiberflat* fiberflat = nullptr;        // divides the spectra first; null: nothing does
  const TemplateLibrary* templates = nullptr;  // for velocities
  VelocityOptions velocity_options;            // its `threads` too are those below
  LineOptions line_options;
  Analyser* analyser = nullptr;             // who makes them; null: processors
  const DeviceSpectra* resident = nullptr;  // the frame on a device, for an analyser that is there
  // Processors make what the analyser cannot: its device has no room, or failed.
  bool fall_back = false;
  int threads = 1;
  std::stop_token stop = {};  // products that are not there yet are Cancelled
};

enum class Product { kSky = 1, kVelocity = 2, kLines = 3 };  // as v1::Product numbers them

struct FrameProducts {
  absl::StatusOr<Sky> sky = absl::CancelledError("not asked for");
  // Rows of the frame that are no sky fibres; velocities and lines are theirs.
  std::vector<int> targets;
  absl::StatusOr<std::vector<StarVelocity>> velocities = absl::CancelledError("not asked for");
  absl::StatusOr<std::vector<LineRedshift>> lines = absl::CancelledError("not asked for");
  std::vector<Product> by_device;  // those that a device made
};

// The one definition of a product's names.
struct ProductInfo {
  using Member = std::variant<absl::StatusOr<Sky> FrameProducts::*,
                              absl::StatusOr<std::vector<StarVelocity>> FrameProducts::*,
                              absl::StatusOr<std::vector<LineRedshift>> FrameProducts::*>;

  Product product;
  const char* name;     // in stages, metrics and messages, and of its part in v1::ProductPart
  const char* request;  // the field of v1::ProductRequest that asks for it
  const char* keyword;  // in Python
  Member value;

  // How it went; Cancelled if it was not asked for.
  absl::Status StatusIn(const FrameProducts& products) const {
    return std::visit([&](auto member) { return (products.*member).status(); }, value);
  }
};
// In the order in which they are made.
inline constexpr ProductInfo kProducts[] = {
    {Product::kSky, "sky", "sky", "sky", &FrameProducts::sky},
    {Product::kLines, "lines", "lines", "redshifts", &FrameProducts::lines},
    {Product::kVelocity, "velocity", "templates", "velocities", &FrameProducts::velocities},
};
inline const ProductInfo& InfoOf(Product product) {
  return *std::find_if(std::begin(kProducts), std::end(kProducts),
                       [product](const ProductInfo& info) { return info.product == product; });
}

// "cuda" or "cpu": who made a product.
const char* MakerOf(Product product, const FrameProducts& products);

// Hears of each product of a request (of the sky too where the others need it) as soon as it is there or has
// failed, and how long it took.
using ProductObserver = std::function<void(Product product, const FrameProducts& products, double seconds)>;

// A product that fails has its error, and those that need it fail with it; others are not harmed. An error of
// all: a frame of the wrong shape, a fiberflat that ApplyFiberflat refuses, or what FibreKindsOf
// refuses.
absl::StatusOr<FrameProducts> Analyse(const Frame& frame, const AnalysisRequest& request,
                                      const ProductObserver& observer = {});

// What the memory of an analysis depends on. `templates` of `samples` each; 0 without velocities.
struct AnalysisSize {
  int64_t fibres = 0, bins = 0, templates = 0, samples = 0;
  int threads = 1;
  bool sky = true;  // one is made
};
// An upper estimate of the memory that Analyse takes beside the frame, its products included.
int64_t AnalysisBytes(const AnalysisSize& size);
// Its parts: of a joint analysis, each arm takes the first, and one arm at a time the second.
struct AnalysisParts {
  int64_t kept = 0, working = 0;
};
AnalysisParts AnalysisPartsOf(const AnalysisSize& size);

// What a fibermap says of a frame's fibres.
struct FibreKinds {
  std::vector<int> good_sky;  // rows of sky fibres (OBJTYPE SKY) from which the sky is made
  std::vector<int> targets;   // rows of all other fibres
  // [row]: a fatal bit of FIBERSTATUS is set. The spectrum is not that of its target, or is badly calibrated.
  std::vector<bool> fatal;
};

// The arm of the spectrograph that a frame is of: B, R or Z, the letter of its CAMERA card or, without such a
// card, its band (BandOf).
char ArmOf(const Frame& frame);

// The column of a fibermap that has the bits of FIBERSTATUS: in coadds COADD_FIBERSTATUS.
const char* StatusColumn(const RawTable& fibermap);
// Whether the spectra are coadds, which have no sky in them and no sky fibres.
bool IsCoadd(const Frame& frame);

// Bits of FIBERSTATUS count as in desispec (get_all_fiberbitmask_with_amp; for sky fibres also
// VARIABLETHRU): those of amplifiers in the frame's own band alone, and informative ones not at all. Without
// the column no fibre is bad. InvalidArgument without a fibermap that has OBJTYPE, or where its columns are
// of other types.
absl::StatusOr<FibreKinds> FibreKindsOf(const Frame& frame);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_ANALYSE_H_
