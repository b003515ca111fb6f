#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <new>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/base/array.h"
#include "core/base/digest/crc32c.h"
#include "core/base/digest/sha256.h"
#include "core/base/machine/group_limits.h"
#include "core/base/memory/huge_pages.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/guard.h"
#include "core/base/threads/mutex.h"
#include "core/base/trace_context.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd {
namespace {

TEST(Array, KeepsTheLastIndexFastest) {
  Array<int, 3> array({2, 3, 4});
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) array(i, j, k) = 100 * i + 10 * j + k;
    }
  }
  EXPECT_EQ(array.size(), 24);
  EXPECT_EQ(array.shape(1), 3);
  EXPECT_EQ(array.data()[(1 * 3 + 2) * 4 + 3], 123);
  EXPECT_THAT(array.Row(1, 2), ElementsAre(120, 121, 122, 123));
}

TEST(Array, AssignGivesANewShapeAndFill) {
  Array<float, 2> array({4, 4}, 1.0f);
  array.Assign({2, 3}, 7.0f);
  EXPECT_EQ(array.shape(), (Array<float, 2>::Shape{2, 3}));
  EXPECT_EQ(array.size(), 6);
  EXPECT_THAT(array.flat(), Each(7.0f));
}

TEST(Array, IsEmptyWithoutElements) {
  EXPECT_TRUE((Array<double, 2>().empty()));
  EXPECT_TRUE((Array<double, 2>({5, 0}).empty()));
  EXPECT_EQ((Array<double, 2>({5, 0}).shape(0)), 5);
}

TEST(Array, ComparesShapeAndValues) {
  EXPECT_EQ((Array<int, 2>({2, 3}, 1)), (Array<int, 2>({2, 3}, 1)));
  EXPECT_FALSE((Array<int, 2>({2, 3}, 1) == Array<int, 2>({3, 2}, 1)));
  EXPECT_FALSE((Array<int, 2>({2, 3}, 1) == Array<int, 2>({2, 3}, 2)));
}

TEST(Array, FillsAlsoWhatLiesInHugePages) {
  Array<float, 2> array({2100, 1024}, 3.0f);  // 8.2 MiB
  EXPECT_EQ(std::count(array.flat().begin(), array.flat().end(), 3.0f), array.size());
  array.Assign({4200, 1024}, 4.0f);
  EXPECT_EQ(std::count(array.flat().begin(), array.flat().end(), 4.0f), array.size());
}

// Makes a folder like that of the control groups; each group whose text is not empty gets a limit.
class GroupLimits : public ::testing::Test {
 protected:
  void Limit(const std::string& group, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(folder_ / group);
    testing::WriteBytes(folder_ / group + "/" + file, text);
  }
  std::optional<double> Of(const std::string& file, const std::string& membership) {
    return GroupLimit(file, membership, folder_.path());
  }
  testing::TempFolder folder_;
};

TEST_F(GroupLimits, AreTheLowestOfAGroupAndOfThoseThatContainIt) {
  Limit("pods", "memory.max", "8000000000\n");
  Limit("pods/spexd", "memory.max", "16000000000\n");
  Limit("pods/spexd/part", "memory.max", "max\n");
  Limit("others", "memory.max", "1000\n");
  EXPECT_EQ(Of("memory.max", "0::/pods/spexd/part\n"), 8e9);
  Limit("pods/spexd", "memory.max", "4000000000\n");
  EXPECT_EQ(Of("memory.max", "5:cpu:/others\n0::/pods/spexd/part\n"), 4e9);
}

TEST_F(GroupLimits, OfAContainerAreInTheFolderItself) {
  Limit("", "memory.max", "2147483648\n");
  Limit("", "cpu.max", "150000 100000\n");
  EXPECT_EQ(Of("memory.max", "0::/\n"), 2147483648);
  EXPECT_EQ(Of("cpu.max", "0::/\n"), 1.5);
}

TEST_F(GroupLimits, AreNoneWhereNothingIsLimited) {
  Limit("free", "memory.max", "max\n");
  Limit("free", "cpu.max", "max 100000\n");
  EXPECT_EQ(Of("memory.max", "0::/free\n"), std::nullopt);
  EXPECT_EQ(Of("cpu.max", "0::/free\n"), std::nullopt);
  EXPECT_EQ(Of("memory.max", "0::/no/such/group\n"), std::nullopt);
  EXPECT_EQ(Of("memory.max", "4:memory:/free\n"), std::nullopt);  // version 1
  EXPECT_EQ(Of("memory.max", ""), std::nullopt);
}

