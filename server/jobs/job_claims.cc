#include "server/jobs/job_claims.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace spexd {
namespace {

// The PSF as far as the header names it; "" if only its bytes would tell.
std::string PsfOf(const v1::InputSource& source) {
  if (source.has_psf_hash()) return absl::StrCat("sha256:", source.psf_hash());
  if (source.has_path()) return absl::StrCat("path:", source.path());
  if (source.has_upload() && !source.upload().sha256().empty())
    return absl::StrCat("sha256:", source.upload().sha256());
  return "";
}

std::string GridOf(const v1::JobHeader& header) {
  if (!header.has_grid()) return absl::StrFormat(" bundles of %d", header.bundle_size());
  const v1::WavelengthGrid& grid = header.grid();
  return absl::StrFormat(" %.17g %.17g %d, bundles of %d", grid.first(), grid.step(), grid.count(),
                         header.bundle_size());
}

// Within a factor of 2; 0 for what the job leaves open.
int SizeClass(uint32_t count) { return static_cast<int>(std::bit_width(count)); }

}  // namespace

JobClaim ClaimOf(const v1::JobHeader& header) {
  JobClaim claim;
  claim.priority = header.priority();
  if (const std::string psf = PsfOf(header.psf()); !psf.empty()) claim.psf = psf + GridOf(header);
  claim.kind =
      absl::StrFormat("bins %d, fibres %d, bundles %d, model %d", SizeClass(header.grid().count()),
                      SizeClass(header.fibre_count()), SizeClass(header.bundle_size()), header.want_model());
  if (header.has_products()) {
    const v1::ProductRequest& products = header.products();
    claim.products = absl::StrFormat("sky %d, lines %d, velocity %d", products.sky(), products.lines(),
                                     products.has_templates());
  }
  return claim;
}

JobClaim ClaimOf(const v1::JobHeader& header, const Identity& caller, const std::string& peer) {
  JobClaim claim = ClaimOf(header);
  claim.identity = caller.name;
  claim.weight = caller.weight;
  claim.reader = absl::StrCat(caller.name, " at ", peer.substr(0, peer.rfind(':')));
  return claim;
}

}  // namespace spexd
