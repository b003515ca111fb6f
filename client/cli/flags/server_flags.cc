#include "client/cli/flags/server_flags.h"

#include <cstdlib>

#include "core/base/trace_context.h"

namespace spexd::cli {

void AddServerFlags(CLI::App* command, const std::string& help, const std::string& group,
                    client::ServerAddress* server) {
  command->add_option("--server", server->address, help)
      ->envname("SPEXD_SERVER")
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--tls-ca", server->tls_ca,
                   "Talk TLS; PEM file of the authorities that vouch for the server")
      ->envname("SPEXD_TLS_CA")
      ->group(group);
  command->add_option("--tls-cert", server->tls_cert, "PEM file of the certificate to show")
      ->envname("SPEXD_TLS_CERT")
      ->group(group);
  command->add_option("--tls-key", server->tls_key, "PEM file of its key")
      ->envname("SPEXD_TLS_KEY")
      ->group(group);
  if (const char* traceparent = std::getenv(kTraceVariable)) server->traceparent = traceparent;
  command->add_option("--token-file", server->token_file, "File with the token to send")
      ->envname("SPEXD_TOKEN_FILE")
      ->group(group);
}

}  // namespace spexd::cli
