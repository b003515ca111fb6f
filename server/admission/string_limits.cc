#include "server/admission/string_limits.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "google/protobuf/descriptor.h"

namespace spexd {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status CheckString(const std::string& path, const std::string& value) {
  if (value.size() > kMaxStringBytes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s has %d bytes, must be at most %d", path, value.size(), kMaxStringBytes));
  }
  if (!HasControlCharacters(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s is \"%s\", must be without control characters", path, ForMessage(value)));
}

absl::Status CheckStringsBelow(const Message& message, const std::string& prefix) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = absl::StrCat(prefix, field->name());
    const bool text = field->type() == FieldDescriptor::TYPE_STRING;
    const bool nested = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    if (!field->is_repeated()) {
      if (text) SPEXD_RETURN_IF_ERROR(CheckString(path, reflection.GetString(message, field)));
      if (nested)
        SPEXD_RETURN_IF_ERROR(
            CheckStringsBelow(reflection.GetMessage(message, field), absl::StrCat(path, ".")));
      continue;
    }
    for (int k = 0; (text || nested) && k < reflection.FieldSize(message, field); ++k) {
      if (text) SPEXD_RETURN_IF_ERROR(CheckString(path, reflection.GetRepeatedString(message, field, k)));
      if (nested)
        SPEXD_RETURN_IF_ERROR(
            CheckStringsBelow(reflection.GetRepeatedMessage(message, field, k), absl::StrCat(path, ".")));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckStrings(const Message& message) { return CheckStringsBelow(message, ""); }

}  // namespace spexd
