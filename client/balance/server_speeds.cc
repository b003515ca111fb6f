#include "client/balance/server_speeds.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace spexd::client {
namespace {

// The least weight of the last job in the mean. The first jobs have equal weights.
constexpr double kWeightOfTheLast = 0.1;
constexpr int kDoublingsOfAway = 6;

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

double ServerSpeeds::SecondsPerJob(const Record& record, double rest, Time now) {
  const double since = std::max(Seconds(now - record.last), 0.0);
  const double seconds = record.done > 1 ? record.seconds : rest * record.first;
  if (record.outstanding == 0) {
    const double half_life =
        record.done > 1 ? kHalfLifeSeconds : std::min(kHalfLifeSeconds, kHalfLifeOfFirst * record.first);
    return half_life > 0 ? seconds * std::exp2(-since / half_life) : 0;
  }
  // If the server has become slower, the outstanding jobs show it before they end.
  return std::max(seconds, since / record.outstanding);
}

double ServerSpeeds::RestOfFirst() const {
  const Record* fastest = nullptr;
  for (const auto& [server, record] : records_) {
    if (record.done > 1 && (fastest == nullptr || record.seconds < fastest->seconds)) fastest = &record;
  }
  return fastest == nullptr || fastest->seconds >= fastest->first ? 1 : fastest->seconds / fastest->first;
}

void ServerSpeeds::Forget(const std::vector<Server>& servers) {
  std::erase_if(records_, [&servers](const auto& entry) {
    return entry.second.outstanding == 0 &&
           std::find(servers.begin(), servers.end(), entry.first) == servers.end();
  });
}

int ServerSpeeds::LeastRecentlyChosen(const std::vector<Server>& servers, const std::vector<int>& of) {
  const auto count = static_cast<uint32_t>(servers.size());
  const auto order = [&](int server) {
    const uint32_t position = (static_cast<uint32_t>(server) + count - first_ % count) % count;
    return std::pair(records_[servers[static_cast<size_t>(server)]].chosen, position);
  };
  return *std::min_element(of.begin(), of.end(), [&order](int a, int b) { return order(a) < order(b); });
}

std::optional<int> ServerSpeeds::ChooseFastest(const std::vector<Server>& servers,
                                               std::vector<Candidate> candidates) {
  if (candidates.empty()) return std::nullopt;
  const double least =
      std::min_element(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
        return a.seconds < b.seconds;
      })->seconds;
  for (Candidate& candidate : candidates) {
    if (candidate.seconds <= std::max(kEqualFactor * least, least + kEqualSeconds)) candidate.seconds = least;
  }
  const auto delay = [](const Candidate& candidate) {
    return std::pair((candidate.outstanding + 1) * candidate.seconds, candidate.outstanding);
  };
  const Candidate best = *std::min_element(candidates.begin(), candidates.end(),
                                           [&](const auto& a, const auto& b) { return delay(a) < delay(b); });
  std::vector<int> equal;  // servers as good as `best`; one more outstanding job does not matter
  for (const Candidate& candidate : candidates) {
    if (candidate.seconds == best.seconds && candidate.outstanding <= best.outstanding + 1)
      equal.push_back(candidate.server);
  }
  return LeastRecentlyChosen(servers, equal);
}

ServerSpeeds::Choice ServerSpeeds::Choose(const std::vector<Server>& servers, const std::vector<int>& ready,
                                          Time now) {
  Forget(servers);
  const auto record = [&](int server) -> const Record& {
    return records_[servers[static_cast<size_t>(server)]];
  };
  std::vector<int> open;  // servers that have refused no job lately
  std::copy_if(ready.begin(), ready.end(), std::back_inserter(open),
               [&](int server) { return record(server).away <= now; });
  if (open.empty()) open = ready;

  std::vector<int> unknown;
  std::copy_if(open.begin(), open.end(), std::back_inserter(unknown),
               [&](int server) { return record(server).done == 0 && record(server).outstanding == 0; });
  if (!unknown.empty()) return {LeastRecentlyChosen(servers, unknown)};

  Choice choice;
  const double rest = RestOfFirst();
  std::vector<Candidate> candidates;
  for (const int server : open) {
    const Record& known = record(server);
    const Time patience = known.last + known.outstanding * kFirstJobPatience;
    if (open.size() > 1 && known.done == 0 && now < patience) {
      choice.again = std::min(choice.again, patience);
    } else {
      candidates.push_back({server, known.outstanding, SecondsPerJob(known, rest, now)});
    }
  }
  choice.server = ChooseFastest(servers, std::move(candidates));
  return choice;
}

void ServerSpeeds::Begin(const Server& server, Time now) {
  Record& record = records_[server];
  if (record.outstanding++ == 0) record.last = now;
  record.chosen = ++choices_;
}

void ServerSpeeds::End(const Server& server, Outcome outcome, std::optional<std::chrono::milliseconds> delay,
                       Time now) {
  Record& record = records_[server];
  --record.outstanding;
  if (outcome == Outcome::kRefused) {
    const auto doubled = kMinAway * (1 << std::min(record.refusals++, kDoublingsOfAway));
    record.away = now + std::clamp(delay.value_or(doubled), kMinAway, kMaxAway);
    return;
  }
  if (outcome == Outcome::kDone) {
    const double took = Seconds(now - record.last);
    if (++record.done == 1) {
      record.first = took;
    } else {
      record.seconds += std::max(kWeightOfTheLast, 1.0 / (record.done - 1)) * (took - record.seconds);
    }
  }
  record.refusals = 0;
  record.away = {};
  record.last = now;
}

}  // namespace spexd::client
