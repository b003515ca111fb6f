// The files of products, as the field's programs read them; see core/products/README.md. Written as all files
// are (core/fits/writers.h).
#ifndef SPEXD_CORE_PRODUCTS_PRODUCT_FILES_H_
#define SPEXD_CORE_PRODUCTS_PRODUCT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/sky/sky.h"
#include "core/analysis/velocity/template_library.h"
#include "core/analysis/velocity/velocity.h"
#include "core/base/array.h"
#include "core/model/frame.h"
#include "core/products/number_table.h"

namespace spexd {

// HDUs SKY, IVAR, MASK, WAVELENGTH, STATIVAR, THRPUTCORR as desispec's read_sky takes them, and DECONVOLVED.
absl::Status WriteSky(const Frame& frame, const Sky& sky, const std::string& path, int threads = 1);

// IVAR and MASK of that file: 1 / variance of the model, 0 where there is no sky, and kMaskBadSky there.
Array<double, 2> SkyModelIvar(const Sky& sky);
Array<uint32_t, 2> SkyModelMask(const Sky& sky);

// The frame without the sky, flat-fielded if it was made so. A card IN_SKY tells that it was subtracted.
Frame SkySubtracted(Frame frame, const Sky& sky);

// A row for each of `targets`, with the columns of rvspecfit's tables and DCHI2, V2, NBIN. `parameters`:
// names of the templates' parameters.
NumberTable VelocityTable(const Frame& frame, const std::vector<int>& targets,
                          const std::vector<StarVelocity>& velocities,
                          const std::vector<std::string>& parameters);

// HDU RVTAB: the table; MODEL and CONTINUUM [target, bin]: the best fit, NaN where there is none; VELOCITY
// [velocity] and CHI2 [target, velocity]: the scan.
absl::Status WriteVelocities(const Frame& frame, const std::vector<int>& targets,
                             const std::vector<StarVelocity>& velocities,
                             const std::vector<std::string>& parameters, const VelocityOptions& options,
                             const std::string& path, int threads = 1);

// A row for each of `targets`.
NumberTable RedshiftTable(const Frame& frame, const std::vector<int>& targets,
                          const std::vector<LineRedshift>& lines);

// HDU ZLINES: the table; LINES: the lines that are looked for.
absl::Status WriteLines(const Frame& frame, const std::vector<int>& targets,
                        const std::vector<LineRedshift>& lines, const std::string& path);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_PRODUCT_FILES_H_
