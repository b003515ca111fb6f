// Changes to protobuf messages: fields set, cleared and changed, in the message and those within it.
#ifndef SPEXD_TESTS_FUZZ_SUPPORT_MESSAGE_MUTATOR_H_
#define SPEXD_TESTS_FUZZ_SUPPORT_MESSAGE_MUTATOR_H_

#include "google/protobuf/message.h"
#include "tests/fuzz/support/random.h"

namespace spexd::fuzz {

// Changes one field. Text stays UTF-8, without which a message would not be read at all.
void ChangeMessage(google::protobuf::Message* message, Random& random);

}  // namespace spexd::fuzz

#endif  // SPEXD_TESTS_FUZZ_SUPPORT_MESSAGE_MUTATOR_H_
