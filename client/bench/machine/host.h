// Information on the process and the machine of a benchmark.
#ifndef SPEXD_CLIENT_BENCH_MACHINE_HOST_H_
#define SPEXD_CLIENT_BENCH_MACHINE_HOST_H_

#include <string>

namespace spexd::bench {

// Seconds since the kernel started this process, to a hundredth; 0 if it does not tell.
double SecondsSinceProcessStart();
// This process's arguments, the program without its folder.
std::string CommandLine();
// The processors' model name; "" if the system does not tell.
std::string ProcessorName();
// Formats a time as 2020-02-19T08:24:00Z.
std::string TimeNow();

}  // namespace spexd::bench

#endif  // SPEXD_CLIENT_BENCH_MACHINE_HOST_H_
