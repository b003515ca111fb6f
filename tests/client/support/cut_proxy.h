// A network that can be cut: a TCP proxy that stops forwarding and leaves its connections open.
#ifndef SPEXD_TESTS_CLIENT_SUPPORT_CUT_PROXY_H_
#define SPEXD_TESTS_CLIENT_SUPPORT_CUT_PROXY_H_

#include <list>
#include <string>
#include <thread>

#include "core/base/file_descriptor.h"
#include "core/base/threads/mutex.h"

namespace spexd::testing {

class CutProxy {
 public:
  // Forwards connections to `address`, "127.0.0.1:port".
  explicit CutProxy(const std::string& address);
  ~CutProxy();
  CutProxy(const CutProxy&) = delete;
  CutProxy& operator=(const CutProxy&) = delete;

  const std::string& address() const { return address_; }
  // Waits until the client has sent data this many more times.
  void AwaitFromClient(int times);
  // Stops forwarding, without closing connections.
  void Cut();

 private:
  struct Link {
    FileDescriptor client, server;
  };

  void Forward();
  void Accept();

  const std::string target_;
  std::string address_;
  FileDescriptor listener_, cut_;
  Mutex mutex_;
  CondVar changed_;
  int from_client_ ABSL_GUARDED_BY(mutex_) = 0;
  std::list<Link> links_;  // owned by the thread until it has ended
  std::thread thread_;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CLIENT_SUPPORT_CUT_PROXY_H_
