// The trace shifts of a frame in its files: header cards and the table TRACESHIFT.
#ifndef SPEXD_CORE_FITS_TRACES_TRACE_TABLE_H_
#define SPEXD_CORE_FITS_TRACES_TRACE_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/fits_file.h"
#include "core/model/traces/trace_shifts.h"

namespace spexd {

// Writes the cards of a frame, or of a moved PSF: TSSTATX, TSSTATY and TSMOVED; MEANDX, MINDX, MAXDX and
// ERRDX if x was measured, and likewise for y.
void WriteTraceCards(const TraceReport& report, FitsBuilder& fits);

// Whether a header has cards of WriteTraceCards, and whether a card has the keyword of one. The pipeline's
// files may have only MEANDX and the like.
bool HasTraceCards(const std::vector<std::string>& cards);
bool IsTraceCard(absl::string_view card);

// Writes HDU TRACESHIFT, a row for each fibre of the frame. `fibres`: their numbers. The columns are FIBER,
// U, and at 5 wavelengths WAVE from end to end of the traces' domain the shifts DX and DY and their standard
// errors ERRDX and ERRDY, pixels. A shift that was not measured is 0 and its error NaN. The header holds the
// series and their covariances, so that ReadTraceTable gives the same report.
void WriteTraceTable(const TraceReport& report, absl::Span<const int64_t> fibres, FitsBuilder& fits);

// The report of a file with HDU TRACESHIFT, whose header has `cards`; none if the HDU or those cards are
// missing. InvalidArgument if it differs from what WriteTraceTable writes for so many fibres.
absl::StatusOr<std::optional<TraceReport>> ReadTraceTable(const FitsFile& file,
                                                          const std::vector<std::string>& cards,
                                                          int64_t fibres);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_TRACES_TRACE_TABLE_H_
