// Which server is tried when: by a simulated clock.
#include "client/balance/server_rota.h"

#include <set>

#include "tests/support/matchers.h"

namespace spexd::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

class ServerRotaTest : public ::testing::Test {
 protected:
  // Takes the next turn: waits for it, and returns its server.
  int Turn(ServerRota* rota) {
    const std::optional<ServerRota::Turn> turn = rota->Next(now_);
    if (!turn.has_value()) return -1;
    now_ += turn->wait;
    waited_ = turn->wait;
    return turn->server;
  }

  RetryPolicy policy_ = {.seed = 1};
  ServerRota::Time now_{std::chrono::hours(1)};
  milliseconds waited_{0};
};

TEST_F(ServerRotaTest, TriesEveryServerAtOnceAndWaitsForTheSmallestPushBack) {
  ServerRota rota(3, policy_);
  const int first = Turn(&rota);
  rota.NoteFull(first, milliseconds(4000), now_);
  const int second = Turn(&rota);
  EXPECT_EQ(waited_.count(), 0);
  rota.NoteFull(second, milliseconds(1000), now_);
  const int third = Turn(&rota);
  EXPECT_EQ(waited_.count(), 0);
  EXPECT_EQ(std::set<int>({first, second, third}).size(), 3u);
  rota.NoteFull(third, milliseconds(2000), now_);
  EXPECT_EQ(Turn(&rota), second);
  EXPECT_GE(waited_.count(), 1000);
  EXPECT_LE(waited_.count(), 1250);
  rota.NoteFull(second, milliseconds(9000), now_);
  EXPECT_EQ(Turn(&rota), third);  // no server is called before its own time
  EXPECT_GE(now_ - ServerRota::Time(std::chrono::hours(1)), milliseconds(2000));
}

TEST_F(ServerRotaTest, ComesBackToADeadServerAFewTimesWithLongerWaits) {
  ServerRota rota(1, policy_);
  std::vector<milliseconds> waits;
  while (Turn(&rota) == 0) {
    waits.push_back(waited_);
    rota.NoteGone(0, std::nullopt, now_);
  }
  ASSERT_EQ(waits.size(), 5u);
  for (int k = 1; k < 5; ++k) {
    EXPECT_GE(waits[k].count(), 100 << (k - 1));
    EXPECT_LE(waits[k].count(), 300 << (k - 1));
  }
}

TEST_F(ServerRotaTest, WaitsAtLeastAsLongAsAServerThatIsGoneAsks) {
  ServerRota rota(1, policy_);
  ASSERT_EQ(Turn(&rota), 0);
  rota.NoteGone(0, milliseconds(5000), now_);
  EXPECT_EQ(Turn(&rota), 0);
  EXPECT_GE(waited_.count(), 5000);
}

TEST_F(ServerRotaTest, WaitsForAFullServerOnceTheDeadOnesAreGivenUp) {
  ServerRota rota(2, policy_);
  std::vector<int> tries(2, 0);
  for (int server = Turn(&rota); server >= 0; server = Turn(&rota)) {
    ++tries[server];
    if (server == 0) rota.NoteGone(0, std::nullopt, now_);
    if (server == 1) rota.NoteFull(1, minutes(1), now_);
  }
  EXPECT_EQ(tries[0], 5);
  EXPECT_GE(tries[1], 8);  // 10 minutes, in waits of 60 to 75 s
  EXPECT_LE(tries[1], 11);
}

TEST_F(ServerRotaTest, StaysWithAServerThatMayHaveTakenTheCall) {
  ServerRota rota(3, policy_);
  const int server = Turn(&rota);
  rota.NoteGone(server, std::nullopt, now_);
  rota.StayWith(server);
  EXPECT_EQ(Turn(&rota), server);
  EXPECT_GT(waited_.count(), 0);
}

TEST_F(ServerRotaTest, TriesServersThatAreAddedAtOnceAndTheOthersInTheirTime) {
  ServerRota rota(1, policy_);
  ASSERT_EQ(Turn(&rota), 0);
  EXPECT_FALSE(rota.AllRefused(now_));
  rota.NoteFull(0, milliseconds(1000), now_);
  EXPECT_TRUE(rota.AllRefused(now_));
  rota.Add(2);
  EXPECT_FALSE(rota.AllRefused(now_));
  for (const int added : {Turn(&rota), Turn(&rota)}) {
    EXPECT_GT(added, 0);
    EXPECT_EQ(waited_.count(), 0);
    rota.NoteFull(added, milliseconds(9000), now_);
  }
  EXPECT_TRUE(rota.AllRefused(now_));
  EXPECT_EQ(Turn(&rota), 0);
  EXPECT_GE(waited_.count(), 1000);
}

TEST_F(ServerRotaTest, SpreadsTheReturnOfClientsThatWereRefusedTogether) {
  std::multiset<int64_t> returns;
  std::set<int> first;
  for (uint32_t client = 0; client < 200; ++client) {
    ServerRota rota(2, {.seed = client});
    const int server = Turn(&rota);
    first.insert(server);
    rota.NoteFull(server, milliseconds(1000), now_);
    const int other = rota.Next(now_)->server;
    rota.NoteFull(other, milliseconds(1000), now_);
    returns.insert(rota.Next(now_)->wait.count());
  }
  EXPECT_THAT(first, UnorderedElementsAre(0, 1));  // they share the servers
  EXPECT_GE(*returns.begin(), 1000);
  for (const int64_t time : returns) EXPECT_LE(returns.count(time), 20u) << time << " ms";
}

TEST_F(ServerRotaTest, DoesTheSameForTheSameSeed) {
  std::vector<int64_t> waits[2];
  for (auto& list : waits) {
    ServerRota rota(1, {.seed = 7});
    for (int k = 0; k < 3; ++k) {
      rota.NoteFull(0, milliseconds(1000), now_);
      list.push_back(rota.Next(now_)->wait.count());
    }
  }
  EXPECT_EQ(waits[0], waits[1]);
}

}  // namespace
}  // namespace spexd::client
