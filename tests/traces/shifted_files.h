// Files of frames with displaced traces, which programs and servers read.
#ifndef SPEXD_TESTS_TRACES_SHIFTED_FILES_H_
#define SPEXD_TESTS_TRACES_SHIFTED_FILES_H_

#include <string>
#include <vector>

#include "core/model/image.h"
#include "core/traces/shifts/reference.h"

namespace spexd::testing {

// Writes an image after the mask rule as a preprocessed frame without MASK, with `cards` in its header. An
// error fails the test.
void WriteImage(const Image& image, const std::string& path, const std::vector<std::string>& cards = {});

// Returns the text of a reference's file. Negative light is written as 0.
std::string TextOf(const ReferenceSpectrum& reference);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_TRACES_SHIFTED_FILES_H_
