// Files of frames whose traces are displaced: what programs and servers read.
#ifndef SPEXD_TESTS_TRACES_SHIFTED_FILES_H_
#define SPEXD_TESTS_TRACES_SHIFTED_FILES_H_

#include <string>
#include <vector>

#include "core/model/image.h"
#include "core/traces/shifts/reference.h"

namespace spexd::testing {

// Writes an image after the mask rule as a preprocessed frame without MASK, `cards` in its header. An error
// is a failure of the test.
void WriteImage(const Image& image, const std::string& path, const std::vector<std::string>& cards = {});

// The text of a reference's file. Negative light is written as 0.
std::string TextOf(const ReferenceSpectrum& reference);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_TRACES_SHIFTED_FILES_H_
