// Small tables and spectra of several arms.
#ifndef SPEXD_TESTS_ANALYSIS_JOINT_MADE_UP_SPECTRA_H_
#define SPEXD_TESTS_ANALYSIS_JOINT_MADE_UP_SPECTRA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/target_spectra.h"
#include "core/products/number_table.h"

namespace spexd::testing {

// Returns the table as it is read from a file.
RawTable TableOf(const NumberTable& table, const std::string& name);

// Returns an arm with flux 2 and ivar 4 in all bins, of 0.8 Angstrom.
SpectraArm ArmOf(const std::string& name, double first, int rows, int bins);

// Returns arms B, R and Z of these targets, each of 100 bins; the FIBERMAP has only TARGETID.
TargetSpectra SpectraOf(const std::vector<int64_t>& targets);

// Returns the bytes of a file of these spectra, as desispec writes it, without the HDUs named here.
std::string FileOf(const TargetSpectra& spectra, const std::vector<std::string>& without = {});

// Returns a frame as a file of spectra of two arms, B and R, that meet in its middle; TARGETIDs are 100, 101,
// ...
TargetSpectra HalvesOf(const Frame& frame);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_JOINT_MADE_UP_SPECTRA_H_