TEST(HugePages, AreAskedForAtAnyAddressAndSize) {
  std::vector<char> memory((size_t{9} << 20) + 5, 'x');
  AdviseHugePages(nullptr, 0);
  AdviseHugePages(memory.data(), 1);
  AdviseHugePages(memory.data() + 3, memory.size() - 3);
  EXPECT_EQ(std::count(memory.begin(), memory.end(), 'x'), static_cast<int64_t>(memory.size()));
}

TEST(Sha256, MatchesTheStandardsExamples) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, TakesBytesInPieces) {
  Sha256 hash;
  hash.Update("ab");
  hash.Update("");
  hash.Update("c");
  EXPECT_EQ(hash.Hex(), Sha256Hex("abc"));
}

TEST(Crc32c, MatchesThePublishedValues) {
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

TEST(Crc32c, TakesBytesInPiecesOfAnySize) {
  std::string text;
  for (int k = 0; k < 1000; ++k) text += static_cast<char>(k * 37 % 256);
  for (const size_t size : {1, 3, 8, 13, 999}) {
    uint32_t crc = 0;
    for (size_t k = 0; k < text.size(); k += size)
      crc = ExtendCrc32c(crc, absl::string_view(text).substr(k, size));
    EXPECT_EQ(crc, Crc32c(text)) << size;
  }
}

TEST(Array, IsZeroWhereItTakesUsedMemoryAgain) {
  Array<float, 1> array({1000}, 7);
  array.Assign({500});
  EXPECT_THAT(array.flat(), Each(0));
  array.Assign({900});
  EXPECT_THAT(array.flat(), Each(0));
  array.Assign({2000}, -0.0f);
  EXPECT_TRUE(std::signbit(array(1999)));
  Array<float, 1> large({9 << 20});  // the kernel provides this memory
  EXPECT_EQ(large(0), 0);
  EXPECT_EQ(large((9 << 20) - 1), 0);
}

TEST(Array, CopiesAndLeavesNothingWhereItWasMovedFrom) {
  const int32_t values[] = {1, 2, 3, 4, 5, 6};
  Array<int32_t, 2> array;
  array.AssignFrom({2, 3}, values);
  EXPECT_EQ(array(1, 0), 4);
  Array<int32_t, 2> copy = array;
  EXPECT_EQ(copy, array);
  const Array<int32_t, 2> moved = std::move(copy);
  EXPECT_EQ(moved, array);
  EXPECT_EQ(copy.shape(), (Array<int32_t, 2>::Shape{0, 0}));  // NOLINT(bugprone-use-after-move)
  array = moved;
  array.Reshape({1, 2});
  EXPECT_EQ(array.size(), 2);
}

// Computes the checksum bit by bit, as its polynomial defines it.
uint32_t Crc32cByDefinition(uint32_t crc, absl::string_view bytes) {
  crc = ~crc;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

TEST(Crc32c, FollowsItsDefinitionAtEachLength) {
  std::string text;
  for (int k = 0; k < 20000; ++k) text += static_cast<char>((k * k + k / 7) % 251);
  for (size_t size = 0; size < text.size(); size += size < 40 ? 1 : 509) {
    const absl::string_view part = absl::string_view(text).substr(size % 11, size);
    EXPECT_EQ(ExtendCrc32c(0x12345678, part), Crc32cByDefinition(0x12345678, part)) << size;
  }
}

TEST(Mutex, LetsOneThreadInAtATime) {
  Mutex mutex;
  int64_t count = 0;
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1000; ++n) {
        MutexLock lock(&mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4000);
}

TEST(CondVar, WakesAThreadThatWaits) {
  Mutex mutex;
  CondVar changed;
  bool asked = false, answered = false;
  std::thread thread([&] {
    MutexLock lock(&mutex);
    while (!asked) changed.Wait(&mutex);
    answered = true;
    changed.NotifyAll();
  });
  {
    MutexLock lock(&mutex);
    asked = true;
    changed.NotifyAll();
    while (!answered) changed.Wait(&mutex);
    EXPECT_TRUE(answered);
  }
  thread.join();
}

TEST(CondVar, GivesUpAtItsDeadline) {
  Mutex mutex;
  CondVar never;
  MutexLock lock(&mutex);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
  while (never.WaitUntil(&mutex, deadline)) {
  }
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
}

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  SPEXD_ASSIGN_OR_RETURN(const int half, Half(value));
  return Half(half);
}

absl::Status CheckQuarter(int value) {
  SPEXD_RETURN_IF_ERROR(Quarter(value).status());
  return absl::OkStatus();
}

TEST(StatusMacros, PassOnTheFirstError) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(3).status().message(), "odd");
  EXPECT_TRUE(CheckQuarter(12).ok());
  EXPECT_EQ(CheckQuarter(6).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Deadline, RequestsAStopWhenItsTimeComes) {
  std::stop_source stop;
  const Deadline deadline(stop, std::optional(Deadline::Clock::now() + std::chrono::milliseconds(1)));
  std::atomic<bool> stopped = false;
  const std::stop_callback callback(stop.get_token(), [&] {
    stopped = true;
    stopped.notify_all();
  });
  stopped.wait(false);
  EXPECT_TRUE(deadline.passed());
}

