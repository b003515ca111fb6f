// Changes protobuf messages: sets, clears and changes fields of the message and of those within it.
#ifndef SPEXD_TESTS_FUZZ_SUPPORT_MESSAGE_MUTATOR_H_
#define SPEXD_TESTS_FUZZ_SUPPORT_MESSAGE_MUTATOR_H_

#include "google/protobuf/message.h"
#include "tests/fuzz/support/random.h"

namespace spexd::fuzz {

// Changes one field. Text stays UTF-8, because a message with other text would not be parsed at all.
void ChangeMessage(google::protobuf::Message* message, Random& random);

}  // namespace spexd::fuzz

#endif  // SPEXD_TESTS_FUZZ_SUPPORT_MESSAGE_MUTATOR_H_
