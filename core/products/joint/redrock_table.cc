#include "core/products/joint/redrock_table.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <system_error>
#include <unordered_map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/hdu/table_file.h"

namespace spexd {
namespace {

constexpr int kMaxText = 256;                    // limit on characters in a cell; redrock writes 20
constexpr double kMaxStarRedshift = 1500 / 3e5;  // limit of rvs_desi_fit

bool IsFile(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

}  // namespace

std::string RedrockPathOf(const std::string& spectra_path) {
  const size_t begin = spectra_path.rfind('/') + 1;
  const std::string folder = spectra_path.substr(0, begin);
  std::string file = spectra_path.substr(begin);
  if (absl::EndsWith(file, ".gz")) file.resize(file.size() - 3);
  for (const absl::string_view prefix : {"coadd-", "spectra-"}) {
    if (!absl::StartsWith(file, prefix)) continue;
    for (const char* redrock : {"redrock-", "zbest-"}) {
      for (const char* end : {"", ".gz"}) {
        std::string path = absl::StrCat(folder, redrock, file.substr(prefix.size()), end);
        if (IsFile(path)) return path;
      }
    }
  }
  return "";
}

absl::StatusOr<RedrockTable> ReadRedrock(const Source& source, const TargetSpectra& spectra) {
  SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> targets, IntegerColumn(spectra.fibermap, "TARGETID"));
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({"REDSHIFTS", "ZBEST"}));
  SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(*hdu));
  SPEXD_ASSIGN_OR_RETURN(const Column* id, view.Get("TARGETID"));
  SPEXD_ASSIGN_OR_RETURN(const Column* z, view.Get("Z"));
  SPEXD_ASSIGN_OR_RETURN(const Column* spectype, view.Get("SPECTYPE"));
  SPEXD_ASSIGN_OR_RETURN(const Column* subtype, view.Get("SUBTYPE"));
  for (const Column* const text : {spectype, subtype}) {
    if (text->width <= kMaxText) continue;
    return hdu->Error(absl::StrFormat("column %s has texts of %d characters, the limit is %d", text->name,
                                      text->width, kMaxText));
  }
  constexpr int64_t kNone = -1;
  std::unordered_map<int64_t, int64_t> row_of;
  for (const int64_t target : targets) row_of[target] = kNone;
  for (int64_t row = 0; row < view.rows(); ++row) {
    SPEXD_ASSIGN_OR_RETURN(const int64_t target, view.Integer(row, *id));
    // If two rows have one target, the last one counts, as in rvs_desi_fit.
    if (const auto found = row_of.find(target); found != row_of.end()) found->second = row;
  }
  RedrockTable table;
  for (const int64_t target : targets) {
    double& redshift = table.z.emplace_back(std::numeric_limits<double>::quiet_NaN());
    std::string& type = table.spectype.emplace_back();
    std::string& kind = table.subtype.emplace_back();
    const int64_t found = row_of[target];
    if (found == kNone) continue;
    SPEXD_RETURN_IF_ERROR(view.Numbers(found, *z, absl::MakeSpan(&redshift, 1)));
    type = view.Text(found, *spectype);
    kind = view.Text(found, *subtype);
  }
  return table;
}

std::vector<bool> MayBeStars(const RedrockTable& redrock) {
  std::vector<bool> stars;
  for (size_t row = 0; row < redrock.z.size(); ++row)
    stars.push_back(redrock.spectype[row] == "STAR" || std::abs(redrock.z[row]) < kMaxStarRedshift);
  return stars;
}

}  // namespace spexd
