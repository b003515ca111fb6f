// Contents of small files for tests.
#ifndef SPEXD_TESTS_FITS_SAMPLES_H_
#define SPEXD_TESTS_FITS_SAMPLES_H_

#include <string>
#include <utility>
#include <vector>

#include "core/fits/hdu/source.h"
#include "core/fits/writers.h"
#include "core/model/frame.h"
#include "core/model/psf.h"
#include "core/model/truth.h"

namespace spexd::testing {

// Returns the text as a card of 80 characters.
std::string Card(const std::string& text);

Psf SamplePsf();  // 3 fibres
PreprocFile SamplePreproc(int rows = 24,
                          int columns = 40);       // has masked, NaN and negative-ivar pixels; 3 fibres
Frame SampleFrame(int fibres = 3, int bins = 20);  // has fibermap and scores
Truth SampleTruth();

// Returns an HDU: texts "KEYWORD = value" without END as cards, then the data, padded.
std::string HduBytes(const std::vector<std::string>& cards, const std::string& data = "");

// Opens a file. REQUIRES: readable.
Source Load(const std::string& path);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_FITS_SAMPLES_H_
