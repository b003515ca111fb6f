// Sockets that listen at an address of --listen or --http.
#ifndef SPEXD_SERVER_FRONT_LISTENING_SOCKETS_H_
#define SPEXD_SERVER_FRONT_LISTENING_SOCKETS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"

namespace spexd {

// Nonblocking. A Unix socket's file is removed at the end, unless another server has put its own there.
class ListeningSockets {
 public:
  // One socket for each address that the host's name has, all on one port; port 0: chosen by the kernel.
  // Unavailable if none can be had.
  static absl::StatusOr<ListeningSockets> OnPort(const std::string& host, int port);
  // Takes the place of a file that a server left behind. Unavailable if a server listens there, or none can.
  // InvalidArgument: the path is too long.
  static absl::StatusOr<ListeningSockets> OnPath(const std::string& path);

  ListeningSockets(ListeningSockets&& other) noexcept = default;
  ~ListeningSockets();

  std::vector<FileDescriptor>& sockets() { return sockets_; }
  const std::vector<FileDescriptor>& sockets() const { return sockets_; }
  int port() const { return port_; }  // 0 on a path

 private:
  ListeningSockets() = default;

  std::vector<FileDescriptor> sockets_;
  int port_ = 0;
  std::string path_;
  ino_t inode_ = 0;  // of the socket's file
};

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_LISTENING_SOCKETS_H_
