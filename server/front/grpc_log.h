// gRPC's own messages, such as failed handshakes, as lines of the log. Otherwise gRPC would write them to
// stderr and block if nobody reads it.
#ifndef SPEXD_SERVER_FRONT_GRPC_LOG_H_
#define SPEXD_SERVER_FRONT_GRPC_LOG_H_

#include "server/base/log.h"

namespace spexd {

// Sends gRPC's errors to `log`, as the event "grpc", while the object lives. gRPC has one log function for
// the whole process. Of several servers in one process, the one that started last gets the errors.
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
