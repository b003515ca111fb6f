// The choice of servers for jobs, with simulated servers and a simulated clock.
#include "client/balance/server_speeds.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "tests/support/matchers.h"

namespace spexd::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Ge;
using ::testing::Le;
using Outcome = ServerSpeeds::Outcome;
using Time = ServerSpeeds::Time;

Time At(double seconds) {
  return Time(std::chrono::duration_cast<Time::duration>(std::chrono::duration<double>(1000 + seconds)));
}
double SecondsAt(Time time) { return std::chrono::duration<double>(time - At(0)).count(); }

// A server that does jobs in the order of their arrival.
struct SimulatedServer {
  double seconds = 1;     // seconds per job
  int at_once = 1;        // jobs done at once
  double first = 0;       // additional seconds for the first job
  double noise = 0;       // largest fraction by which a job's time varies
  double stops_at = 1e9;  // no job ends after this time
};

class Night {
 public:
  using SimulatedServers = std::vector<SimulatedServer>;

  explicit Night(const SimulatedServers& servers, uint32_t seed = 1)
      : servers_(servers), speeds_(seed), random_(seed), counts_(servers.size()), free_(servers.size()) {
    for (size_t k = 0; k < servers.size(); ++k) {
      names_.push_back(std::make_shared<int>());
      ready_.push_back(static_cast<int>(k));
      free_[k].assign(static_cast<size_t>(servers[k].at_once), 0);
    }
  }

  // Does this many jobs, with at most `outstanding` at once; returns when the last one ends.
  double Run(int jobs, int outstanding) {
    double now = 0, last = 0;
    while (jobs > 0 || !running_.empty()) {
      double again = 1e9;
      while (jobs > 0 && static_cast<int>(running_.size()) < outstanding) {
        const ServerSpeeds::Choice choice = speeds_.Choose(names_, ready_, At(now));
        if (!choice.server.has_value()) {
          if (choice.again != Time::max()) again = SecondsAt(choice.again);
          break;
        }
        Begin(static_cast<size_t>(*choice.server), now);
        --jobs;
      }
      const auto next = std::min_element(running_.begin(), running_.end());
      if (next == running_.end() || next->first >= 1e8) return 1e9;
      if (again < next->first) {
        now = again;
        continue;
      }
      last = now = next->first;
      speeds_.End(names_[next->second], Outcome::kDone, {}, At(now));
      running_.erase(next);
    }
    return last;
  }
  const std::vector<int>& counts() const { return counts_; }

 private:
  void Begin(size_t server, double now) {
    const SimulatedServer& of = servers_[server];
    double& free = *std::min_element(free_[server].begin(), free_[server].end());
    const double noise = std::uniform_real_distribution<double>(-of.noise, of.noise)(random_);
    free = std::max(free, now) + of.seconds * (1 + noise) + (counts_[server] == 0 ? of.first : 0);
    if (free >= of.stops_at) free = 1e9;
    running_.emplace_back(free, server);
    ++counts_[server];
    speeds_.Begin(names_[server], At(now));
  }

  const SimulatedServers servers_;
  ServerSpeeds speeds_;
  std::mt19937 random_;
  std::vector<ServerSpeeds::Server> names_;
  std::vector<int> ready_, counts_;
  std::vector<std::vector<double>> free_;  // when each slot of a server becomes free
  std::vector<std::pair<double, size_t>> running_;
};

TEST(ServerSpeeds, MakeANightNoLongerWhereASlowServerIsAdded) {
  constexpr double kFast = 0.12;
  const double alone = Night(Night::SimulatedServers{{kFast}}).Run(40, 4);
  for (const double times : {1.0, 1.4, 2.0, 3.0, 6.0, 12.0, 30.0, 100.0}) {
    for (uint32_t first = 0; first < 2; ++first) {
      Night night(Night::SimulatedServers{{kFast}, {times * kFast}}, first);
      // Not longer than the one job that reveals the slow server's speed.
      EXPECT_LE(night.Run(40, 8), std::max(alone + kFast, times * kFast)) << times;
    }
  }
}

TEST(ServerSpeeds, MakeServersOfDifferentSpeedEndTogether) {
  for (const double times : {1.7, 3.0, 5.0}) {
    Night night(Night::SimulatedServers{{1}, {times}});
    const double best = 200 / (1 + 1 / times);
    EXPECT_LE(night.Run(200, 8), best + 2 * times) << times;
    EXPECT_NEAR(night.counts()[1], 200 - best, 0.1 * (200 - best) + 1) << times;
  }
}

TEST(ServerSpeeds, GiveASlowServerNoJobThatTheFastOneWouldEndEarlier) {
  for (int jobs = 20; jobs < 30; ++jobs) {
    Night night(Night::SimulatedServers{{1}, {4}});
    // With ideal shares the last job ends at most one slow job after the mean.
    EXPECT_LE(night.Run(jobs, 8), jobs * 0.8 + 4) << jobs;
  }
}

TEST(ServerSpeeds, LetEqualServersTakeTurnsWhateverTheNoise) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    for (const int outstanding : {1, 3}) {
      Night night(Night::SimulatedServers{{0.2, 1, 0.3, 0.15}, {0.2, 1, 0.3, 0.15}, {0.2, 1, 0.3, 0.15}},
                  seed);
      night.Run(30, outstanding);
      EXPECT_THAT(night.counts(), Each(10)) << seed;
    }
    Night quick(Night::SimulatedServers{{0.001, 1, 0.01, 0.9}, {0.003, 1, 0.02, 0.9}, {0.002, 1, 0, 0.9}},
                seed);
    quick.Run(12, 1);
    EXPECT_THAT(quick.counts(), Each(4)) << seed;
  }
}

