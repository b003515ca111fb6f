// The messages of a Submit call in one file, each preceded by its length.
#ifndef SPEXD_TESTS_FUZZ_SUPPORT_SUBMISSION_H_
#define SPEXD_TESTS_FUZZ_SUPPORT_SUBMISSION_H_

#include <string>
#include <vector>

#include "spexd/v1/jobs.pb.h"

namespace spexd::fuzz {

// Returns the messages that can be read.
std::vector<v1::SubmitRequest> MessagesOf(const std::string& bytes);
std::string BytesOf(const std::vector<v1::SubmitRequest>& messages);

}  // namespace spexd::fuzz

#endif  // SPEXD_TESTS_FUZZ_SUPPORT_SUBMISSION_H_
