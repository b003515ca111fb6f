// Writers of the files of products, in the forms that the field's programs read (core/products/README.md) and
// in the way of all files (core/fits/writers.h).
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

// Writes HDUs SKY, IVAR, MASK, WAVELENGTH, STATIVAR and THRPUTCORR, as desispec's read_sky expects them, and
// DECONVOLVED.
absl::Status WriteSky(const Frame& frame, const Sky& sky, const std::string& path, int threads = 1);

// The IVAR and MASK of the sky's file: 1 / variance of the model, or 0 and kMaskBadSky where there is no sky.
Array<double, 2> SkyModelIvar(const Sky& sky);
Array<uint32_t, 2> SkyModelMask(const Sky& sky);

// The frame without the sky, flat-fielded if the sky was made so. A card IN_SKY states that the sky was
// subtracted.
Frame SkySubtracted(Frame frame, const Sky& sky);

// The table of velocities, with a row for each of `targets`, the columns of rvspecfit's tables, and DCHI2, V2
// and NBIN. `parameters`: names of the templates' parameters.
NumberTable VelocityTable(const Frame& frame, const std::vector<int>& targets,
                          const std::vector<StarVelocity>& velocities,
                          const std::vector<std::string>& parameters);

// Writes HDU RVTAB, the table; MODEL and CONTINUUM [target, bin], the best fit, NaN if there is none;
// VELOCITY [velocity] and CHI2 [target, velocity], the scan.
absl::Status WriteVelocities(const Frame& frame, const std::vector<int>& targets,
                             const std::vector<StarVelocity>& velocities,
                             const std::vector<std::string>& parameters, const VelocityOptions& options,
                             const std::string& path, int threads = 1);

// The table of redshifts, with a row for each of `targets`.
NumberTable RedshiftTable(const Frame& frame, const std::vector<int>& targets,
                          const std::vector<LineRedshift>& lines);

// Writes HDU ZLINES, the table, and LINES, the lines that are searched for.
absl::Status WriteLines(const Frame& frame, const std::vector<int>& targets,
                        const std::vector<LineRedshift>& lines, const std::string& path);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_PRODUCT_FILES_H_
