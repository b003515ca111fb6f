#include "client/cli/commands/every_server.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "absl/strings/str_join.h"
#include "client/cli/terminal/exit_code.h"
#include "client/cli/terminal/terminal_text.h"
#include "client/connection/grpc_connection.h"

namespace spexd::cli {

int AskEveryServer(const client::ServerAddress& servers, bool json,
                   const std::function<absl::StatusOr<std::string>(client::Connection*)>& ask) {
  const auto connections = client::ConnectAll(servers);
  if (!connections.ok()) return Fail(connections.status());
  int code = kOk;
  std::vector<std::string> elements;
  for (const auto& connection : *connections) {
    absl::StatusOr<std::string> text = ask(connection.get());
    if (!text.ok()) {
      code = std::max<int>(code, Fail(text.status()));
    } else if (json) {
      elements.push_back(*std::move(text));
    } else {
      std::fputs(ForTerminal(*text).c_str(), stdout);
    }
  }
  if (json) std::printf("[\n%s\n]\n", absl::StrJoin(elements, ",\n").c_str());
  return code;
}

}  // namespace spexd::cli
