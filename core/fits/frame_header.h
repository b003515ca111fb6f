// The header cards that state a frame's origin, written and read in one place.
#ifndef SPEXD_CORE_FITS_FRAME_HEADER_H_
#define SPEXD_CORE_FITS_FRAME_HEADER_H_

#include <string>
#include <vector>

#include "core/fits/hdu/fits_builder.h"
#include "core/model/frame.h"

namespace spexd {

// Writes the input image's cards, then IN_IMG, IN_PSF, ORIG_PSF, PSFERR, trace shifts and the extractor.
// `same_pixels`: whether the data has the image's pixel grid, so that its world coordinates still hold.
void WriteOrigin(const FrameOrigin& origin, bool same_pixels, FitsBuilder& fits);

// Reads the cards of WriteOrigin. image_cards are those that WriteOrigin did not add. Does not touch the
// fibermap, nor trace shifts, which ReadTraceTable reads.
void ReadOrigin(const std::vector<std::string>& cards, FrameOrigin& origin);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_FRAME_HEADER_H_
