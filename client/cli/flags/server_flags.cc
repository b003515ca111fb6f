#include "client/cli/flags/server_flags.h"

#include <cstdlib>

#include "core/base/trace_context.h"

namespace spexd::cli {

void AddServerFlags(CLI::App* command, const std::string& help, const std::string& group,
                    client::ServerAddress* server) {
  command->add_option("--server", server->address, help)
      ->type_name("ADDRESS")
      ->envname("SPEXD_SERVER")
      ->capture_default_str()
      ->group(group);
  command
      ->add_option("--tls-ca", server->tls_ca,
                   "PEM file of the authorities that sign the server's certificate; turns TLS on")
      ->type_name("FILE")
      ->envname("SPEXD_TLS_CA")
      ->group(group);
  command->add_option("--tls-cert", server->tls_cert, "PEM file of the client certificate to show")
      ->type_name("FILE")
      ->envname("SPEXD_TLS_CERT")
      ->group(group);
  command->add_option("--tls-key", server->tls_key, "PEM file of the key of --tls-cert")
      ->type_name("FILE")
      ->envname("SPEXD_TLS_KEY")
      ->group(group);
  if (const char* traceparent = std::getenv(kTraceVariable)) server->traceparent = traceparent;
  command->add_option("--token-file", server->token_file, "File with the bearer token to send")
      ->type_name("FILE")
      ->envname("SPEXD_TOKEN_FILE")
      ->group(group);
}

}  // namespace spexd::cli
