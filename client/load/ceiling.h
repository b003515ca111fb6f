// Frames a second that the processors of this machine could decode if they did nothing else.
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
  double one_thread = 0;   // median seconds of a file, decoded by one thread, with no other work
  double all_threads = 0;  // the same with all threads: tiles and stretches of one file side by side
  double rate = 0;         // the ceiling: files a second, decoding as many files at once as there are threads
};

// Reads (from the page cache, after the first time) and decodes `path` as a server does, each of the three
// for at least `seconds` and twice a thread. The errors of Source::FromFile and ReadPreproc; Cancelled.
absl::StatusOr<DecodeCeiling> MeasureDecoding(const std::string& path, int threads, double seconds,
                                              std::stop_token stop);

}  // namespace spexd::load

#endif  // SPEXD_CLIENT_LOAD_CEILING_H_
