// gRPC's own messages (a handshake that failed, say) as lines of the log. gRPC would write them to stderr
// itself, and wait there for whoever reads it.
#ifndef SPEXD_SERVER_FRONT_GRPC_LOG_H_
#define SPEXD_SERVER_FRONT_GRPC_LOG_H_

#include "server/base/log.h"

namespace spexd {

// While it lives, gRPC's errors go to `log`, as the event "grpc". gRPC has one function for the whole
// process: of several servers in one process the last that started gets them.
class GrpcLog {
 public:
  explicit GrpcLog(Logger* log);
  ~GrpcLog();
  GrpcLog(const GrpcLog&) = delete;
  GrpcLog& operator=(const GrpcLog&) = delete;

 private:
  Logger* const log_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_GRPC_LOG_H_
