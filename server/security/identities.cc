#include "server/security/identities.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/digest/sha256.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"

namespace spexd {
namespace {

constexpr size_t kHashCharacters = 64;
constexpr size_t kMaxNameBytes = 128;
constexpr size_t kFields = 4;
constexpr char kHashPrefix[] = "sha256:";
constexpr char kEveryone[] = "*", kNoRoles[] = "-";  // name and roles of lines that set defaults
constexpr double kDefaultQueueShare = 0.5;
constexpr char kKinds[] = "token, certificate, uid, weight, queue-share or disk-share";

struct ShareKind {
  const char* name;
  double Shares::*value;
  double min, max;
};
constexpr ShareKind kShareKinds[] = {{"weight", &Shares::weight, 0.01, 100},
                                     {"queue-share", &Shares::queue, 0.001, 1},
                                     {"disk-share", &Shares::disk, 0.001, 1}};

const ShareKind* FindShareKind(const std::string& name) {
  for (const ShareKind& kind : kShareKinds) {
    if (name == kind.name) return &kind;
  }
  return nullptr;
}

// Returns the first three words and the rest of the line, which may have blanks.
std::vector<std::string> FieldsOf(absl::string_view line) {
  std::vector<std::string> fields;
  while (fields.size() + 1 < kFields && !line.empty()) {
    const size_t end = line.find_first_of(" \t");
    fields.emplace_back(line.substr(0, end));
    line = end == absl::string_view::npos ? "" : absl::StripLeadingAsciiWhitespace(line.substr(end));
  }
  if (!line.empty()) fields.emplace_back(line);
  return fields;
}

bool IsHash(absl::string_view text) {
  return text.size() == kHashCharacters && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isgraph(c); });
}

}  // namespace

const char* Evidence::Kind() const {
  if (token.has_value()) return "token";
  if (certificate_subject.has_value()) return "certificate";
  return uid.has_value() ? "uid" : "nothing";
}

Identities Identities::Open(uint32_t own_uid) {
  Identities open;
  open.open_uid_ = own_uid;
  return open;
}

absl::StatusOr<Identities> Identities::Parse(const std::string& path, const std::string& text) {
  Identities identities;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    if (const absl::Status status = identities.AddLine(FieldsOf(line)); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(path, ":", number, ": ", status.message()));
    }
  }
  if (identities.tokens_.empty() && identities.subjects_.empty() && identities.uids_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": no identity is in it: nobody could use the server"));
  }
  return identities;
}

absl::Status Identities::AddLine(const std::vector<std::string>& fields) {
  if (fields.size() < kFields) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d fields, must be 4: name, roles, kind (%s) and value", fields.size(), kKinds));
  }
  const std::string &name = fields[0], &kind = fields[2], &value = fields[3];
  if (!IsName(name)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "name of %d bytes, must have 1 to %d printable characters", name.size(), kMaxNameBytes));
  }
  if (name != kEveryone) {
    SPEXD_ASSIGN_OR_RETURN(const Roles roles, ParseRoles(fields[1]));
    const auto [same, first] = roles_.try_emplace(name, roles);
    if (!first && same->second != roles) {
      return absl::InvalidArgumentError(absl::StrFormat("\"%s\" has the roles %s here and %s in a line above",
                                                        name, roles.Text(), same->second.Text()));
    }
  } else if (fields[1] != kNoRoles || FindShareKind(kind) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrFormat("\"*\" has the roles \"%s\" and the kind \"%s\", must have - and a weight or a share",
                        ForMessage(fields[1]), ForMessage(kind)));
  }
  SPEXD_ASSIGN_OR_RETURN(const bool fresh, AddProof(name, kind, value));
  if (fresh) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("this %s is in a line above already", kind));
}

