#include "server/inputs/job_claims.h"

#include <bit>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/product_part.h"

namespace spexd {
namespace {

// The keys are made by StrCat, which throws if memory runs out. StrFormat would end the process.

// Returns a name of the PSF; "" if the header does not identify it.
std::string PsfOf(const v1::InputSource& source) {
  if (source.has_psf_hash()) return absl::StrCat("sha256:", source.psf_hash());
  if (source.has_path()) return absl::StrCat("path:", source.path());
  if (source.has_upload() && !source.upload().sha256().empty())
    return absl::StrCat("sha256:", source.upload().sha256());
  return "";
}

std::string GridOf(const v1::JobHeader& header) {
  const std::string bundles = absl::StrCat(" bundles of ", header.bundle_size());
  if (!header.has_grid()) return bundles;
  const v1::WavelengthGrid& grid = header.grid();
  const auto bits = [](double value) { return absl::Hex(std::bit_cast<uint64_t>(value)); };
  return absl::StrCat(" ", bits(grid.first()), " ", bits(grid.step()), " ", grid.count(), bundles);
}

// Returns the claim with the caller and the reader of the results.
JobClaim Of(const Identity& caller, const std::string& peer, JobClaim claim) {
  claim.identity = caller.name;
  claim.shares = caller.shares;
  claim.reader = absl::StrCat(caller.name, " at ", peer.substr(0, peer.rfind(':')));
  return claim;
}

// Returns the class of a count: the number of its binary digits. 0 for a count that the job leaves open.
int SizeClass(uint32_t count) { return static_cast<int>(std::bit_width(count)); }

}  // namespace

JobClaim ClaimOf(const v1::JobHeader& header) {
  JobClaim claim;
  claim.priority = header.priority();
  if (const std::string psf = PsfOf(header.psf()); !psf.empty()) claim.psf = psf + GridOf(header);
  claim.kind =
      absl::StrCat("bins ", SizeClass(header.grid().count()), ", fibres ", SizeClass(header.fibre_count()),
                   ", bundles ", SizeClass(header.bundle_size()), ", model ", header.want_model(),
                   ", traces ", header.trace_shifts() != v1::TRACE_AXES_OFF);
  if (header.has_products()) {
    for (const ProductInfo& info : kProducts)
      absl::StrAppend(&claim.products, info.name, " ", Asks(header.products(), info), "; ");
  }
  return claim;
}

JobClaim ClaimOf(const v1::JobHeader& header, const Identity& caller, const std::string& peer) {
  return Of(caller, peer, ClaimOf(header));
}

JobClaim ClaimOf(const v1::AnalysisHeader& header, const Identity& caller, const std::string& peer) {
  JobClaim claim;
  claim.priority = header.priority();
  claim.kind = absl::StrCat("analysis of ", header.spectra_size());
  return Of(caller, peer, std::move(claim));
}

}  // namespace spexd