TEST(ServerSpeeds, GiveMoreJobsToAServerThatDoesSeveralAtOnce) {
  Night night(Night::SimulatedServers{{1, 6}, {1, 1}});
  EXPECT_LE(night.Run(140, 10), 140 / 7.0 + 4);
  EXPECT_GE(night.counts()[0], 110);
}

TEST(ServerSpeeds, AreNotOfTheFirstJobWhichLoadsThePsf) {
  Night both(Night::SimulatedServers{{0.5, 1, 5}, {0.5, 1, 5}});
  both.Run(200, 8);
  EXPECT_THAT(both.counts(), Each(Ge(95)));
  Night one(Night::SimulatedServers{{0.5, 1, 5}, {0.5, 1, 0}});
  one.Run(200, 8);
  EXPECT_THAT(one.counts(), Each(Ge(60)));
}

TEST(ServerSpeeds, BeginWithDifferentServers) {
  std::set<int> first;
  for (uint32_t seed = 0; seed < 3; ++seed) {
    ServerSpeeds speeds(seed);
    const std::vector<ServerSpeeds::Server> servers = {std::make_shared<int>(), std::make_shared<int>(),
                                                       std::make_shared<int>()};
    first.insert(*speeds.Choose(servers, {0, 1, 2}, At(0)).server);
  }
  EXPECT_EQ(first.size(), 3u);
}

class TwoServers : public ::testing::Test {
 protected:
  ServerSpeeds::Choice Choose(double now) { return speeds_.Choose(servers_, {0, 1}, At(now)); }
  // Chooses the server of the next job, which begins there; returns its index.
  int Begin(double now) {
    const int server = Choose(now).server.value_or(-1);
    if (server >= 0) speeds_.Begin(servers_[static_cast<size_t>(server)], At(now));
    return server;
  }
  void End(int server, double now, Outcome outcome = Outcome::kDone) {
    speeds_.End(servers_[static_cast<size_t>(server)], outcome, {}, At(now));
  }
  // Makes both servers do jobs of these many seconds.
  void Know(double first, double second) {
    double now = 0;
    for (int k = 0; k < 2; ++k) {
      for (const auto& [server, took] : {std::pair(0, first), {1, second}}) {
        speeds_.Begin(servers_[static_cast<size_t>(server)], At(now));
        End(server, now += took);
      }
    }
    now_ = now;
  }

  const std::vector<ServerSpeeds::Server> servers_ = {std::make_shared<int>(), std::make_shared<int>()};
  ServerSpeeds speeds_{0};
  double now_ = 0;
};

TEST_F(TwoServers, GetOneJobEachUntilASpeedIsKnown) {
  EXPECT_EQ(Begin(0), 0);
  EXPECT_EQ(Begin(0), 1);
  const ServerSpeeds::Choice none = Choose(1);
  EXPECT_FALSE(none.server.has_value());
  EXPECT_EQ(SecondsAt(none.again), 10);
  End(1, 2);
  for (int k = 0; k < 5; ++k) EXPECT_EQ(Begin(2), 1) << "the other one may be slow";
}

TEST_F(TwoServers, GetMoreJobsWhereTheFirstOnesTakeLong) {
  for (const double now : {0.0, 10.0, 20.0}) {
    EXPECT_GE(Begin(now), 0);
    EXPECT_GE(Begin(now), 0);
    EXPECT_FALSE(Choose(now).server.has_value());
  }
}

TEST_F(TwoServers, GetNoJobsWhileTheyEndNone) {
  Know(1, 1);
  std::vector<int> jobs(2);
  for (int k = 0; k < 6; ++k) ++jobs[static_cast<size_t>(Begin(now_))];
  EXPECT_THAT(jobs, ElementsAre(3, 3));
  for (double now = now_ + 1; now < now_ + 60; now += 1) {  // server 0 has stopped
    End(1, now);
    const int next = Begin(now);
    if (now > now_ + 8) {
      EXPECT_EQ(next, 1) << now;
    }
  }
}

TEST_F(TwoServers, ThatRefuseAJobAreLeftAloneForAWhile) {
  Know(1, 1);
  EXPECT_EQ(Begin(now_), 0);
  End(0, now_, Outcome::kRefused);
  for (int k = 0; k < 4; ++k) EXPECT_EQ(Begin(now_ + 0.9), 1);
  EXPECT_EQ(Begin(now_ + 1.1), 0);
  End(0, now_ + 1.1, Outcome::kRefused);
  EXPECT_EQ(Begin(now_ + 3), 1) << "longer the second time";
  EXPECT_EQ(*speeds_.Choose(servers_, {0}, At(now_ + 1.2)).server, 0) << "where there is no other";
}

TEST_F(TwoServers, AreTriedAgainAfterALongTime) {
  Know(1, 30);
  EXPECT_EQ(Begin(now_), 0);
  End(0, now_ + 1);
  for (int k = 0; k < 6; ++k) EXPECT_EQ(Begin(now_ + 1), 0);
  EXPECT_EQ(Begin(now_ + 1200), 1) << "it may have become faster";
}

TEST_F(TwoServers, AreForgottenOnceTheyAreNotFound) {
  Know(1, 30);
  EXPECT_EQ(*speeds_.Choose({servers_[0]}, {0}, At(now_)).server, 0);
  EXPECT_EQ(Begin(now_), 1) << "of unknown speed";
}

TEST_F(TwoServers, LearnNothingOfJobsThatFail) {
  for (int k = 0; k < 4; ++k) {
    EXPECT_EQ(Begin(k), k % 2);
    End(k % 2, k, Outcome::kOther);
  }
  EXPECT_EQ(Begin(5), 0);
  EXPECT_EQ(Begin(5), 1);
  EXPECT_FALSE(Choose(5).server.has_value());
}

}  // namespace
}  // namespace spexd::client