TEST(Deadline, GoesBeforeItsTimeWithoutAStop) {
  std::stop_source stop;
  {
    const Deadline deadline(stop, std::optional(std::chrono::system_clock::now() + std::chrono::hours(1)));
    EXPECT_FALSE(deadline.passed());
    const Deadline never(stop, std::optional<Deadline::Clock::time_point>());
    EXPECT_FALSE(never.passed());
    const Deadline far(stop, std::optional(std::chrono::system_clock::time_point::max()));
    EXPECT_FALSE(far.passed());
  }
  EXPECT_FALSE(stop.stop_requested());
}

TEST(Deadline, IsOneReasonAmongOthersForAStop) {
  std::stop_source job, client, server;
  const ForwardStop one(client.get_token(), job), other(server.get_token(), job);
  EXPECT_FALSE(job.stop_requested());
  server.request_stop();
  EXPECT_TRUE(job.stop_requested());
  EXPECT_FALSE(client.stop_requested());
}

TEST(Deadline, WakesThoseWhoWaitForACondition) {
  std::stop_source stop;
  Mutex mutex;
  CondVar condition;
  std::thread waiter([&] {
    const WakeOnStop wake(stop.get_token(), &mutex, &condition);
    MutexLock lock(&mutex);
    while (!stop.stop_requested()) condition.Wait(&mutex);
  });
  stop.request_stop();
  waiter.join();
  EXPECT_TRUE(SleepUnlessStopped(std::chrono::hours(1), stop.get_token()));
  EXPECT_FALSE(SleepUnlessStopped(std::chrono::nanoseconds(1), {}));
}

