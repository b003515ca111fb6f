#include "server/extract_stream.h"

#include <utility>

namespace spexd {

void ExtractStream::Note(Result* result, bool ok) {
  MutexLock lock(&mutex_);
  *result = ok ? Result::kOk : Result::kFailed;
  changed_.NotifyAll();
}

bool ExtractStream::WaitFor(Result* result) {
  MutexLock lock(&mutex_);
  while (*result == Result::kPending) changed_.Wait(&mutex_);
  return std::exchange(*result, Result::kPending) == Result::kOk;
}

bool ExtractStream::Read(v1::ExtractRequest* message) {
  StartRead(message);
  return WaitFor(&read_);
}

bool ExtractStream::Write(const v1::ExtractEvent& event) {
  StartWrite(&event);
  return WaitFor(&written_);
}

void ExtractStream::WaitUntilDone() { WaitFor(&done_); }

}  // namespace spexd
