// The products of one frame, each made from earlier ones: the sky, then redshifts from lines and velocities
// of stars from the spectra without it.
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
  bool sky_subtracted = false;  // the frame's sky has been subtracted already: no sky is made
  const Sky* sky = nullptr;     // of this frame and fiberflat, in place of a new one; or null
  bool velocities = false, lines = false;
  const Fiberflat* fiberflat = nullptr;        // divides the spectra first, if not null
  const TemplateLibrary* templates = nullptr;  // library for velocities
  VelocityOptions velocity_options;            // `threads` below replaces its own
  LineOptions line_options;
  Analyser* analyser = nullptr;             // makes the products; null: CPUs make them
  const DeviceSpectra* resident = nullptr;  // the frame on a device, if the analyser works there; or null
  // CPUs make products that the analyser cannot make because its device has no room or failed.
  bool fall_back = false;
  int threads = 1;
  std::stop_token stop = {};  // once a stop is requested, products that are not finished are Cancelled
};

enum class Product { kSky = 1, kVelocity = 2, kLines = 3 };  // numbers as in v1::Product

struct FrameProducts {
  absl::StatusOr<Sky> sky = absl::CancelledError("not asked for");
  // Rows of the frame that are not sky fibres. Velocities and lines are in their order.
  std::vector<int> targets;
  absl::StatusOr<std::vector<StarVelocity>> velocities = absl::CancelledError("not asked for");
  absl::StatusOr<std::vector<LineRedshift>> lines = absl::CancelledError("not asked for");
  std::vector<Product> by_device;  // products that a device made
};

// The definition of a product's names.
struct ProductInfo {
  using Member = std::variant<absl::StatusOr<Sky> FrameProducts::*,
                              absl::StatusOr<std::vector<StarVelocity>> FrameProducts::*,
                              absl::StatusOr<std::vector<LineRedshift>> FrameProducts::*>;

  Product product;
  const char* name;     // name in stages, metrics and messages, and field of v1::ProductPart
  const char* request;  // field of v1::ProductRequest that asks for the product
  const char* keyword;  // keyword in Python
  Member value;

  // The status of the product: Cancelled if it was not requested.
  absl::Status StatusIn(const FrameProducts& products) const {
    return std::visit([&](auto member) { return (products.*member).status(); }, value);
  }
};
// All products, in the order in which they are made.
inline constexpr ProductInfo kProducts[] = {
    {Product::kSky, "sky", "sky", "sky", &FrameProducts::sky},
    {Product::kLines, "lines", "lines", "redshifts", &FrameProducts::lines},
    {Product::kVelocity, "velocity", "templates", "velocities", &FrameProducts::velocities},
};
inline const ProductInfo& InfoOf(Product product) {
  return *std::find_if(std::begin(kProducts), std::end(kProducts),
                       [product](const ProductInfo& info) { return info.product == product; });
}

// The maker of a product: "cuda" or "cpu".
const char* MakerOf(Product product, const FrameProducts& products);

// Receives each product of a request as soon as it is finished or has failed, and the seconds that it took.
// The sky is included if other products need it.
using ProductObserver = std::function<void(Product product, const FrameProducts& products, double seconds)>;

// Makes the requested products. A product that fails has its error, and products that need it fail with it;
// others are not affected. Returns an error of all products for a frame of the wrong shape, a fiberflat that
// ApplyFiberflat refuses, or a frame that FibreKindsOf refuses.
absl::StatusOr<FrameProducts> Analyse(const Frame& frame, const AnalysisRequest& request,
                                      const ProductObserver& observer = {});

// The sizes that determine the memory of an analysis. `templates` have `samples` samples each; both are 0
// without velocities.
struct AnalysisSize {
  int64_t fibres = 0, bins = 0, templates = 0, samples = 0;
  int threads = 1;
  bool sky = true;  // whether a sky is made
};
// An upper estimate of the bytes that Analyse takes beside the frame, including its products.
int64_t AnalysisBytes(const AnalysisSize& size);
// The parts of AnalysisBytes. In a joint analysis each arm takes `kept`, and one arm at a time takes
// `working`.
struct AnalysisParts {
  int64_t kept = 0, working = 0;
};
AnalysisParts AnalysisPartsOf(const AnalysisSize& size);

// The kinds of a frame's fibres, as a fibermap states them.
struct FibreKinds {
  std::vector<int> good_sky;  // rows of sky fibres (OBJTYPE SKY) from which the sky is made
  std::vector<int> targets;   // rows of all other fibres
  // [row]: whether a fatal bit of FIBERSTATUS is set. Such a spectrum is not that of its target, or is badly
  // calibrated.
  std::vector<bool> fatal;
};

// The arm of the spectrograph to which a frame belongs: B, R or Z. It is the letter of the frame's CAMERA
// card or, without such a card, its band (BandOf).
char ArmOf(const Frame& frame);

// The column of a fibermap that holds the bits of FIBERSTATUS: COADD_FIBERSTATUS in coadds.
const char* StatusColumn(const RawTable& fibermap);
// Whether the spectra are coadds, which have neither sky nor sky fibres.
bool IsCoadd(const Frame& frame);

// The kinds of a frame's fibres. Bits of FIBERSTATUS count as in desispec (get_all_fiberbitmask_with_amp; for
// sky fibres also VARIABLETHRU): of the bits of amplifiers only that of the frame's own band, and no
// informative ones. Without the column no fibre is bad. InvalidArgument if there is no fibermap with OBJTYPE,
// or if its columns have other types.
absl::StatusOr<FibreKinds> FibreKindsOf(const Frame& frame);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_ANALYSE_H_