TEST(Text, IsUtf8OrNot) {
  for (const char* good : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(IsUtf8(good)) << good;
  EXPECT_TRUE(IsUtf8(absl::string_view("\0", 1)));
  for (const char* bad : {"\xff", "\x80", "\xc3", "\xc3(", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82"})
    EXPECT_FALSE(IsUtf8(bad)) << absl::CHexEscape(bad);
}

TEST(Text, IsCutBetweenCharacters) {
  const std::string text =
      "a\xe2\x82\xac"
      "b";
  EXPECT_EQ(CutUtf8(text, 9), text);
  EXPECT_EQ(CutUtf8(text, 4), "a\xe2\x82\xac");
  EXPECT_EQ(CutUtf8(text, 3), "a");
  EXPECT_EQ(CutUtf8(text, 2), "a");
  EXPECT_EQ(CutUtf8(text, 0), "");
}

TEST(Text, HasControlCharactersOrNot) {
  // These characters are next to the control characters U+0080 to U+009F, U+2028 to U+202E and U+2066 to
  // U+2069.
  for (const char* good : {"", "a b~", "\xc3\xa9", "\xc2\xa0", "\xe2\x80\x94", "\xe2\x80\xa7", "\xe2\x80\xaf",
                           "\xe2\x81\xa5", "\xe2\x81\xaa", "\xc3\x80", "\xe2\x80"})
    EXPECT_FALSE(HasControlCharacters(good)) << good;
  for (const char* bad :
       {"a\nb", "\x1b[31m", "\x7f",
        "\xc2\x9b"
        "31m",
        "\t", "\xc2\x80", "\xc2\x9f", "a\xe2\x80\xa8", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9"})
    EXPECT_TRUE(HasControlCharacters(bad)) << absl::CHexEscape(bad);
  EXPECT_TRUE(HasControlCharacters(absl::string_view("\0", 1)));
}

TEST(Text, HasControlCharactersEscapedButForThoseToKeep) {
  const std::string line = "r\xc3\xa9sum\xc3\xa9 \"\\\" \xe2\x80\x94";
  EXPECT_EQ(EscapeControlCharacters(line), line);
  EXPECT_EQ(EscapeControlCharacters("a\tb\n\x1b[0m\x7f"), "a\\tb\\n\\033[0m\\177");
  EXPECT_EQ(EscapeControlCharacters("a\tb\n\x1b[0m", "\n\t"), "a\tb\n\\033[0m");
  EXPECT_EQ(EscapeControlCharacters("\xc2\x9b"
                                    "31m\xe2\x80\xae"),
            "\\302\\23331m\\342\\200\\256");
  EXPECT_EQ(EscapeControlCharacters(absl::string_view("\0", 1)), "\\000");
  EXPECT_EQ(EscapeControlCharacters("\xc2"), "\xc2") << "half a character";
}

TEST(Text, OfAMessageIsShortAndHarmless) {
  EXPECT_EQ(ForMessage("r\xc3\xa9sum\xc3\xa9.fits"), "r\xc3\xa9sum\xc3\xa9.fits");
  EXPECT_EQ(ForMessage("\x1b[31m\n\"x\""), "\\033[31m\\n\\\"x\\\"");
  EXPECT_EQ(ForMessage("\xc2\x85\xe2\x80\xa8"), "\\302\\205\\342\\200\\250");
  EXPECT_EQ(ForMessage(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(ForMessage(std::string(201, 'x')), std::string(200, 'x') + "...");
}

TEST(Text, OfHelpIsWrappedBelowItsDescriptions) {
  const std::string words = "one two three four five six seven eight nine ten eleven";
  const std::string margin(30, ' ');
  EXPECT_EQ(WrappedHelp("Title\n\n\n  --flag FILE                 " + words + "\n"),
            "Title\n\n  --flag FILE                 one two three four five six seven eight nine ten\n" +
                margin + "eleven\n");
  EXPECT_EQ(WrappedHelp(words + " " + words + "\n"),
            words + " one two three four five\nsix seven eight nine ten eleven\n");
  EXPECT_EQ(WrappedHelp(std::string(100, 'x')), std::string(100, 'x') + "\n");
}

TEST(Text, IsTakenForTheWordThatWasMeant) {
  const std::vector<std::string> words = {"--psf", "--psferr", "--wavelength", "--output", "--output-dir"};
  EXPECT_EQ(MeantWord("--psff", words), "--psf");
  EXPECT_EQ(MeantWord("--wavelegnth", words), "--wavelength");
  EXPECT_EQ(MeantWord("--wave", words), "--wavelength");
  EXPECT_EQ(MeantWord("--out", words), "--output");
  EXPECT_EQ(MeantWord("--output-folder", words), "");
  EXPECT_EQ(MeantWord("", words), "");
}

constexpr char kTraceparent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(Trace, IsReadFromATraceparent) {
  const TraceContext trace = ParseTraceparent(kTraceparent);
  EXPECT_EQ(trace.trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(trace.span_id, "b7ad6b7169203331");
  EXPECT_EQ(SentTraceparent(kTraceparent), kTraceparent);
}

TEST(Trace, OfALaterVersionIsReadAndSentOnAsVersion0) {
  const std::string later = "cc" + std::string(kTraceparent).substr(2);
  for (const std::string& header : {later, later + "-", later + "-what\ncomes then"}) {
    EXPECT_EQ(ParseTraceparent(header).span_id, "b7ad6b7169203331") << header;
    EXPECT_EQ(SentTraceparent(header), kTraceparent) << header;
  }
}

TEST(Trace, IsNoneWhereTheTraceparentIsNotValid) {
  const std::string good = kTraceparent;
  std::vector<std::string> wrong = {"",
                                    "00",
                                    good + "-",
                                    good + "-00",
                                    good + "0",
                                    good.substr(0, 54),
                                    "\n" + good,
                                    "ff" + good.substr(2),
                                    "cc" + good.substr(2) + "x",
                                    std::string(100000, '0'),
                                    "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                                    "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                    "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"};
  for (size_t k = 0; k < good.size(); ++k) {
    wrong.push_back(good);
    wrong.back()[k] = 'g';
  }
  for (const std::string& header : wrong) {
    EXPECT_EQ(ParseTraceparent(header).trace_id + ParseTraceparent(header).span_id, "") << header;
    EXPECT_EQ(SentTraceparent(header), "") << header;
  }
}

TEST(Guard, TurnsExceptionsIntoStatuses) {
  const auto thrown = [](auto&& error) { return CatchExceptions([&]() -> absl::Status { throw error; }); };
  EXPECT_EQ(thrown(std::bad_alloc()), absl::ResourceExhaustedError("out of memory"));
  EXPECT_EQ(thrown(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(thrown(std::runtime_error("x")), absl::InternalError("internal error: x"));
  EXPECT_EQ(thrown(3).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(CatchExceptions([] { return absl::StatusOr<int>(4); }).value(), 4);
}

}  // namespace
}  // namespace spexd
