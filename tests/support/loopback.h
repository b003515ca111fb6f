// TCP connections on the loopback interface, for proxies that stand for a network.
#ifndef SPEXD_TESTS_SUPPORT_LOOPBACK_H_
#define SPEXD_TESTS_SUPPORT_LOOPBACK_H_

#include <cstddef>
#include <string>

#include "core/base/file_descriptor.h"

namespace spexd::testing {

// Listens on a port that the kernel chooses; `address`: "127.0.0.1:port". Throws std::runtime_error.
FileDescriptor ListenOnLoopback(std::string* address);
FileDescriptor AcceptFrom(const FileDescriptor& listener);
struct LoopbackOptions {
  std::string source = "127.0.0.1";  // whom the other side takes it for: 127.0.0.2, say
  int receive_bytes = 0;             // that the kernel holds for this side; 0: as usual
};
// Connects to "127.0.0.1:port"; negative if nobody listens there.
FileDescriptor ConnectOnLoopback(const std::string& address, const LoopbackOptions& options = {});
// Moves what is there, at most so many bytes; false at the end of either connection.
bool MoveBytes(const FileDescriptor& from, const FileDescriptor& to, size_t most);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_LOOPBACK_H_
