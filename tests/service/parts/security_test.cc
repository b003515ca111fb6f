// Identities, roles and ownership, without the server.
#include "absl/strings/str_cat.h"
#include "core/base/digest/sha256.h"
#include "server/security/identities.h"
#include "tests/support/matchers.h"

namespace spexd {
namespace {

constexpr uint32_t kOwnUid = 1234;

Identities Known() {
  const std::string text = absl::StrCat("# who may do what\n\n",                                       //
                                        "pipeline submit,read token sha256:", Sha256Hex("old"), "\n",  //
                                        "pipeline submit,read token sha256:", Sha256Hex("new"), "\n",  //
                                        "viewer\tread\tcertificate\tCN=viewer, of us,O=Lab\n",         //
                                        "operator administer uid 1000\n");
  auto identities = Identities::Parse("who", text);
  EXPECT_TRUE(identities.ok()) << identities.status();
  return *std::move(identities);
}

std::string NameOf(const Identities& identities, const Evidence& evidence) {
  const absl::StatusOr<Identity> identity = identities.Identify(evidence);
  return identity.ok() ? identity->name : absl::StatusCodeToString(identity.status().code());
}

TEST(Identities, AreProvedByTokenCertificateOrUserId) {
  const Identities known = Known();
  EXPECT_EQ(known.size(), 3);
  EXPECT_EQ(NameOf(known, {.token = "old"}), "pipeline");
  EXPECT_EQ(NameOf(known, {.token = "new"}), "pipeline");
  EXPECT_EQ(NameOf(known, {.certificate_subject = "CN=viewer, of us,O=Lab"}), "viewer");
  EXPECT_EQ(NameOf(known, {.uid = 1000}), "operator");
  EXPECT_EQ(known.Identify({.token = "old"})->roles, (Roles{.submit = true, .read = true}));
}

TEST(Identities, AreRefusedWithoutProof) {
  const Identities known = Known();
  for (const Evidence& evidence :
       {Evidence{}, Evidence{.token = ""}, Evidence{.token = "other"}, Evidence{.token = Sha256Hex("old")},
        Evidence{.certificate_subject = "CN=viewer"}, Evidence{.uid = 0}}) {
    EXPECT_EQ(NameOf(known, evidence), "UNAUTHENTICATED") << evidence.Kind();
  }
  const absl::Status nothing = known.Identify({}).status(),
                     token = known.Identify({.token = "secret"}).status();
  EXPECT_THAT(std::string(nothing.message()), HasSubstr("send a bearer token or show a client certificate"));
  EXPECT_THAT(std::string(token.message()), HasSubstr("not known"));
  EXPECT_THAT(std::string(token.message()), Not(HasSubstr("secret")));
}

TEST(Identities, GoByTheTokenWhereThereIsMore) {
  const Evidence both = {.token = "new", .certificate_subject = "CN=viewer, of us,O=Lab", .uid = 1000};
  EXPECT_EQ(NameOf(Known(), both), "pipeline");
  EXPECT_EQ(NameOf(Known(), {.token = "wrong", .uid = 1000}), "UNAUTHENTICATED");
}

TEST(Identities, OfAnOpenServerAreAllAlikeButForWhatTheyShow) {
  const Identities open = Identities::Open(kOwnUid);
  EXPECT_EQ(open.Identify({})->roles, Roles::All());
  EXPECT_EQ(open.Identify({.token = "any"})->name, "anonymous");
  EXPECT_EQ(open.Identify({.certificate_subject = "CN=a"})->name, "CN=a");
  EXPECT_FALSE(open.Identify({.certificate_subject = "CN=a"})->roles.administer);
  EXPECT_EQ(open.Identify({.uid = 7})->name, "uid:7");
  EXPECT_FALSE(open.Identify({.uid = 7})->roles.administer);
  EXPECT_TRUE(open.Identify({.uid = 0})->roles.administer);
  EXPECT_TRUE(open.Identify({.uid = kOwnUid})->roles.administer);
}

TEST(Identities, NameTheLineThatIsWrong) {
  const std::string hash = absl::StrCat("sha256:", Sha256Hex("x"));
  const auto refused = [](const std::string& line, const std::string& message) {
    EXPECT_THAT(Identities::Parse("who", absl::StrCat("\n", line)).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused("a read token", "who:2: 3 fields, must be 4");
  refused("a write token " + hash, "who:2: role \"write\", must be submit, read or administer");
  refused("a read password x",
          "who:2: kind \"password\", must be token, certificate, uid, weight, queue-share or disk-share");
  refused("a read token x", "who:2: a token's value must be sha256:");
  refused("a read token sha256:abc", "who:2: a token's value must be sha256:");
  refused("a read uid root", "who:2: uid \"root\", must be a number");
  refused(std::string(129, 'a') + " read uid 1", "who:2: name of 129 bytes");
  refused("a read uid 1\na submit uid 2", "who:3: \"a\" has the roles submit here and read in a line above");
  refused("a read uid 1\nb read uid 1", "who:3: this uid is in a line above already");
  refused("a read token " + hash + "\nb read token " + hash, "who:3: this token is in a line above already");
  refused("# nobody", "who: no identity is in it");
  refused("a read weight 2", "who: no identity is in it");
  refused("a read uid 1\na read weight 0", "who:3: weight of \"a\" is \"0\", must be 0.01 to 100");
  refused("a read uid 1\na read weight much", "who:3: weight of \"a\" is \"much\", must be 0.01 to 100");
  refused("a read uid 1\na read queue-share 1.1",
          "who:3: queue-share of \"a\" is \"1.1\", must be 0.001 to 1");
  refused("a read uid 1\n* - disk-share 0", "who:3: disk-share of \"*\" is \"0\", must be 0.001 to 1");
  refused("a read uid 1\n* - disk-share nan", "who:3: disk-share of \"*\" is \"nan\", must be 0.001 to 1");
  refused("* - uid 1", "who:2: \"*\" has the roles \"-\" and the kind \"uid\", must have - and");
  refused("* read weight 1", "who:2: \"*\" has the roles \"read\" and the kind \"weight\", must have - and");
  refused("a - uid 1", "who:2: role \"-\"");
  refused("a read uid 1\na read weight 2\na read weight 3", "who:4: this weight is in a line above already");
}

TEST(Identities, NameWhatIsWrongInFewPrintableCharacters) {
  const std::string strange = "\x1b" + std::string(100000, 'x');
  for (const std::string& line :
       {"a " + strange + " uid 1", "a read uid " + strange, "a read " + strange + " 1",
        "a read weight " + strange, strange + " read uid 1"}) {
    const absl::Status status = Identities::Parse("who", line).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << line.substr(0, 20);
    EXPECT_LT(status.message().size(), 400u) << line.substr(0, 20);
    EXPECT_EQ(status.message().find('\x1b'), absl::string_view::npos) << line.substr(0, 20);
  }
}

MATCHER_P3(SharesAre, weight, queue, disk, "") {
  *result_listener << arg.weight << ", " << arg.queue << ", " << arg.disk;
  return arg.weight == weight && arg.queue == queue && arg.disk == disk;
}

TEST(Identities, HaveTheSharesThatTheirLinesSay) {
  const auto known = Identities::Parse("who",
                                       "a submit uid 1\na submit weight 2.5\na submit queue-share 0.1\n"
                                       "a submit disk-share 0.25\nb submit uid 2\n");
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_THAT(known->Identify({.uid = 1})->shares, SharesAre(2.5, 0.1, 0.25));
  EXPECT_THAT(known->Identify({.uid = 2})->shares, SharesAre(1, 0.5, 1));
}

TEST(Identities, WithoutALineOfTheirOwnHaveTheSharesOfTheStar) {
  const auto known = Identities::Parse("who",
                                       "a submit uid 1\na submit queue-share 0.9\nb submit uid 2\n"
                                       "* - queue-share 0.2\n* - disk-share 0.3\n");
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->size(), 2);
  EXPECT_THAT(known->SharesOf("a"), SharesAre(1, 0.9, 0.3));
  EXPECT_THAT(known->SharesOf("b"), SharesAre(1, 0.2, 0.3));
  EXPECT_THAT(known->SharesOf("whose job is kept, and whose lines are gone"), SharesAre(1, 0.2, 0.3));
}

TEST(Identities, OfAnOpenServerMayEachTakeTheWholeQueueAndDisk) {
  EXPECT_THAT(Identities::Open(7).SharesOf("anonymous"), SharesAre(1, 1, 1));
  EXPECT_THAT(Identities::Open(7).Identify({.uid = 8})->shares, SharesAre(1, 1, 1));
}

TEST(Share, OfALimitIsRoundedUp) {
  EXPECT_EQ(ShareOf(9, 0.5), 5);
  EXPECT_EQ(ShareOf(1000, 0.5), 500);
  EXPECT_EQ(ShareOf(100, 0.07), 7);
  EXPECT_EQ(ShareOf(1, 0.001), 1);
  EXPECT_EQ(ShareOf(0, 0.5), 0);
  EXPECT_EQ(ShareOf(INT64_MAX, 1), INT64_MAX);
}

TEST(Roles, DecideWhichRpcsAnIdentityMayCall) {
  const Identity submitter{"s", {.submit = true}}, reader{"r", {.read = true}}, nobody{"n", {}};
  const Identity administrator{"a", {.administer = true}};
  const auto allowed = [](const Identity& who, const char* rpc) { return CheckMayCall(who, rpc).ok(); };
  for (const char* rpc :
       {"spexd.v1.Extraction/Extract", "spexd.v1.PsfRegistry/LoadPsf", "spexd.v1.PsfRegistry/UnloadPsf"}) {
    EXPECT_TRUE(allowed(submitter, rpc) && !allowed(reader, rpc) && !allowed(nobody, rpc)) << rpc;
    EXPECT_TRUE(allowed(administrator, rpc)) << rpc;
  }
  for (const char* rpc : {"spexd.v1.Extraction/GetCapabilities", "spexd.v1.PsfRegistry/ListPsfs"}) {
    EXPECT_TRUE(!allowed(submitter, rpc) && allowed(reader, rpc) && !allowed(nobody, rpc)) << rpc;
    EXPECT_TRUE(allowed(administrator, rpc)) << rpc;
  }
  EXPECT_FALSE(allowed(administrator, "spexd.v1.Extraction/Other"));
  EXPECT_EQ(CheckMayCall(reader, "spexd.v1.Extraction/Extract").message(),
            "identity \"r\" has the roles read; spexd.v1.Extraction/Extract takes submit");
}

TEST(Ownership, IsForTheOwnerAndAdministrators) {
  const Identity alice{"alice", {.submit = true}}, bob{"bob", {.submit = true}}, root{"root", Roles::All()};
  EXPECT_TRUE(CheckMayManage(alice, "alice", "PSF \"ab\"", "unload").ok());
  EXPECT_TRUE(CheckMayManage(root, "alice", "PSF \"ab\"", "unload").ok());
  EXPECT_TRUE(CheckMayManage(root, "", "PSF \"ab\"", "unload").ok());
  EXPECT_EQ(
      CheckMayManage(bob, "alice", "PSF \"ab\"", "pin").message(),
      "PSF \"ab\" belongs to \"alice\"; only its owner or an administrator may pin it, identity \"bob\" is "
      "neither");
  EXPECT_THAT(std::string(CheckMayManage(bob, "", "PSF \"ab\"", "unload").message()),
              HasSubstr("belongs to nobody"));
  const Identity nameless{"", {.submit = true}};
  EXPECT_FALSE(CheckMayManage(nameless, "", "PSF \"ab\"", "unload").ok());
}

}  // namespace
}  // namespace spexd
