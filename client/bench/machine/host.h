// Information about the process and the machine of a benchmark.
#ifndef SPEXD_CLIENT_BENCH_MACHINE_HOST_H_
#define SPEXD_CLIENT_BENCH_MACHINE_HOST_H_

#include <string>

namespace spexd::bench {

// Returns the seconds since the kernel started this process, to a hundredth; 0: not known.
double SecondsSinceProcessStart();
// Returns the command line of this process, the program without its folder.
std::string CommandLine();
// Returns the processors' model name; "": not known.
std::string ProcessorName();
// Returns the current time as 2020-02-19T08:24:00Z.
std::string TimeNow();

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_MACHINE_HOST_H_
