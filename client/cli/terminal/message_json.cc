#include "client/cli/terminal/message_json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "client/cli/terminal/terminal_text.h"

namespace spexd::cli {
namespace {

using Json = nlohmann::ordered_json;
using google::protobuf::FieldDescriptor;

bool Is64Bit(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_INT64 ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_UINT64;
}

bool IsFloat(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_FLOAT ||
         field.cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

void NumberOf(const FieldDescriptor& field, Json& value) {
  if (!value.is_string()) return;
  const std::string text = value.get<std::string>();
  if (IsFloat(field)) {
    value = nullptr;
  } else if (field.cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    value = std::stoll(text);
  } else {
    value = std::stoull(text);
  }
}

// Replaces strings by numbers. Protobuf writes 64-bit integers as strings for readers that have only float64,
// but ours are below 2^53. It also writes NaN and infinities as strings; these become null.
void MakeNumbers(const google::protobuf::Descriptor& message, Json& json) {
  for (int k = 0; k < message.field_count(); ++k) {
    const FieldDescriptor& field = *message.field(k);
    const auto found = json.find(field.name());
    if (found == json.end() || field.is_map()) continue;
    const auto convert = [&field](Json& value) {
      if (Is64Bit(field) || IsFloat(field)) NumberOf(field, value);
      if (field.message_type() != nullptr && value.is_object()) MakeNumbers(*field.message_type(), value);
    };
    if (field.is_repeated()) {
      for (Json& value : *found) convert(value);
    } else {
      convert(*found);
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ToJson(const std::string& address, const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions style;
  style.always_print_primitive_fields = true;
  style.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, style);
  if (!status.ok()) return absl::InternalError(status.ToString());
  Json json = {{"address", address}};
  Json fields = Json::parse(text);
  MakeNumbers(*message.GetDescriptor(), fields);
  json.update(fields);
  const auto replace = nlohmann::json::error_handler_t::replace;
  std::string lines = json.dump(1, ' ', false, replace);
  // JSON may have control characters beyond ASCII, which could control the terminal.
  return ForTerminal(lines) == lines ? lines : json.dump(1, ' ', true, replace);
}

}  // namespace spexd::cli
