// The readers of the inputs of products: fiberflats, libraries of templates and spectra. Reading must not
// take more memory than the outline says, because a server reserves just that.
#include <variant>

#include "core/fits/hdu/fits_file.h"
#include "core/products/inputs/fiberflat.h"
#include "core/products/inputs/input_outline.h"
#include "core/products/joint/joint_input.h"
#include "core/products/template_file.h"
#include "tests/fuzz/support/fuzz_check.h"
#include "tests/fuzz/support/read_metered.h"

namespace spexd::fuzz {
namespace {

// Reads the file as a server does that has reserved what the outline announces.
template <typename Outline, typename Read>
auto ReadWithin(absl::string_view bytes, const absl::StatusOr<Outline>& outline, const Read& read)
    -> decltype(read(std::declval<const Source&>())) {
  if (!outline.ok() || outline->decode_bytes > kBudgetBytes) return absl::InvalidArgumentError("no outline");
  const auto account = std::make_shared<testing::CountingAccount>();
  const absl::StatusOr<Source> source =
      Source::FromBytes("input.fits", std::string(bytes), {.max_bytes = kMaxFileBytes, .memory = account});
  if (!source.ok()) return source.status();
  const int64_t file_bytes = account->taken();
  auto result = read(*source);
  Require(account->peak() - file_bytes <= outline->decode_bytes,
          "an outline tells the memory that reading takes");
  return result;
}

void ReadAll(absl::string_view bytes) {
  const auto flat = [](const Source& source) { return ReadFiberflat(source); };
  const auto templates = [](const Source& source) { return ReadTemplates(source); };
  const auto flat_outline = ReadMetered(bytes, "a fiberflat's outline",
                                        [](const Source& source) { return ReadFiberflatOutline(source); });
  const auto templates_outline = ReadMetered(
      bytes, "an outline of templates", [](const Source& source) { return ReadTemplatesOutline(source); });
  ReadMetered(bytes, "a fiberflat", flat).IgnoreError();
  ReadMetered(bytes, "templates", templates).IgnoreError();
  if (const auto read = ReadWithin(bytes, flat_outline, flat); read.ok()) {
    Require(read->values.shape(0) == flat_outline->rows && read->values.shape(1) == flat_outline->columns,
            "an outline tells the size of a fiberflat");
  }
  if (const auto read = ReadWithin(bytes, templates_outline, templates); read.ok()) {
    Require(read->templates() == templates_outline->rows && read->samples() == templates_outline->columns,
            "an outline tells the size of a library of templates");
  }
  const auto spectra = [](const Source& source) { return ReadSpectraInput(source); };
  const auto spectra_outline = ReadMetered(bytes, "an outline of spectra",
                                           [](const Source& source) { return ReadSpectraOutline(source); });
  ReadMetered(bytes, "spectra", spectra).IgnoreError();
  if (const auto read = ReadWithin(bytes, spectra_outline, spectra); read.ok()) {
    const auto* const targets = std::get_if<TargetSpectra>(&read->spectra);
    Require((targets != nullptr) == (spectra_outline->kind == SpectraKind::kTargets),
            "an outline tells the kind of spectra");
    if (targets != nullptr) {
      Require(targets->fibermap.rows == spectra_outline->rows &&
                  targets->arms.size() == spectra_outline->arms.size(),
              "an outline tells the size of spectra");
    }
  }
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spexd::fuzz::ReadAll({reinterpret_cast<const char*>(data), size});
  return 0;
}
