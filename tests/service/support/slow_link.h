// A network that is slow in one direction: a TCP proxy that forwards what a client sends at once, and what
// the server sends at a limited rate. To the server the client seems to be another machine: 127.0.0.2.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_SLOW_LINK_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_SLOW_LINK_H_

#include <string>
#include <thread>

#include "core/base/file_descriptor.h"

namespace spexd::testing {

// Forwards one connection.
class SlowLink {
 public:
  // `address`: "127.0.0.1:port" of the server.
  SlowLink(const std::string& address, int bytes_per_second);
  ~SlowLink();
  SlowLink(const SlowLink&) = delete;
  SlowLink& operator=(const SlowLink&) = delete;

  const std::string& address() const { return address_; }

 private:
  void Forward();

  const int bytes_per_second_;
  const std::string target_;
  std::string address_;
  FileDescriptor listener_, end_;
  std::thread thread_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_SLOW_LINK_H_
