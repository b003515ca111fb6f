#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/images/image_hdu.h"
#include "core/fits/psf_type.h"
#include "core/fits/readers.h"
#include "core/model/psf_traces/lost_fibres.h"

namespace spexd {
namespace {

using ParameterTables = std::map<std::string, LegendreTable>;

// The parameter table: those of its rows that make the PSF, and the wavelengths at which all rows are valid.
struct Parameters {
  ParameterTables tables;
  double wave_min = -HUGE_VAL;
  double wave_max = HUGE_VAL;
};

absl::Status ReadKeywords(const Hdu& hdu, Psf& psf) {
  const struct {
    const char* keyword;
    int* value;
    int64_t least, most;
  } integers[] = {
      {"NPIX_X", &psf.columns, 1, kMaxCcdSide},
      {"NPIX_Y", &psf.rows, 1, kMaxCcdSide},
      {"HSIZEX", &psf.stamp().x.middle, 1, kMaxHalfSpot},
      {"HSIZEY", &psf.stamp().y.middle, 1, kMaxHalfSpot},
      {"GHDEGX", &GaussHermite(psf).core().max_degree_x, 0, kMaxHermiteDegree},
      {"GHDEGY", &GaussHermite(psf).core().max_degree_y, 0, kMaxHermiteDegree},
      {"FIBERMIN", &psf.fibre_min, 0, INT32_MAX / 2},
  };
  for (const auto& field : integers) {
    SPEXD_ASSIGN_OR_RETURN(const int64_t value, hdu.RequireInteger(field.keyword, field.least, field.most));
    *field.value = static_cast<int>(value);
  }
  SPEXD_ASSIGN_OR_RETURN(const int64_t fibre_max,
                         hdu.RequireInteger("FIBERMAX", psf.fibre_min, psf.fibre_min + kMaxFibres - 1));
  psf.fibres = static_cast<int>(fibre_max - psf.fibre_min + 1);
  if (const std::optional<double> psferr = hdu.Number("PSFERR"); psferr && *psferr != 0) psf.psferr = *psferr;
  return absl::OkStatus();
}

absl::StatusOr<LegendreTable> ReadTrace(const FitsFile& file, absl::string_view name, const Psf& psf) {
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, file.Get({name}));
  SPEXD_ASSIGN_OR_RETURN(const ImageLayout layout, LayoutOf(*hdu));
  if (layout.axes.size() != 2 || layout.axes[1] != psf.fibres || layout.axes[0] > kMaxLegendreCoefficients) {
    return hdu->Error(absl::StrFormat("is %s, must be %d fibres x at most %d coefficients",
                                      layout.ShapeText(), psf.fibres, kMaxLegendreCoefficients));
  }
  LegendreTable table;
  SPEXD_ASSIGN_OR_RETURN(table.coeff, (ReadImage<double, 2>(*hdu)));
  SPEXD_ASSIGN_OR_RETURN(table.wave_min, hdu->RequireNumber("WAVEMIN"));
  SPEXD_ASSIGN_OR_RETURN(table.wave_max, hdu->RequireNumber("WAVEMAX"));
  return table;
}

bool AllZero(const LegendreTable& table) {
  const absl::Span<const double> values = table.coeff.flat();
  return std::all_of(values.begin(), values.end(), [](double value) { return value == 0; });
}

// Whether a row of this PARAM is a term, GH-i-j, and of which degrees.
bool IsTerm(const std::string& name, GaussHermiteTerm* term) {
  int length = 0;
  return std::sscanf(name.c_str(), "GH-%2d-%2d%n", &term->degree_x, &term->degree_y, &length) == 2 &&
         length == static_cast<int>(name.size());
}
bool IsTerm(const std::string& name) {
  GaussHermiteTerm term;
  return IsTerm(name, &term);
}

// Whether rows of this PARAM are part of a PSF: tables of others are not made.
bool IsUsed(const std::string& name) {
  constexpr absl::string_view kUsed[] = {"X",        "Y",        "GHSIGX",   "GHSIGY",  "TAILAMP",
                                         "TAILCORE", "TAILINDE", "TAILXSCA", "TAILYSCA"};
  return IsTerm(name) || std::find(std::begin(kUsed), std::end(kUsed), name) != std::end(kUsed);
}

// The rows of the parameter table by their PARAM; rows that are no part of the PSF are left out, and the
// coefficients of terms beyond max_terms_bytes.
absl::StatusOr<Parameters> ReadParameters(const Hdu& hdu, const Psf& psf, int64_t max_terms_bytes,
                                          const std::stop_token& stop) {
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
  constexpr int64_t kBytesOfParameter = 256;  // beside its name and its coefficients
  SPEXD_ASSIGN_OR_RETURN(const MemoryLoan loan,
                         hdu.BorrowMemory(view.rows() * (2 * names->width + kBytesOfParameter)));
  Parameters parameters;
  std::set<std::string> seen;
  const int64_t table_bytes = psf.fibres * coefficients * static_cast<int64_t>(sizeof(double));
  int64_t terms_bytes = 0;
  for (int64_t row = 0; row < view.rows(); ++row) {
    SPEXD_RETURN_IF_ERROR(CheckStop(stop));
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
    if (!IsUsed(name)) continue;
    if (IsTerm(name)) {
      terms_bytes += table_bytes;
      if (terms_bytes > max_terms_bytes) {
        const bool zero = view.Cell(row, *coeff).find_first_not_of('\0') == absl::string_view::npos;
        if (!zero) parameters.tables[name] = std::move(table);
        continue;
      }
    }
    SPEXD_ASSIGN_OR_RETURN(MemoryLoan memory, hdu.BorrowMemory(table_bytes));
    table.coeff.Assign({psf.fibres, coefficients});
    SPEXD_RETURN_IF_ERROR(view.Numbers(row, *coeff, table.coeff.flat()));
    if (IsTerm(name) && AllZero(table)) continue;
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

// The GH-i-j rows, in the order of their degrees.
void TakeTerms(ParameterTables& tables, Psf& psf) {
  for (auto& [name, table] : tables) {
    GaussHermiteTerm term;
    if (!IsTerm(name, &term)) continue;
    term.amplitude = std::move(table);
    GaussHermite(psf).core().terms.push_back(std::move(term));
  }
  std::sort(GaussHermite(psf).core().terms.begin(), GaussHermite(psf).core().terms.end(), [](const GaussHermiteTerm& a, const GaussHermiteTerm& b) {
    return std::tie(a.degree_x, a.degree_y) < std::tie(b.degree_x, b.degree_y);
  });
}

absl::Status TakeTail(const Hdu& hdu, ParameterTables& tables, Psf& psf) {
  const auto amplitude = tables.find("TAILAMP");
  if (amplitude == tables.end() || AllZero(amplitude->second)) return absl::OkStatus();
  GaussHermite(psf).tail_amplitude = std::move(amplitude->second);
  SPEXD_ASSIGN_OR_RETURN(GaussHermite(psf).tail_core, Take(hdu, tables, "TAILCORE"));
  SPEXD_ASSIGN_OR_RETURN(GaussHermite(psf).tail_index, Take(hdu, tables, "TAILINDE"));
  SPEXD_ASSIGN_OR_RETURN(GaussHermite(psf).tail_scale_x, Take(hdu, tables, "TAILXSCA"));
  SPEXD_ASSIGN_OR_RETURN(GaussHermite(psf).tail_scale_y, Take(hdu, tables, "TAILYSCA"));
  return absl::OkStatus();
}

absl::Status ReadTables(const FitsFile& file, int version, int64_t max_terms_bytes,
                        const std::stop_token& stop, Psf& psf) {
  SPEXD_ASSIGN_OR_RETURN(const Hdu* hdu, ParameterHdu(file, version));
  SPEXD_RETURN_IF_ERROR(ReadKeywords(*hdu, psf));
  const bool has_domain = hdu->Has("WAVEMIN") && hdu->Has("WAVEMAX");
  if (version == 3 || has_domain) {
    SPEXD_ASSIGN_OR_RETURN(psf.wave_min, hdu->RequireNumber("WAVEMIN"));
    SPEXD_ASSIGN_OR_RETURN(psf.wave_max, hdu->RequireNumber("WAVEMAX"));
  }
  SPEXD_ASSIGN_OR_RETURN(Parameters parameters, ReadParameters(*hdu, psf, max_terms_bytes, stop));
  ParameterTables& tables = parameters.tables;
  if (version == 2 && !has_domain) {
    psf.wave_min = parameters.wave_min;
    psf.wave_max = parameters.wave_max;
  }
  if (!IsDomain(psf.wave_min, psf.wave_max)) {
    return hdu->Error(absl::StrFormat("the wavelengths WAVEMIN %g to WAVEMAX %g are no domain", psf.wave_min,
                                      psf.wave_max));
  }
  if (version == 3) {
    SPEXD_ASSIGN_OR_RETURN(psf.traces.x, ReadTrace(file, "XTRACE", psf));
    SPEXD_ASSIGN_OR_RETURN(psf.traces.y, ReadTrace(file, "YTRACE", psf));
  } else {
    SPEXD_ASSIGN_OR_RETURN(psf.traces.x, Take(*hdu, tables, "X"));
    SPEXD_ASSIGN_OR_RETURN(psf.traces.y, Take(*hdu, tables, "Y"));
  }
  SPEXD_ASSIGN_OR_RETURN(GaussHermite(psf).core().sigma_x, Take(*hdu, tables, "GHSIGX"));
  SPEXD_ASSIGN_OR_RETURN(GaussHermite(psf).core().sigma_y, Take(*hdu, tables, "GHSIGY"));
  SPEXD_RETURN_IF_ERROR(TakeTail(*hdu, tables, psf));
  TakeTerms(tables, psf);
  return absl::OkStatus();
}

// The first HDU that has CAMERA or IN_PSF states it for the file.
absl::Status ReadOrigin(const FitsFile& file, Psf& psf) {
  constexpr size_t kMaxCameraCharacters = 68;  // of a card; it is kept with the PSF
  constexpr size_t kMaxCharacters =
      4096;  // of a path. It is kept with the PSF and sent with every job's result
  for (const Hdu& hdu : file.hdus()) {
    if (psf.camera.empty())
      psf.camera = PrintableAscii(hdu.String("CAMERA").value_or("").substr(0, kMaxCameraCharacters));
    if (psf.original_psf.empty()) psf.original_psf = PrintableAscii(hdu.String("IN_PSF").value_or(""));
    if (psf.original_psf.size() > kMaxCharacters) {
      return hdu.Error(absl::StrFormat("IN_PSF has %d characters, the limit is %d", psf.original_psf.size(),
                                       kMaxCharacters));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Psf> Read(const Source& source, int64_t max_terms_bytes, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  SPEXD_ASSIGN_OR_RETURN(const int version, CheckPsfType(file));
  Psf psf;
  SPEXD_RETURN_IF_ERROR(ReadTables(file, version, max_terms_bytes, stop, psf));
  SPEXD_RETURN_IF_ERROR(ReadOrigin(file, psf));
  EmptyLostFibres(&psf);
  const absl::Status status = IsComplete(psf) ? CheckPsf(psf) : CheckPsfOutline(psf);
  if (!status.ok()) return absl::Status(status.code(), absl::StrCat(source.name(), ": ", status.message()));
  psf.content_hash = source.content_hash();
  return psf;
}

}  // namespace

absl::StatusOr<Psf> ReadPsf(const Source& source, const std::stop_token& stop) {
  return Read(source, INT64_MAX, stop);
}

absl::StatusOr<Psf> ReadPsfOutline(const Source& source, int64_t max_terms_bytes,
                                   const std::stop_token& stop) {
  return Read(source, max_terms_bytes, stop);
}

}  // namespace spexd
