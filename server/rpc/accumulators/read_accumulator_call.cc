#include "server/rpc/accumulators/read_accumulator_call.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/digest/crc32c.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/rpc/end_call.h"

namespace spexd {
namespace {

constexpr size_t kPartBytes = size_t{1} << 20;

}  // namespace

absl::StatusOr<ReadAccumulatorCall::Reactor*> ReadAccumulatorCall::Begin(const ServerParts& parts,
                                                                         Begun begun) {
  const std::shared_ptr<ReadAccumulatorCall> call(new ReadAccumulatorCall(parts, std::move(begun)));
  call->time_passed_ = std::make_shared<EventThread::Step>([weak = call->weak_from_this()] {
    if (const auto alive = weak.lock(); alive != nullptr) alive->TimePassed();
  });
  MutexLock lock(&call->mutex_);
  SPEXD_RETURN_IF_ERROR(parts.tasks->Start([call] {
    const absl::Status made = CatchExceptions([&call] { return call->MakeFile(); });
    call->FileMade(made);
  }));
  call->self_ = call;
  return call.get();
}

ReadAccumulatorCall::ReadAccumulatorCall(const ServerParts& parts, Begun begun)
    : parts_(parts),
      context_(begun.context),
      info_(std::move(begun.info)),
      components_(begun.components),
      place_(std::move(begun.place)),
      stall_(parts.watchdog, [this] { parts_.events->Post(time_passed_); }) {}

absl::Status ReadAccumulatorCall::MakeFile() {
  const int64_t bins = info_.grid.count;
  if (bins > 0 && components_ > static_cast<uint32_t>(bins)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("components is %d, must be at most the %d wavelengths", components_, bins));
  }
  // The sums, as much again to solve them or to divide them, and the file.
  constexpr int64_t kCopies = 3;
  constexpr int64_t kLeastBytes = int64_t{1} << 20;
  const bool pca = info_.spec.kind == AccumulatorKind::kPca;
  const int64_t state = pca ? 8 * bins * bins + info_.bytes : info_.bytes;
  const int64_t vectors = pca ? 8 * bins * 3 * std::max<int64_t>(components_, 10) : 0;
  SPEXD_ASSIGN_OR_RETURN(const ByteBudget::Reservation working,
                         parts_.products->Reserve(kLeastBytes + kCopies * state + vectors));
  std::string file;
  {
    SPEXD_ASSIGN_OR_RETURN(const Accumulator accumulator, parts_.accumulators->Read(info_.spec));
    SPEXD_ASSIGN_OR_RETURN(file, accumulator.File(static_cast<int>(components_)));
  }
  SPEXD_ASSIGN_OR_RETURN(memory_, parts_.results->Reserve(static_cast<int64_t>(file.size())));
  file_ = std::move(file);
  return absl::OkStatus();
}

void ReadAccumulatorCall::FileMade(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (!status.ok()) return End(status);
  SendNext();
}

void ReadAccumulatorCall::SendNext() {
  if (sent_ == file_.size()) return End(absl::OkStatus());
  const absl::Status begun = CatchExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::string_view piece = absl::string_view(file_).substr(sent_, kPartBytes);
    crc_ = ExtendCrc32c(crc_, piece);
    sent_ += piece.size();
    part_.set_payload(std::string(piece));
    part_.set_crc32c(crc_);
    part_.set_last(sent_ == file_.size());
  });
  if (!begun.ok()) return End(begun);
  writing_ = true;
  stall_.Arm(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                 std::chrono::duration<double>(parts_.options->stall_seconds)));
  StartWrite(&part_);
}

void ReadAccumulatorCall::OnWriteDone(bool ok) {
  MutexLock lock(&mutex_);
  writing_ = false;
  if (!ok) return End(absl::CancelledError("the client cancelled the call or went away"));
  parts_.metrics->CountSent(static_cast<int64_t>(part_.payload().size()));
  SendNext();
}

void ReadAccumulatorCall::TimePassed() {
  MutexLock lock(&mutex_);
  if (writing_) context_->TryCancel();  // a status would wait behind the piece that the client does not read
}

void ReadAccumulatorCall::End(const absl::Status& status) {
  file_ = std::string();
  memory_ = ByteBudget::Reservation();
  place_.reset();
  Finish(EndCall(status, context_, parts_.metrics));
}

void ReadAccumulatorCall::OnDone() {
  std::shared_ptr<ReadAccumulatorCall> self;
  MutexLock lock(&mutex_);
  self.swap(self_);
}

}  // namespace spexd
