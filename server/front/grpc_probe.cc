#include "server/front/grpc_probe.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <openssl/bio.h>
#include <openssl/ssl.h>

#include <ctime>
#include <memory>

#include "absl/strings/str_format.h"

namespace spexd {
namespace {

constexpr int kMillisBetweenTries = 20;
constexpr int kSecondsOfAWait = 1;

absl::Status NoAnswer(const std::string& address, std::chrono::milliseconds patience) {
  return absl::UnavailableError(
      absl::StrFormat("gRPC at %s does not answer within %d ms", address, patience.count()));
}

// Notes that the server's certificate has arrived and suspends the handshake. The server would log an error
// if the client refused the certificate or had none of its own.
int NoteCertificate(X509_STORE_CTX* store, void* greeted) {
  *static_cast<bool*>(greeted) = true;
  SSL_set_retry_verify(
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx())));
  return 1;
}

}  // namespace

absl::Status ProbeGrpc(const std::string& address, std::chrono::milliseconds patience) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // opens a new connection
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  if (channel->WaitForConnected(std::chrono::system_clock::now() + patience)) return absl::OkStatus();
  return NoAnswer(address, patience);
}

absl::Status ProbeTls(const std::string& address, std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  if (context == nullptr) return absl::InternalError("OpenSSL makes no context");
  bool greeted = false;
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_cert_verify_callback(context.get(), NoteCertificate, &greeted);
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> connection(BIO_new_ssl_connect(context.get()),
                                                                 &BIO_free_all);
  if (connection == nullptr || BIO_set_conn_hostname(connection.get(), address.c_str()) != 1) {
    return absl::InternalError("OpenSSL makes no connection");
  }
  BIO_set_nbio(connection.get(), 1);
  while (BIO_do_handshake(connection.get()) <= 0 && !greeted && BIO_should_retry(connection.get()) &&
         std::chrono::steady_clock::now() < deadline) {
    BIO_wait(connection.get(), time(nullptr) + kSecondsOfAWait, kMillisBetweenTries);
  }
  return greeted ? absl::OkStatus() : NoAnswer(address, patience);
}

}  // namespace spexd