// Adds the credential or share of a line. Returns false if an earlier line has set it.
absl::StatusOr<bool> Identities::AddProof(const std::string& name, const std::string& kind,
                                          const std::string& value) {
  if (kind == "token") {
    const absl::string_view hash =
        absl::string_view(value).substr(std::min(value.size(), sizeof(kHashPrefix) - 1));
    if (!absl::StartsWith(value, kHashPrefix) || !IsHash(hash)) {
      return absl::InvalidArgumentError(
          "a token's value must be sha256: and 64 lower-case hexadecimal digits, its hash and not itself");
    }
    const bool fresh =
        std::none_of(tokens_.begin(), tokens_.end(), [&](const Token& t) { return t.sha256 == hash; });
    tokens_.push_back({std::string(hash), name});
    return fresh;
  }
  if (kind == "certificate") return subjects_.emplace(value, name).second;
  if (kind == "uid") {
    uint32_t uid = 0;
    if (!absl::SimpleAtoi(value, &uid)) {
      return absl::InvalidArgumentError(absl::StrFormat("uid \"%s\", must be a number", ForMessage(value)));
    }
    return uids_.emplace(uid, name).second;
  }
  if (const ShareKind* share = FindShareKind(kind); share != nullptr) {
    double number = 0;
    if (!absl::SimpleAtod(value, &number) || !(number >= share->min && number <= share->max)) {
      return absl::InvalidArgumentError(absl::StrFormat("%s of \"%s\" is \"%s\", must be %g to %g", kind,
                                                        name, ForMessage(value), share->min, share->max));
    }
    return shares_.emplace(std::pair(name, kind), number).second;
  }
  return absl::InvalidArgumentError(absl::StrFormat("kind \"%s\", must be %s", ForMessage(kind), kKinds));
}

absl::StatusOr<Identity> Identities::IdentifyOpen(const Evidence& evidence) const {
  const Roles user = {.submit = true, .read = true};
  if (evidence.certificate_subject.has_value()) return Identity{*evidence.certificate_subject, user};
  if (evidence.uid.has_value()) {
    const bool owner = *evidence.uid == 0 || *evidence.uid == *open_uid_;
    return Identity{absl::StrCat("uid:", *evidence.uid), owner ? Roles::All() : user};
  }
  return Identity{"anonymous", Roles::All()};
}

Shares Identities::SharesOf(const std::string& name) const {
  Shares shares = {.queue = open() ? 1 : kDefaultQueueShare};
  for (const ShareKind& kind : kShareKinds) {
    auto found = shares_.find({name, kind.name});
    if (found == shares_.end()) found = shares_.find({kEveryone, kind.name});
    if (found != shares_.end()) shares.*kind.value = found->second;
  }
  return shares;
}

absl::StatusOr<Identity> Identities::Known(const std::string& name) const {
  return Identity{name, roles_.at(name), SharesOf(name)};
}

absl::StatusOr<Identity> Identities::Identify(const Evidence& evidence) const {
  if (open()) return IdentifyOpen(evidence);
  if (evidence.token.has_value()) {
    const std::string hash = Sha256Hex(*evidence.token);
    const Token* found = nullptr;
    for (const Token& token : tokens_) {  // compares all, so that the time does not depend on the match
      if (CRYPTO_memcmp(token.sha256.data(), hash.data(), kHashCharacters) == 0) found = &token;
    }
    if (found != nullptr) return Known(found->name);
    return absl::UnauthenticatedError("the token is not known to this server");
  }
  if (evidence.certificate_subject.has_value()) {
    const auto found = subjects_.find(*evidence.certificate_subject);
    if (found != subjects_.end()) return Known(found->second);
    return absl::UnauthenticatedError(absl::StrFormat(
        "the certificate's subject \"%s\" is not known to this server", *evidence.certificate_subject));
  }
  if (evidence.uid.has_value()) {
    const auto found = uids_.find(*evidence.uid);
    if (found != uids_.end()) return Known(found->second);
    return absl::UnauthenticatedError(
        absl::StrFormat("user id %d is not known to this server", *evidence.uid));
  }
  return absl::UnauthenticatedError(
      "this server wants to know who calls: send a bearer token or show a client certificate");
}

}  // namespace spexd
