// TCP connections on the loopback interface, for proxies that simulate a network.
#ifndef SPEXD_TESTS_SUPPORT_LOOPBACK_H_
#define SPEXD_TESTS_SUPPORT_LOOPBACK_H_

#include <cstddef>
#include <string>

#include "core/base/file_descriptor.h"

namespace spexd::testing {

// Listens on a port that the kernel chooses; sets `address` to "127.0.0.1:port". Throws std::runtime_error.
FileDescriptor ListenOnLoopback(std::string* address);
FileDescriptor AcceptFrom(const FileDescriptor& listener);
struct LoopbackOptions {
  std::string source = "127.0.0.1";  // address that the other side sees, such as 127.0.0.2
  int receive_bytes = 0;             // bytes that the kernel buffers for this side; 0: default
};
// Connects to "127.0.0.1:port"; negative if nobody listens there.
FileDescriptor ConnectOnLoopback(const std::string& address, const LoopbackOptions& options = {});
// Moves available bytes, at most `most`. Returns false at the end of either connection.
bool MoveBytes(const FileDescriptor& from, const FileDescriptor& to, size_t most);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_LOOPBACK_H_
