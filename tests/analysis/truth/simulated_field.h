// Fields of simulated sources, from pixels to tables, made by the programs as users run them.
#ifndef SPEXD_TESTS_ANALYSIS_TRUTH_SIMULATED_FIELD_H_
#define SPEXD_TESTS_ANALYSIS_TRUTH_SIMULATED_FIELD_H_

#include <string>
#include <vector>

#include "core/model/frame.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {

// A camera that sees the field, and the grid of its spectra.
struct FieldCamera {
  std::string letter = "r";
  std::string wavelength = "5760,7620,0.8";  // --wavelength, Angstrom
};

// A folder with a library of templates, and with the files of one field at a time: simulating a field
// replaces the previous field's files. A program that fails makes the test fail.
class SimulatedField {
 public:
  std::string Path(const std::string& name) const { return folder_ / name; }
  std::string folder() const { return folder_.path(); }
  // Returns the names of all files.
  std::vector<std::string> Entries() const { return folder_.Entries(); }
  // Returns a table of one of its files.
  RawTable Table(const std::string& file, const std::string& hdu) const;
  // Returns sources-<camera>0.fits: the sources of the field.
  RawTable Truth(const FieldCamera& camera) const;

  // Runs spex and returns what it printed.
  std::string Run(const std::vector<std::string>& arguments) const;
  // Simulates the field. Its stars are drawn from templates.fits, which must exist.
  void Simulate(const FieldCamera& camera, int seed, const std::vector<std::string>& scene) const;
  // Writes frame-<camera>0.fits and the products that these flags request, with the CPU engine.
  void Extract(const FieldCamera& camera, const std::vector<std::string>& products) const;

 private:
  TempFolder folder_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_TRUTH_SIMULATED_FIELD_H_
