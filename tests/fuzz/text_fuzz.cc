// Text from users and operators; the first byte of an input tells how the rest is read.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/connection/server_address.h"
#include "core/base/text.h"
#include "core/base/trace_context.h"
#include "core/model/wavelength_grid.h"
#include "cuda/loader/device_list.h"
#include "server/config/option_table.h"
#include "server/config/options.h"
#include "server/config/preload_option.h"
#include "server/security/identities.h"
#include "server/status/html.h"
#include "tests/fuzz/support/fuzz_check.h"

namespace spexd::fuzz {
namespace {

const ErrorRules kUsersText = {.utf8 = true};

void CheckGrid(const WavelengthGrid& grid) {
  Require(grid.count >= 1 && grid.count <= kMaxWavelengthBins && grid.first > 0 && grid.step > 0,
          "a grid has bins");
  Require(std::isfinite(grid.last()), "a grid's wavelengths are finite");
}

void AsGrid(const std::string& text) {
  const absl::StatusOr<WavelengthGrid> grid = ParseWavelengthGrid(text);
  RequireGoodError(grid.status(), kUsersText);
  if (!grid.ok()) return;
  CheckGrid(*grid);
  if (grid->step < 1e-9 * grid->last()) return;  // rounding may lose the last bin
  const auto again =
      ParseWavelengthGrid(absl::StrFormat("%.17g,%.17g,%.17g", grid->first, grid->last(), grid->step));
  Require(again.ok() && *again == *grid, "a grid is read as it was written");
}

void AsDevices(const std::string& text) {
  const absl::StatusOr<std::vector<int>> devices = ParseDeviceList(text);
  RequireGoodError(devices.status(), kUsersText);
  if (!devices.ok()) return;
  const auto again = ParseDeviceList(absl::StrJoin(*devices, ","));
  Require(again.ok() && *again == *devices, "devices are read as they were written");
}

void AsPreload(const std::string& text) {
  const absl::StatusOr<Preload> preload = ParsePreload("--preload-psf", text);
  RequireGoodError(preload.status(), kUsersText);
  if (!preload.ok()) return;
  Require(absl::StartsWith(preload->path, "/") && preload->bundle_size >= 1, "a PSF has a path");
  if (preload->grid.has_value()) CheckGrid(*preload->grid);
}

void AsAddress(const std::string& text) {
  const absl::StatusOr<HostPort> where = ParseHostPort("--listen", text);
  RequireGoodError(where.status(), kUsersText);
  if (!where.ok()) return;
  const bool v6 = absl::StrContains(where->host, ':');
  const std::string host = v6 ? absl::StrCat("[", where->host, "]") : where->host;
  const auto again = ParseHostPort("--listen", absl::StrCat(host, ":", where->port));
  Require(again.ok() && again->host == where->host && again->port == where->port,
          "an address is read as it was written");
}

// Each option takes the text or refuses it.
void AsOption(const std::string& text) {
  static const std::vector<Option> table = OptionTable();
  if (text.empty()) return;
  const Option& option = table[static_cast<unsigned char>(text[0]) % table.size()];
  ServerOptions options, again;
  const absl::Status set = SetOption(option, option.flag(), {text.substr(1)}, &options);
  RequireGoodError(set, kUsersText);
  if (!set.ok()) return;
  const std::vector<std::string> texts = OptionTexts(option, options);
  Require(SetOption(option, option.flag(), texts, &again).ok() && OptionTexts(option, again) == texts,
          "an option's value is read as it was written");
}

void AsServers(const std::string& text) {
  const auto resolve = [](const std::string& host, const std::string& port) {
    return absl::StatusOr<std::vector<std::string>>(
        {"192.0.2.1:" + port, "192.0.2.2:" + port, "192.0.2.1:" + port});
  };
  const auto servers = client::FindServers(text, resolve);
  RequireGoodError(servers.status(), kUsersText);
  if (!servers.ok()) return;
  Require(!servers->empty(), "an address names a server");
  std::vector<std::string> targets;
  for (const client::Endpoint& server : *servers) {
    Require(std::find(targets.begin(), targets.end(), server.target) == targets.end(),
            "each server comes once");
    targets.push_back(server.target);
  }
}

void AsRoles(const std::string& text) {
  const absl::StatusOr<Roles> roles = ParseRoles(text);
  RequireGoodError(roles.status(), kUsersText);
  if (!roles.ok()) return;
  const auto again = ParseRoles(roles->Text());
  Require(again.ok() && *again == *roles, "roles are read as they were written");
}

void RequireIdentity(const absl::StatusOr<Identity>& identity) {
  if (!identity.ok()) return;
  Require(!identity->name.empty() && !HasControlCharacters(identity->name), "an identity has a name");
  Require(!(identity->roles == Roles()), "an identity has a role");
  const Shares& shares = identity->shares;
  Require(shares.weight >= 0.01 && shares.weight <= 100, "an identity's weight is within its limits");
  for (const double share : {shares.queue, shares.disk})
    Require(share >= 0.001 && share <= 1, "an identity's share is within its limits");
}

void AsIdentities(const std::string& text) {
  const absl::StatusOr<Identities> identities = Identities::Parse("identities", text);
  RequireGoodError(identities.status(), kUsersText);
  if (!identities.ok()) return;
  Require(identities->size() >= 1 && !identities->open(), "a file with identities has one");
  Require(!Identities::Parse("identities", text + "\n" + text).ok(), "what is there twice is refused");
  Require(!identities->Identify({}).ok(), "nobody is admitted for nothing");
  Require(!identities->Identify({.token = ""}).ok(), "nobody is admitted for an empty token");
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (fields.size() != 4 || fields[2] != "certificate" || fields[0][0] == '#') continue;
    RequireIdentity(
        identities->Identify({.certificate_subject = std::string(absl::StripAsciiWhitespace(fields[3]))}));
  }
  for (const uint32_t uid : {0u, 1u, 1000u, UINT32_MAX}) RequireIdentity(identities->Identify({.uid = uid}));
}

void AsTrace(const std::string& text) {
  const TraceContext trace = ParseTraceparent(text);
  const std::string ids = trace.trace_id + "-" + trace.span_id;
  Require(ids == "-" || (trace.trace_id.size() == 32 && ids.size() == 49 && absl::StrContains(text, ids)),
          "a trace's ids have 32 and 16 digits");
}

void AsPageText(const std::string& text) {
  Html page;
  page.Text(text);
  Require(page.Take().find_first_of("<>\"'") == std::string::npos, "no text is markup");
}

using Reader = void (*)(const std::string&);
constexpr std::array<Reader, 10> kReaders = {&AsGrid,    &AsDevices, &AsPreload,    &AsAddress, &AsOption,
                                             &AsServers, &AsRoles,   &AsIdentities, &AsTrace,   &AsPageText};

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spexd::fuzz;
  if (size == 0) return 0;
  kReaders[data[0] % kReaders.size()](std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
