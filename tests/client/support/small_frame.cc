#include "tests/client/support/small_frame.h"

#include <stdexcept>

#include "core/fits/readers.h"
#include "core/fits/writers.h"

namespace spexd::testing {

SmallFrame::SmallFrame(int fibres, int rows) {
  const RunResult made = Spex({"simulate", "--fibres", std::to_string(fibres), "--rows", std::to_string(rows),
                               "--seed", "4", "--out-dir", folder_.path()});
  if (made.code != 0) throw std::runtime_error("spex simulate: " + made.output);
}

void WriteShiftedPsf(const std::string& from, double columns, const std::string& to) {
  absl::StatusOr<Psf> psf = ReadPsf(Source::FromFile(from).value());
  for (int fibre = 0; fibre < psf.value().fibres; ++fibre) psf->traces.x.coeff(fibre, 0) += columns;
  if (!WritePsf(*psf, to).ok()) throw std::runtime_error("cannot write " + to);
}

void WritePsfOfCamera(const std::string& from, const std::string& camera, const std::string& to) {
  absl::StatusOr<Psf> psf = ReadPsf(Source::FromFile(from).value());
  psf.value().camera = camera;
  if (!WritePsf(*psf, to).ok()) throw std::runtime_error("cannot write " + to);
}

}  // namespace spexd::testing
