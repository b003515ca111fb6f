// The header cards that tell a frame's origin, written and read in one place.
#ifndef SPEXD_CORE_FITS_FRAME_HEADER_H_
#define SPEXD_CORE_FITS_FRAME_HEADER_H_

#include <string>
#include <vector>

#include "core/fits/hdu/fits_builder.h"
#include "core/model/frame.h"

namespace spexd {

// The input image's cards, then IN_IMG, IN_PSF, ORIG_PSF, PSFERR, trace shifts and the extractor.
// `same_pixels`: what is written has the image's pixel grid, so that its world coordinates still hold.
void WriteOrigin(const FrameOrigin& origin, bool same_pixels, FitsBuilder& fits);

// Reads the cards of WriteOrigin; image_cards are those that it did not add. Leaves the fibermap alone, and
// trace shifts, which ReadTraceTable reads.
void ReadOrigin(const std::vector<std::string>& cards, FrameOrigin& origin);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_FRAME_HEADER_H_
