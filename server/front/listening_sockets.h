// The sockets that listen at an address of --listen or --http.
#ifndef SPEXD_SERVER_FRONT_LISTENING_SOCKETS_H_
#define SPEXD_SERVER_FRONT_LISTENING_SOCKETS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"

namespace spexd {

// Nonblocking sockets. The destructor removes the file of a Unix socket, unless another server has replaced
// it.
class ListeningSockets {
 public:
  // Opens one socket for each address of the host's name, all on one port. Port 0: the kernel chooses one.
  // Unavailable: no address is available.
  static absl::StatusOr<ListeningSockets> OnPort(const std::string& host, int port);
  // Opens a Unix socket and replaces a file that a dead server left. Unavailable: another server listens
  // there, or the path cannot be used. InvalidArgument: the path is too long.
  static absl::StatusOr<ListeningSockets> OnPath(const std::string& path);

  ListeningSockets(ListeningSockets&& other) noexcept = default;
  ~ListeningSockets();

  std::vector<FileDescriptor>& sockets() { return sockets_; }
  const std::vector<FileDescriptor>& sockets() const { return sockets_; }
  int port() const { return port_; }  // 0 for a Unix socket

 private:
  ListeningSockets() = default;

  std::vector<FileDescriptor> sockets_;
  int port_ = 0;
  std::string path_;
  ino_t inode_ = 0;  // of the socket's file
};

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_LISTENING_SOCKETS_H_
