#include "tests/fuzz/support/message_mutator.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace spexd::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxElements = 8;
constexpr size_t kMaxGrowth = 256;

// Numbers at and beyond the limits of the readers.
constexpr uint64_t kNumbers[] = {0,
                                 1,
                                 2,
                                 3,
                                 10,
                                 11,
                                 24,
                                 25,
                                 80,
                                 128,
                                 1000,
                                 1024,
                                 60000,
                                 60001,
                                 100000,
                                 1000000,
                                 1000001,
                                 0x7fffffff,
                                 1u << 31,
                                 0xffffffff,
                                 1ull << 32,
                                 1ull << 53,
                                 INT64_MAX,
                                 UINT64_MAX,
                                 static_cast<uint64_t>(-10),
                                 static_cast<uint64_t>(-11)};
constexpr double kReals[] = {0,
                             1,
                             -1,
                             0.8,
                             0.05,
                             1e-300,
                             1e-9,
                             3600,
                             5760,
                             7620,
                             9800,
                             1e6,
                             1e15,
                             1e16,
                             1e300,
                             -0.0,
                             5e-324,
                             std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN()};
constexpr const char* kTexts[] = {"",
                                  "/",
                                  "/a/../b",
                                  "/etc/passwd",
                                  "relative",
                                  "http://a/b",
                                  "/a[1]",
                                  "/\xc3\xa9",
                                  "\x1b[31m",
                                  "two\nlines",
                                  "sha256:0",
                                  "unix:",
                                  ("\xc2\x9b"
                                   "0m")};

template <typename T, size_t N>
T OneOf(Random& random, const T (&values)[N]) {
  return values[Below(random, N)];
}

uint64_t Number(uint64_t before, Random& random) {
  switch (random() % 4) {
    case 0:
      return before + random() % 3 - 1;
    case 1:
      return before ^ (uint64_t{1} << random() % 64);
    default:
      return OneOf(random, kNumbers);
  }
}

double Real(double before, Random& random) {
  switch (random() % 4) {
    case 0:
      return before * 2;
    case 1:
      return before + (random() % 2 == 0 ? 1 : -1);
    default:
      return OneOf(random, kReals);
  }
}

std::string Bytes(std::string before, Random& random) {
  if (random() % 16 == 0) return std::string(1024 + random() % 2, 'x');
  ChangeBytes(&before, before.size() + random() % kMaxGrowth);
  return before;
}

std::string Text(const std::string& before, Random& random) {
  if (random() % 2 == 0) return OneOf(random, kTexts);
  std::string text = Bytes(before, random);
  for (char& c : text) c = static_cast<char>(c & 0x7f);
  return text;
}

std::string Any(const FieldDescriptor& field, const std::string& before, Random& random) {
  return field.type() == FieldDescriptor::TYPE_STRING ? Text(before, random) : Bytes(before, random);
}

void SetOne(Message* message, const FieldDescriptor* field, Random& random) {
  const Reflection& fields = *message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return fields.SetInt32(
          message, field,
          static_cast<int32_t>(Number(static_cast<uint64_t>(fields.GetInt32(*message, field)), random)));
    case FieldDescriptor::CPPTYPE_UINT32:
      return fields.SetUInt32(message, field,
                              static_cast<uint32_t>(Number(fields.GetUInt32(*message, field), random)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return fields.SetUInt64(message, field, Number(fields.GetUInt64(*message, field), random));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return fields.SetDouble(message, field, Real(fields.GetDouble(*message, field), random));
    case FieldDescriptor::CPPTYPE_BOOL:
      return fields.SetBool(message, field, random() % 2 == 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      return fields.SetEnumValue(message, field, static_cast<int>(random() % 8));
    case FieldDescriptor::CPPTYPE_STRING:
      return fields.SetString(message, field, Any(*field, fields.GetString(*message, field), random));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ChangeMessage(fields.MutableMessage(message, field), random);
    default:
      return;  // no field of the API has another type
  }
}

void Add(Message* message, const FieldDescriptor* field, Random& random) {
  const Reflection& fields = *message->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT64:
      return fields.AddUInt64(message, field, OneOf(random, kNumbers));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return fields.AddDouble(message, field, OneOf(random, kReals));
    case FieldDescriptor::CPPTYPE_STRING:
      return fields.AddString(message, field,
                              random() % 2 == 0 ? std::string(80, ' ') : Any(*field, "", random));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      fields.AddMessage(message, field);
      return;
    default:
      return;
  }
}

void ChangeRepeated(Message* message, const FieldDescriptor* field, Random& random) {
  const Reflection& fields = *message->GetReflection();
  const int size = fields.FieldSize(*message, field);
  if (size > 0 && (size >= kMaxElements || random() % 3 == 0)) return fields.RemoveLast(message, field);
  if (size > 0 && field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && random() % 2 == 0) {
    const int at = static_cast<int>(Below(random, static_cast<size_t>(size)));
    const std::string before = fields.GetRepeatedString(*message, field, at);
    return fields.SetRepeatedString(message, field, at, Any(*field, before, random));
  }
  Add(message, field, random);
}

// Returns a message in the field, which must be set; null if it holds none.
Message* Within(Message* message, const FieldDescriptor* field, Random& random) {
  const Reflection& fields = *message->GetReflection();
  if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) return nullptr;
  if (!field->is_repeated()) return fields.MutableMessage(message, field);
  const auto size = static_cast<size_t>(fields.FieldSize(*message, field));
  return fields.MutableRepeatedMessage(message, field, static_cast<int>(Below(random, size)));
}

}  // namespace

void ChangeMessage(Message* message, Random& random) {
  std::vector<const FieldDescriptor*> set;
  message->GetReflection()->ListFields(*message, &set);
  if (!set.empty() && random() % 4 != 0) {
    Message* const within = Within(message, set[Below(random, set.size())], random);
    if (within != nullptr) return ChangeMessage(within, random);
  }
  const auto count = static_cast<size_t>(message->GetDescriptor()->field_count());
  if (count == 0) return;
  const FieldDescriptor* const field =
      message->GetDescriptor()->field(static_cast<int>(Below(random, count)));
  if (random() % 8 == 0) return message->GetReflection()->ClearField(message, field);
  if (field->is_repeated()) return ChangeRepeated(message, field, random);
  SetOne(message, field, random);
}

}  // namespace spexd::fuzz
