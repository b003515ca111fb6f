// Small PSF files of every type except GAUSS-HERMITE: 3 fibres on 30 x 40 pixels.
#ifndef SPEXD_TESTS_FITS_PSF_PSF_SAMPLES_H_
#define SPEXD_TESTS_FITS_PSF_PSF_SAMPLES_H_

#include <string>
#include <vector>

namespace spexd::testing {

struct NamedFile {
  std::string type;  // PSFTYPE
  std::string bytes;
};

// Returns GAUSS-HERMITE2, SPOTGRID, MONOSPOT, PCA-PIX and SAMPLED-SPOTS; samples of images are times `unit`.
std::vector<NamedFile> PsfFiles(double unit = 1);

// Returns the file of one type.
std::string PsfFile(const std::string& type, double unit = 1);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_FITS_PSF_PSF_SAMPLES_H_
