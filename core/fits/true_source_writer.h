// Writers of the files of a simulated field beside its spectra, in the way of all files
// (core/fits/writers.h).
#ifndef SPEXD_CORE_FITS_TRUE_SOURCE_WRITER_H_
#define SPEXD_CORE_FITS_TRUE_SOURCE_WRITER_H_

#include <string>

#include "absl/status/status.h"
#include "core/model/true_source.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

// Writes HDU TRUTH, a row for each fibre: TARGETID, FIBER, OBJTYPE (SKY, STAR or GALAXY), THROUGHPUT, FLAT,
// FRINGEPHASE, LEVEL, VRAD, VSINI, the parameters of the templates, Z, LINESIGMA, and FLUX_ of each group of
// lines.
absl::Status WriteTrueSources(const TrueSources& sources, const std::string& path);

// Writes HDU FIBERFLAT [fibre, bin], which is FLAT times FringesAt of each fibre, and WAVELENGTH. IVAR, MASK
// and MEANSPEC are those of an exact flat under a lamp of constant light; desispec's read_fiberflat needs
// them. `camera`: CAMERA, such as r0.
absl::Status WriteTrueFiberflat(const TrueSources& sources, const WavelengthGrid& grid,
                                const std::string& camera, const std::string& path);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_TRUE_SOURCE_WRITER_H_
