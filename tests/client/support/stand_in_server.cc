#include "tests/client/support/stand_in_server.h"

#include <grpcpp/health_check_service_interface.h>

#include <stdexcept>

#include "spexd/v1/rpc_details.pb.h"

namespace spexd::testing {

StandInServer::StandInServer(StandInAnswer answer, StandInJobs* jobs)
    : answer_(std::move(answer)), jobs_(jobs) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(static_cast<v1::Extraction::Service*>(this));
  if (jobs != nullptr) builder.RegisterService(jobs);
  // Tests of pings cannot wait for the seconds that spexd requires between them.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 10);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) throw std::runtime_error("the stand-in does not start");
  address_ = "127.0.0.1:" + std::to_string(port);
}

StandInServer::~StandInServer() {
  {
    MutexLock lock(&mutex_);
    ends_ = true;
    changed_.NotifyAll();
  }
  if (jobs_ != nullptr) jobs_->End();
  server_->Shutdown();
}

grpc::Status StandInServer::Extract(grpc::ServerContext* context,
                                    grpc::ServerReaderWriter<v1::ExtractEvent, v1::ExtractRequest>* stream) {
  for (const v1::ExtractEvent& event : answer_.events) stream->Write(event);
  if (answer_.pushback_ms.has_value()) {
    context->AddTrailingMetadata("grpc-retry-pushback-ms", std::to_string(*answer_.pushback_ms));
  }
  MutexLock lock(&mutex_);
  ++calls_;
  while (answer_.holds && !ends_) changed_.Wait(&mutex_);
  return answer_.retry_delay.has_value()
             ? RefusalWithRetryInfo(answer_.status.error_code(), answer_.status.error_message(),
                                    *answer_.retry_delay)
             : answer_.status;
}

grpc::Status RefusalWithRetryInfo(grpc::StatusCode code, const std::string& text,
                                  std::chrono::milliseconds delay) {
  v1::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(delay.count() / 1000);
  info.mutable_retry_delay()->set_nanos(static_cast<int>(delay.count() % 1000) * 1000000);
  v1::RpcStatus details;
  details.set_code(code);
  details.set_message(text);
  google::protobuf::Any* any = details.add_details();
  any->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  any->set_value(info.SerializeAsString());
  return grpc::Status(code, text, details.SerializeAsString());
}

}  // namespace spexd::testing
