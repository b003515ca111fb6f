#include "server/status/job_board.h"

#include <utility>

namespace spexd {
namespace {

constexpr size_t kMaxMessageBytes = 300;

}  // namespace

JobBoard::Row::Row(JobBoard* board, std::string id, std::string image) : board_(board) {
  MutexLock lock(&board_->mutex_);
  number_ = ++board_->rows_;
  UnderWay& job = board_->under_way_[number_];
  job.id = std::move(id);
  job.image = std::move(image);
  job.since = board_->clock_();
  job.state = "receiving";
}

JobBoard::Row::~Row() {
  MutexLock lock(&board_->mutex_);
  board_->under_way_.erase(number_);
}

void JobBoard::Row::Enter(const std::string& state, int bundles_done, int bundles_total) {
  MutexLock lock(&board_->mutex_);
  UnderWay& job = board_->under_way_[number_];
  job.state = state;
  job.bundles_done = bundles_done;
  job.bundles_total = bundles_total;
}

void JobBoard::Row::End(Outcome outcome) {
  if (outcome.message.size() > kMaxMessageBytes) {
    outcome.message.resize(kMaxMessageBytes);
    outcome.message += " ...";
  }
  MutexLock lock(&board_->mutex_);
  UnderWay& job = board_->under_way_[number_];
  Minute& minute = board_->ThisMinute();
  ++(outcome.code == absl::StatusCode::kOk ? minute.jobs_ok : minute.jobs_failed);
  board_->ended_.push_front({std::move(job.id), std::move(job.image), board_->clock_(), std::move(outcome)});
  if (board_->ended_.size() > kEnded) board_->ended_.pop_back();
  board_->under_way_.erase(number_);
}

int64_t JobBoard::MinuteOf(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::minutes>(time.time_since_epoch()).count();
}

JobBoard::Minute& JobBoard::ThisMinute() {
  const int64_t number = MinuteOf(clock_());
  Minute& minute = minutes_[static_cast<size_t>(number % kMinutes)];
  if (minute.number != number) minute = {.number = number};
  return minute;
}

void JobBoard::CountSpectra(int64_t spectra) {
  MutexLock lock(&mutex_);
  ThisMinute().spectra += spectra;
}

JobBoard::View JobBoard::view() const {
  MutexLock lock(&mutex_);
  View view;
  view.now = clock_();
  for (const auto& [number, job] : under_way_) view.under_way.push_back(job);
  view.ended.assign(ended_.begin(), ended_.end());
  const int64_t first = MinuteOf(view.now) - (kMinutes - 1);
  for (const Minute& minute : minutes_) {
    if (minute.number < first) continue;
    view.spectra[static_cast<size_t>(minute.number - first)] = minute.spectra;
    view.jobs_ok += minute.jobs_ok;
    view.jobs_failed += minute.jobs_failed;
  }
  return view;
}

}  // namespace spexd
