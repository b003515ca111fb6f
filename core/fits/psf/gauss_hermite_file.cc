#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/psf/psf_files.h"
#include "core/fits/psf/psf_type.h"

namespace spexd {
namespace {

using ParameterTables = std::map<std::string, LegendreTable>;

// The parameter table: its rows that are part of the PSF, and the wavelengths at which all rows are valid.
struct Parameters {
  ParameterTables tables;
  double wave_min = -HUGE_VAL;
  double wave_max = HUGE_VAL;
};

// The name of a keyword or PARAM in a core; that of the second core ends in 2.
std::string InCore(absl::string_view name, size_t core) { return absl::StrCat(name, core == 0 ? "" : "2"); }

absl::Status ReadKeywords(const Hdu& hdu, Psf& psf, GaussHermiteSpots& spots) {
  SPEXD_ASSIGN_OR_RETURN(psf.columns, ReadInteger(hdu, "NPIX_X", 1, kMaxCcdSide));
  SPEXD_ASSIGN_OR_RETURN(psf.rows, ReadInteger(hdu, "NPIX_Y", 1, kMaxCcdSide));
  SPEXD_ASSIGN_OR_RETURN(const int half_x, ReadInteger(hdu, "HSIZEX", 1, kMaxHalfSpot));
  SPEXD_ASSIGN_OR_RETURN(const int half_y, ReadInteger(hdu, "HSIZEY", 1, kMaxHalfSpot));
  spots.stamp = {CentredAxis(half_x), CentredAxis(half_y)};
  const int max_degree = spots.cores.size() > 1 ? kMaxTwoCoreDegree : kMaxHermiteDegree;
  for (size_t k = 0; k < spots.cores.size(); ++k) {
    GaussHermiteCore& core = spots.cores[k];
    SPEXD_ASSIGN_OR_RETURN(core.max_degree_x, ReadInteger(hdu, InCore("GHDEGX", k), 0, max_degree));
    SPEXD_ASSIGN_OR_RETURN(core.max_degree_y, ReadInteger(hdu, InCore("GHDEGY", k), 0, max_degree));
  }
  SPEXD_ASSIGN_OR_RETURN(psf.fibre_min, ReadInteger(hdu, "FIBERMIN", 0, INT32_MAX / 2));
  SPEXD_ASSIGN_OR_RETURN(const int fibre_max,
                         ReadInteger(hdu, "FIBERMAX", psf.fibre_min, psf.fibre_min + kMaxFibres - 1));
  psf.fibres = fibre_max - psf.fibre_min + 1;
  SPEXD_ASSIGN_OR_RETURN(const double psferr, NumberOr(hdu, "PSFERR", 0));
  if (psferr != 0) psf.psferr = psferr;
  return absl::OkStatus();
}

bool AllZero(const LegendreTable& table) {
  const absl::Span<const double> values = table.coeff.flat();
  return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
}

// Whether a row of this PARAM is a term, GH-i-j or GH2-i-j. Sets its core and its degrees.
bool IsTerm(const std::string& name, size_t* core, GaussHermiteTerm* term) {
  *core = name.starts_with("GH2") ? 1 : 0;
  int length = 0;
  return std::sscanf(name.c_str(), *core == 0 ? "GH-%2d-%2d%n" : "GH2-%2d-%2d%n", &term->degree_x,
                     &term->degree_y, &length) == 2 &&
         length == static_cast<int>(name.size());
}
// Whether a row of this PARAM is a term of a model with this many cores.
bool IsTerm(const std::string& name, size_t cores) {
  size_t core = 0;
  GaussHermiteTerm term;
  return IsTerm(name, &core, &term) && core < cores;
}

// Whether rows of this PARAM are part of a PSF. No tables are made of other rows.
bool IsUsed(const std::string& name, size_t cores) {
  constexpr absl::string_view kUsed[] = {"X",        "Y",        "GHSIGX",   "GHSIGY",  "TAILAMP",
                                         "TAILCORE", "TAILINDE", "TAILXSCA", "TAILYSCA"};
  constexpr absl::string_view kOfTwoCores[] = {"GHSIGX2", "GHSIGY2", "GHNSIG"};
  return IsTerm(name, cores) || std::ranges::find(kUsed, name) != std::end(kUsed) ||
         (cores > 1 && std::ranges::find(kOfTwoCores, name) != std::end(kOfTwoCores));
}

// Reads the rows of the parameter table by their PARAM. Rows that are no part of the PSF are left out, and so
// are the coefficients of terms beyond max_table_bytes.
absl::StatusOr<Parameters> ReadParameters(const Hdu& hdu, const Psf& psf, size_t cores,
                                          const PsfReading& reading) {
  constexpr int64_t kMaxRows = 4096, kMaxNameBytes = 1024;
  SPEXD_ASSIGN_OR_RETURN(const TableView view, TableView::Make(hdu));
  SPEXD_ASSIGN_OR_RETURN(const Column* names, view.Get("PARAM"));
  SPEXD_ASSIGN_OR_RETURN(const Column* coeff, view.Get("COEFF"));
  const Column* wave_min = view.Find("WAVEMIN");
  const Column* wave_max = view.Find("WAVEMAX");
  if (view.rows() > kMaxRows) {
    return hdu.Error(absl::StrFormat("has %d parameters, the limit is %d", view.rows(), kMaxRows));
  }
  if (names->width > kMaxNameBytes) {
    return hdu.Error(
        absl::StrFormat("PARAM has %d bytes a row, the limit is %d", names->width, kMaxNameBytes));
  }
  const int64_t coefficients = coeff->repeat / psf.fibres;
  if (coeff->repeat % psf.fibres != 0 || coefficients < 1 || coefficients > kMaxLegendreCoefficients) {
    return hdu.Error(
        absl::StrFormat("COEFF has %d values a row, must be %d fibres times 1 to %d coefficients",
                        coeff->repeat, psf.fibres, kMaxLegendreCoefficients));
  }
  if (hdu.Has("LEGDEG") && hdu.Integer("LEGDEG") != coefficients - 1) {
    return hdu.Error(absl::StrFormat("COEFF has %d coefficients a fibre, LEGDEG announces %g", coefficients,
                                     hdu.Number("LEGDEG").value_or(NAN) + 1));
  }
  const std::string dims = absl::StrCat("TDIM", coeff - view.columns().data() + 1);
  long long per_fibre = 0, of_fibres = 0;  // as TDIM states them
  if (const std::string text = hdu.String(dims).value_or("");
      std::sscanf(text.c_str(), " ( %lld , %lld )", &per_fibre, &of_fibres) == 2 &&
      (per_fibre != coefficients || of_fibres != psf.fibres)) {
    return hdu.Error(
        absl::StrFormat("COEFF has %s %s, must be (%d,%d): the coefficients of each of %d fibres", dims,
                        Excerpt(text), coefficients, psf.fibres, psf.fibres));
  }
  constexpr int64_t kBytesOfParameter = 256;  // memory of a parameter beside its name and its coefficients
  SPEXD_ASSIGN_OR_RETURN(const MemoryLoan loan,
                         hdu.BorrowMemory(view.rows() * (2 * names->width + kBytesOfParameter)));
  Parameters parameters;
  std::set<std::string> seen;
  const int64_t table_bytes = psf.fibres * coefficients * static_cast<int64_t>(sizeof(double));
  int64_t terms_bytes = 0;
  for (int64_t row = 0; row < view.rows(); ++row) {
    SPEXD_RETURN_IF_ERROR(CheckStop(reading.stop));
    const std::string name = view.Text(row, *names);
    if (name == "CONT" || name == "BUNDLE" || name == "STATUS") continue;
    if (!seen.insert(name).second) {
      return hdu.Error(absl::StrCat("the parameter ", Excerpt(name), " comes twice"));
    }
    LegendreTable table;
    table.wave_min = psf.wave_min;
    table.wave_max = psf.wave_max;
    if (wave_min != nullptr && wave_max != nullptr) {
      SPEXD_RETURN_IF_ERROR(view.Numbers(row, *wave_min, absl::MakeSpan(&table.wave_min, 1)));
      SPEXD_RETURN_IF_ERROR(view.Numbers(row, *wave_max, absl::MakeSpan(&table.wave_max, 1)));
    }
    parameters.wave_min = std::max(parameters.wave_min, table.wave_min);
    parameters.wave_max = std::min(parameters.wave_max, table.wave_max);
    if (!IsUsed(name, cores)) continue;
    if (IsTerm(name, cores)) {
      terms_bytes += table_bytes;
      if (terms_bytes > reading.max_table_bytes) {
        const bool zero = view.Cell(row, *coeff).find_first_not_of('\0') == absl::string_view::npos;
        if (!zero) parameters.tables[name] = std::move(table);
        continue;
      }
    }
    SPEXD_ASSIGN_OR_RETURN(MemoryLoan memory, hdu.BorrowMemory(table_bytes));
    table.coeff.Assign({psf.fibres, coefficients});
    SPEXD_RETURN_IF_ERROR(view.Numbers(row, *coeff, table.coeff.flat()));
    if (IsTerm(name, cores) && AllZero(table)) continue;
    memory.Keep();
    parameters.tables[name] = std::move(table);
  }
  return parameters;
}

absl::StatusOr<LegendreTable> Take(const Hdu& hdu, ParameterTables& tables, const std::string& name) {
  const auto found = tables.find(name);
  if (found == tables.end()) return hdu.Error(absl::StrCat("there is no row with PARAM ", name));
  return std::move(found->second);
}

// Takes the rows of terms, in the order of their degrees.
void TakeTerms(ParameterTables& tables, GaussHermiteSpots& spots) {
  for (auto& [name, table] : tables) {
    size_t core = 0;
    GaussHermiteTerm term;
    if (!IsTerm(name, &core, &term)) continue;
    term.amplitude = std::move(table);
    spots.cores[core].terms.push_back(std::move(term));
  }
  for (GaussHermiteCore& core : spots.cores) {
    std::ranges::sort(core.terms, {},
                      [](const GaussHermiteTerm& term) { return std::pair(term.degree_x, term.degree_y); });
  }
}

absl::Status TakeTail(const Hdu& hdu, ParameterTables& tables, GaussHermiteSpots& spots) {
  const auto amplitude = tables.find("TAILAMP");
  if (amplitude == tables.end() || AllZero(amplitude->second)) return absl::OkStatus();
  spots.tail_amplitude = std::move(amplitude->second);
  SPEXD_ASSIGN_OR_RETURN(spots.tail_core, Take(hdu, tables, "TAILCORE"));
  SPEXD_ASSIGN_OR_RETURN(spots.tail_index, Take(hdu, tables, "TAILINDE"));
  SPEXD_ASSIGN_OR_RETURN(spots.tail_scale_x, Take(hdu, tables, "TAILXSCA"));
  SPEXD_ASSIGN_OR_RETURN(spots.tail_scale_y, Take(hdu, tables, "TAILYSCA"));
  return absl::OkStatus();
}

absl::Status TakeSpots(const Hdu& hdu, ParameterTables& tables, GaussHermiteSpots& spots) {
  for (size_t k = 0; k < spots.cores.size(); ++k) {
    SPEXD_ASSIGN_OR_RETURN(spots.cores[k].sigma_x, Take(hdu, tables, InCore("GHSIGX", k)));
    SPEXD_ASSIGN_OR_RETURN(spots.cores[k].sigma_y, Take(hdu, tables, InCore("GHSIGY", k)));
  }
  if (spots.cores.size() > 1) {
    SPEXD_ASSIGN_OR_RETURN(spots.cutoff, Take(hdu, tables, "GHNSIG"));
  }
  SPEXD_RETURN_IF_ERROR(TakeTail(hdu, tables, spots));
  TakeTerms(tables, spots);
  return absl::OkStatus();
}

absl::StatusOr<Psf> ReadCores(const FitsFile& file, size_t cores, const PsfReading& reading) {
  Psf psf;
  GaussHermiteSpots spots;
  spots.cores.resize(cores);
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, ParameterHdu(file, reading.version));
  SPEXD_RETURN_IF_ERROR(ReadKeywords(*hdu, psf, spots));
  const bool has_domain = hdu->Has("WAVEMIN") && hdu->Has("WAVEMAX");
  if (reading.version == 3 || has_domain) {
    SPEXD_ASSIGN_OR_RETURN(psf.wave_min, hdu->RequireNumber("WAVEMIN"));
    SPEXD_ASSIGN_OR_RETURN(psf.wave_max, hdu->RequireNumber("WAVEMAX"));
  }
  SPEXD_ASSIGN_OR_RETURN(Parameters parameters, ReadParameters(*hdu, psf, cores, reading));
  ParameterTables& tables = parameters.tables;
  if (reading.version < 3 && !has_domain) {
    psf.wave_min = parameters.wave_min;
    psf.wave_max = parameters.wave_max;
  }
  if (!IsDomain(psf.wave_min, psf.wave_max)) {
    return hdu->Error(absl::StrFormat("the wavelengths WAVEMIN %g to WAVEMAX %g are no domain", psf.wave_min,
                                      psf.wave_max));
  }
  if (reading.version == 3) {
    SPEXD_ASSIGN_OR_RETURN(psf.traces.x, ReadTrace(file, "XTRACE", psf.fibres));
    SPEXD_ASSIGN_OR_RETURN(psf.traces.y, ReadTrace(file, "YTRACE", psf.fibres));
  } else {
    SPEXD_ASSIGN_OR_RETURN(psf.traces.x, Take(*hdu, tables, "X"));
    SPEXD_ASSIGN_OR_RETURN(psf.traces.y, Take(*hdu, tables, "Y"));
  }
  SPEXD_RETURN_IF_ERROR(TakeSpots(*hdu, tables, spots));
  psf.spots = std::move(spots);
  return psf;
}

}  // namespace

absl::StatusOr<Psf> ReadGaussHermite(const FitsFile& file, const PsfReading& reading) {
  return ReadCores(file, 1, reading);
}

absl::StatusOr<Psf> ReadGaussHermite2(const FitsFile& file, const PsfReading& reading) {
  SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadCores(file, 2, reading));
  // The stamps are specter's, floor(x) - HSIZEX to floor(x) + HSIZEX - 1. The tail has no end, so the place
  // where it is cut is part of the model (docs/accuracy.md).
  for (StampAxis* axis : {&GaussHermite(psf).stamp.x, &GaussHermite(psf).stamp.y})
    *axis = {2 * axis->middle, axis->middle, 0};
  return psf;
}

}  // namespace spexd
