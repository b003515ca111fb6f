// Numbers in the output of every --json are JSON numbers, for readers that do not know the contract.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "client/cli/terminal/message_json.h"
#include "spexd/v1/extraction.pb.h"
#include "spexd/v1/jobs.pb.h"
#include "spexd/v1/registry.pb.h"
#include "tests/client/support/small_frame.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace spexd::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using nlohmann::json;

constexpr uint64_t kLarge = uint64_t{1} << 40;  // exceeds 32 bits

// Sets every field, two elements of lists, and everything inside messages.
void Fill(Message* message) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  for (int k = 0; k < message->GetDescriptor()->field_count(); ++k) {
    const FieldDescriptor* field = message->GetDescriptor()->field(k);
    for (int element = 0; element < (field->is_repeated() ? 2 : 1); ++element) {
      const auto set = [&](auto add, auto one, auto value) {
        field->is_repeated() ? (reflection.*add)(message, field, value)
                             : (reflection.*one)(message, field, value);
      };
      using R = google::protobuf::Reflection;
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_INT32:
          set(&R::AddInt32, &R::SetInt32, -7);
          break;
        case FieldDescriptor::CPPTYPE_UINT32:
          set(&R::AddUInt32, &R::SetUInt32, 7u);
          break;
        case FieldDescriptor::CPPTYPE_INT64:
          set(&R::AddInt64, &R::SetInt64, -static_cast<int64_t>(kLarge));
          break;
        case FieldDescriptor::CPPTYPE_UINT64:
          set(&R::AddUInt64, &R::SetUInt64, kLarge);
          break;
        case FieldDescriptor::CPPTYPE_FLOAT:
          set(&R::AddFloat, &R::SetFloat, 1.5f);
          break;
        case FieldDescriptor::CPPTYPE_DOUBLE:
          set(&R::AddDouble, &R::SetDouble, 1.5);
          break;
        case FieldDescriptor::CPPTYPE_MESSAGE:
          Fill(field->is_repeated() ? reflection.AddMessage(message, field)
                                    : reflection.MutableMessage(message, field));
          break;
        default:
          break;
      }
    }
  }
}

bool IsNumber(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return true;
    default:
      return false;
  }
}

// Expects that every number of the contract is a JSON number; returns how many there are.
int CountNumbers(const google::protobuf::Descriptor& message, const json& object) {
  int numbers = 0;
  for (int k = 0; k < message.field_count(); ++k) {
    const FieldDescriptor& field = *message.field(k);
    if (field.real_containing_oneof() != nullptr) continue;  // only one of them is set
    const json found = object.value(field.name(), json());
    for (const json& value : field.is_repeated() ? found : json::array({found})) {
      if (IsNumber(field)) {
        EXPECT_TRUE(value.is_number()) << field.full_name() << ": " << value;
        ++numbers;
      } else if (field.message_type() != nullptr) {
        numbers += CountNumbers(*field.message_type(), value);
      }
    }
  }
  return numbers;
}

template <typename M>
int NumbersOf() {
  M message;
  Fill(&message);
  const json object = json::parse(cli::ToJson("server:1", message).value());
  EXPECT_EQ(object.at("address"), "server:1");
  return CountNumbers(*M::descriptor(), object);
}

TEST(JsonNumbers, OfEveryMessageThatIsPrintedAreNumbers) {
  EXPECT_GT(NumbersOf<v1::Capabilities>(), 40);
  EXPECT_GT(NumbersOf<v1::PsfInfo>(), 5);
  EXPECT_GT(NumbersOf<v1::ListPsfsResponse>(), 10);
  EXPECT_GT(NumbersOf<v1::ListJobsResponse>(), 20);
}

TEST(JsonNumbers, ThatJsonDoesNotHaveAreNull) {
  v1::Capabilities status;
  status.set_uptime_seconds(std::numeric_limits<double>::quiet_NaN());
  EXPECT_TRUE(json::parse(cli::ToJson("server:1", status).value()).at("uptime_seconds").is_null());
}

// Returns the paths of texts that read as numbers. The hash of a commit may do so by chance.
std::vector<std::string> NumbersAsTexts(const json& value, const std::string& path = "") {
  double number;
  if (value.is_string() && absl::SimpleAtod(value.get<std::string>(), &number)) return {path};
  if (!value.is_structured()) return {};
  std::vector<std::string> found;
  for (const auto& [key, element] : value.items()) {
    if (key == "commit") continue;
    for (const std::string& below : NumbersAsTexts(element, path + "/" + key)) found.push_back(below);
  }
  return found;
}

void ExpectNumbers(const std::string& text, const std::string& of) {
  const json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  ASSERT_FALSE(value.is_discarded()) << of << ": " << text;
  ASSERT_FALSE(value.empty()) << of;
  EXPECT_THAT(NumbersAsTexts(value), IsEmpty()) << of;
}

TEST(JsonNumbers, AreFoundWhereTheyAreTexts) {
  EXPECT_THAT(NumbersAsTexts(json::parse(R"({"a": [1, "2"], "b": {"c": "-3.5e2", "d": "0.1.0"}})")),
              ElementsAre("/a/1", "/b/c"));
}

TEST(JsonNumbers, OfServersAreNumbers) {
  const SmallFrame input(5, 150);
  const TempFolder jobs, results;
  const TestServer server(
      {"--allow-root", input.folder(), "--jobs-dir", jobs.path(), "--device", "cpu", "--threads", "1"});
  ProcessOptions there;
  there.environment = {"SPEXD_SERVER=" + server.address()};
  const auto run = [&there](const std::vector<std::string>& command) {
    const RunResult result = Spex(command, there);
    EXPECT_EQ(result.code, 0) << command[0] << ": " << result.output;
    return result.output;
  };
  const std::string job(absl::StripSuffix(
      run({"submit", "-q", "-i", input.image(), "-p", input.psf(), "--request-id", "night"}), "\n"));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"psf", "load", input.psf()}, {"psf", "list"}, {"status"}, {"jobs"}}) {
    std::vector<std::string> with = command;
    with.push_back("--json");
    ExpectNumbers(run(with), command[0]);
  }
  run({"watch", job, "-q", "-o", results / "frame.fits"});
}

TEST(JsonNumbers, OfNightsLoadsAndBenchmarksAreNumbers) {
  const SmallFrame input(5, 150);
  const TestServer server({"--allow-root", input.folder(), "--device", "cpu", "--threads", "1"});
  const TempFolder folder;
  const std::string file = folder / "a.json";
  WriteBytes(folder / "night.txt", "image psf output expid\n" + input.image() + " " + input.psf() + " " +
                                       (folder / "frame.fits") + " first\n");
  const std::vector<std::string> grid = {"-w", "6618,6662,0.8"};
  for (std::vector<std::string> command :
       {std::vector<std::string>{"night", folder / "night.txt", "--device", "cpu"},
        {"load", "--server", server.address(), "-i", input.image(), "-p", input.psf(), "--by", "upload",
         "--clients", "1", "--frames", "2", "--ceiling-seconds", "0"},
        {"bench", "--device", "cpu", "--threads", "1", "-i", input.image(), "-p", input.psf(), "--repeats",
         "1", "--warmup", "0", "--seconds", "0", "--peak-flops", "1e10", "--peak-bytes", "1e10"}}) {
    command.insert(command.end(), grid.begin(), grid.end());
    command.insert(command.end(), {"--json", file});
    EXPECT_THAT(Spex(command), ExitsWith(0));
    ExpectNumbers(ReadBytes(file), command[0]);
  }
}

}  // namespace
}  // namespace spexd::testing
