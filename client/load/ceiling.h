// The decoding ceiling: the frames per second that this machine's processors could decode if they did nothing
// else.
#ifndef SPEXD_CLIENT_LOAD_CEILING_H_
#define SPEXD_CLIENT_LOAD_CEILING_H_

#include <cstdint>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"

namespace spexd::load {

struct DecodeCeiling {
  std::string image;
  int64_t file_bytes = 0;
  int threads = 1;
  double one_thread = 0;   // median seconds of a file that one thread decodes, without other work
  double all_threads = 0;  // median seconds of a file that all threads decode together
  double rate = 0;         // the ceiling: files per second with as many files at once as threads
};

// Reads `path` (from the page cache after the first time) and decodes it as a server does. Each of the three
// measurements takes at least `seconds` and two files per thread. Errors of Source::FromFile and ReadPreproc;
// Cancelled: a stop was requested.
absl::StatusOr<DecodeCeiling> MeasureDecoding(const std::string& path, int threads, double seconds,
                                              std::stop_token stop);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_CEILING_H_
