// Changes Submit calls: fields of messages, whole messages, or any bytes.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/support/message_mutator.h"
#include "tests/fuzz/support/random.h"
#include "tests/fuzz/support/submission.h"

namespace spexd::fuzz {
namespace {

void ChangeMessages(std::vector<v1::SubmitRequest>* messages, Random& random) {
  if (messages->empty()) messages->emplace_back().mutable_header();
  const size_t at = Below(random, messages->size());
  const auto position = messages->begin() + static_cast<int64_t>(at);
  switch (random() % 16) {
    case 0:
      messages->erase(position);
      return;
    case 1:
      messages->insert(position, v1::SubmitRequest(*position));
      return;
    case 2:
      std::swap(*position, (*messages)[Below(random, messages->size())]);
      return;
    default:
      // The header has most of the fields, so it is chosen most often.
      ChangeMessage(&(*messages)[random() % 4 == 0 ? at : 0], random);
  }
}

std::string Changed(std::string bytes, size_t most, Random& random) {
  if (random() % 16 == 0) {
    ChangeBytes(&bytes, most);
    return bytes;
  }
  std::vector<v1::SubmitRequest> messages = MessagesOf(bytes);
  for (int changes = 1 << random() % 3; changes > 0; --changes) ChangeMessages(&messages, random);
  return BytesOf(messages);
}

}  // namespace
}  // namespace spexd::fuzz

// libFuzzer calls this to make its next input.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  spexd::fuzz::Random random(seed);
  std::string bytes = spexd::fuzz::Changed(std::string(reinterpret_cast<char*>(data), size), most, random);
  bytes.resize(std::min(bytes.size(), most));
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}
