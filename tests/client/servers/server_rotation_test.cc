// The order and times of attempts at servers, with a simulated clock.
#include "client/balance/server_rotation.h"

#include <set>

#include "tests/support/matchers.h"

namespace spexd::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

class ServerRotationTest : public ::testing::Test {
 protected:
  // Takes the next candidate, waits for it, and returns its server.
  int Next(ServerRotation* rotation) {
    const std::optional<ServerRotation::Candidate> candidate = rotation->Next(now_);
    if (!candidate.has_value()) return -1;
    now_ += candidate->wait;
    waited_ = candidate->wait;
    return candidate->server;
  }

  RetryPolicy policy_ = {.seed = 1};
  ServerRotation::Time now_{std::chrono::hours(1)};
  milliseconds waited_{0};
};

TEST_F(ServerRotationTest, TriesEveryServerAtOnceAndWaitsForTheSmallestPushBack) {
  ServerRotation rotation(3, policy_);
  const int first = Next(&rotation);
  rotation.NoteFull(first, milliseconds(4000), now_);
  const int second = Next(&rotation);
  EXPECT_EQ(waited_.count(), 0);
  rotation.NoteFull(second, milliseconds(1000), now_);
  const int third = Next(&rotation);
  EXPECT_EQ(waited_.count(), 0);
  EXPECT_EQ(std::set<int>({first, second, third}).size(), 3u);
  rotation.NoteFull(third, milliseconds(2000), now_);
  EXPECT_EQ(Next(&rotation), second);
  EXPECT_GE(waited_.count(), 1000);
  EXPECT_LE(waited_.count(), 1250);
  rotation.NoteFull(second, milliseconds(9000), now_);
  EXPECT_EQ(Next(&rotation), third);  // no server is called before its own time
  EXPECT_GE(now_ - ServerRotation::Time(std::chrono::hours(1)), milliseconds(2000));
}

TEST_F(ServerRotationTest, ComesBackToADeadServerAFewTimesWithLongerWaits) {
  ServerRotation rotation(1, policy_);
  std::vector<milliseconds> waits;
  while (Next(&rotation) == 0) {
    waits.push_back(waited_);
    rotation.NoteGone(0, std::nullopt, now_);
  }
  ASSERT_EQ(waits.size(), 5u);
  for (int k = 1; k < 5; ++k) {
    EXPECT_GE(waits[k].count(), 100 << (k - 1));
    EXPECT_LE(waits[k].count(), 300 << (k - 1));
  }
}

TEST_F(ServerRotationTest, WaitsAtLeastAsLongAsAServerThatIsGoneAsks) {
  ServerRotation rotation(1, policy_);
  ASSERT_EQ(Next(&rotation), 0);
  rotation.NoteGone(0, milliseconds(5000), now_);
  EXPECT_EQ(Next(&rotation), 0);
  EXPECT_GE(waited_.count(), 5000);
}

TEST_F(ServerRotationTest, WaitsForAFullServerOnceTheDeadOnesAreGivenUp) {
  ServerRotation rotation(2, policy_);
  std::vector<int> tries(2, 0);
  for (int server = Next(&rotation); server >= 0; server = Next(&rotation)) {
    ++tries[server];
    if (server == 0) rotation.NoteGone(0, std::nullopt, now_);
    if (server == 1) rotation.NoteFull(1, minutes(1), now_);
  }
  EXPECT_EQ(tries[0], 5);
  EXPECT_GE(tries[1], 8);  // 10 minutes, in waits of 60 to 75 s
  EXPECT_LE(tries[1], 11);
}

TEST_F(ServerRotationTest, StaysWithAServerThatMayHaveTakenTheCall) {
  ServerRotation rotation(3, policy_);
  const int server = Next(&rotation);
  rotation.NoteGone(server, std::nullopt, now_);
  rotation.StayWith(server);
  EXPECT_EQ(Next(&rotation), server);
  EXPECT_GT(waited_.count(), 0);
}

TEST_F(ServerRotationTest, TriesServersThatAreAddedAtOnceAndTheOthersInTheirTime) {
  ServerRotation rotation(1, policy_);
  ASSERT_EQ(Next(&rotation), 0);
  EXPECT_FALSE(rotation.AllRefused(now_));
  rotation.NoteFull(0, milliseconds(1000), now_);
  EXPECT_TRUE(rotation.AllRefused(now_));
  rotation.Add(2);
  EXPECT_FALSE(rotation.AllRefused(now_));
  for (const int added : {Next(&rotation), Next(&rotation)}) {
    EXPECT_GT(added, 0);
    EXPECT_EQ(waited_.count(), 0);
    rotation.NoteFull(added, milliseconds(9000), now_);
  }
  EXPECT_TRUE(rotation.AllRefused(now_));
  EXPECT_EQ(Next(&rotation), 0);
  EXPECT_GE(waited_.count(), 1000);
}

TEST_F(ServerRotationTest, SpreadsTheReturnOfClientsThatWereRefusedTogether) {
  std::multiset<int64_t> returns;
  std::set<int> first;
  for (uint32_t client = 0; client < 200; ++client) {
    ServerRotation rotation(2, {.seed = client});
    const int server = Next(&rotation);
    first.insert(server);
    rotation.NoteFull(server, milliseconds(1000), now_);
    const int other = rotation.Next(now_)->server;
    rotation.NoteFull(other, milliseconds(1000), now_);
    returns.insert(rotation.Next(now_)->wait.count());
  }
  EXPECT_THAT(first, UnorderedElementsAre(0, 1));  // the servers share the clients
  EXPECT_GE(*returns.begin(), 1000);
  for (const int64_t time : returns) EXPECT_LE(returns.count(time), 20u) << time << " ms";
}

TEST_F(ServerRotationTest, DoesTheSameForTheSameSeed) {
  std::vector<int64_t> waits[2];
  for (auto& list : waits) {
    ServerRotation rotation(1, {.seed = 7});
    for (int k = 0; k < 3; ++k) {
      rotation.NoteFull(0, milliseconds(1000), now_);
      list.push_back(rotation.Next(now_)->wait.count());
    }
  }
  EXPECT_EQ(waits[0], waits[1]);
}

}  // namespace
}  // namespace spexd::client
