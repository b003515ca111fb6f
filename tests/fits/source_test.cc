#include "core/fits/hdu/source.h"

#include <fcntl.h>
#include <zlib.h>

#include <filesystem>

#include "core/base/digest/sha256.h"
#include "core/base/file_descriptor.h"
#include "tests/fits/samples.h"
#include "tests/support/matchers.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {
namespace {

std::string Gzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

void ExpectError(const absl::StatusOr<Source>& source, absl::StatusCode code, const std::string& text) {
  EXPECT_EQ(source.status().code(), code) << source.status();
  EXPECT_THAT(std::string(source.status().message()), HasSubstr(text));
}

TEST(Source, ReadsAFileWhole) {
  const TempFolder folder;
  const std::string bytes = "SIMPLE" + std::string(100000, 'x');
  WriteBytes((folder / "a[b].fits"), bytes);  // a file of exactly that name is not read as an extended name
  const absl::StatusOr<Source> source = Source::FromFile(folder / "a[b].fits");
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(std::string(source->bytes()), bytes);
  EXPECT_EQ(source->content_hash(), Sha256Hex(bytes));
  EXPECT_EQ(source->name(), (folder / "a[b].fits"));
}

TEST(Source, ReadsAnOpenFileByAnyNumberOfThreads) {
  const TempFolder folder;
  std::string bytes((size_t{5} << 20) + 17, '\0');
  for (size_t k = 0; k < bytes.size(); ++k) bytes[k] = static_cast<char>(k % 251);
  WriteBytes((folder / "x"), bytes);
  const FileDescriptor file(open((folder / "x").c_str(), O_RDONLY | O_CLOEXEC));
  const auto size = static_cast<int64_t>(bytes.size());
  for (const int threads : {1, 3, 100}) {
    const absl::StatusOr<Source> source = Source::FromOpenFile("x", file.get(), size, {.threads = threads});
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_TRUE(source->bytes() == bytes) << threads;
  }
  ExpectError(Source::FromOpenFile("x", file.get(), size + 1, {.threads = 3}),
              absl::StatusCode::kInvalidArgument, "x: became shorter while it was read");
  ExpectError(Source::FromOpenFile("x", file.get(), size, {.max_bytes = size - 1}),
              absl::StatusCode::kInvalidArgument, "the limit is");
}

TEST(Source, InflatesGzipOfOneAndSeveralMembersAndHashesTheBytesOnDisk) {
  const std::string a(300000, 'a'), b = "the second member";
  const std::string one = Gzip(a), two = one + Gzip(b) + std::string(7, '\0');
  EXPECT_EQ(std::string(Source::FromBytes("x", one)->bytes()), a);
  const absl::StatusOr<Source> source = Source::FromBytes("x", two);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(std::string(source->bytes()), a + b);
  EXPECT_EQ(source->content_hash(), Sha256Hex(two));
  const absl::StatusOr<Source> reversed = Source::FromBytes("x", Gzip(b) + one);
  EXPECT_EQ(std::string(reversed->bytes()), b + a);
}

TEST(Source, RefusesTruncatedAndCorruptGzip) {
  const std::string good = Gzip(std::string(5000, 'a') + "b");
  for (size_t size = 2; size < good.size(); ++size) {
    ExpectError(Source::FromBytes("x.gz", good.substr(0, size)), absl::StatusCode::kInvalidArgument, "x.gz");
  }
  std::string corrupt = good;
  corrupt[corrupt.size() / 2] ^= 0x55;
  ExpectError(Source::FromBytes("x.gz", corrupt), absl::StatusCode::kInvalidArgument, "truncated or corrupt");
  ExpectError(Source::FromBytes("x.gz", good + "junk"), absl::StatusCode::kInvalidArgument,
              "truncated or corrupt");
}

TEST(Source, StopsBetweenTwoMembersOfGzip) {
  std::stop_source stop;
  const SourceLimits limits = {.stop = stop.get_token()};
  EXPECT_TRUE(Source::FromBytes("x.gz", Gzip("a") + Gzip("b"), limits).ok());
  stop.request_stop();
  ExpectError(Source::FromBytes("x.gz", Gzip("a") + Gzip("b"), limits), absl::StatusCode::kCancelled, "");
}

TEST(Source, ReadsNothingOnceAStopIsRequested) {
  const TempFolder folder;
  WriteBytes((folder / "x"), "abc");
  std::stop_source stop;
  EXPECT_TRUE(Source::FromFile(folder / "x", {.stop = stop.get_token()}).ok());
  stop.request_stop();
  ExpectError(Source::FromFile(folder / "x", {.stop = stop.get_token()}), absl::StatusCode::kCancelled, "");
}

TEST(Source, RefusesWhatIsOrInflatesToTooMuch) {
  const SourceLimits limits{100000, nullptr};
  ExpectError(Source::FromBytes("x", std::string(100001, 'a'), limits), absl::StatusCode::kInvalidArgument,
              "100000");
  ExpectError(Source::FromBytes("x", Gzip(std::string(100001, 'a')), limits),
              absl::StatusCode::kInvalidArgument, "limit is 100000 bytes");
  EXPECT_TRUE(Source::FromBytes("x", Gzip(std::string(100000, 'a')), limits).ok());
  const TempFolder folder;
  WriteBytes((folder / "x"), std::string(100001, 'a'));
  ExpectError(Source::FromFile((folder / "x"), limits), absl::StatusCode::kInvalidArgument,
              "has 100001 bytes");
}

TEST(Source, NamesAMissingFile) {
  ExpectError(Source::FromFile("/no/such/file.fits"), absl::StatusCode::kNotFound, "/no/such/file.fits");
  ExpectError(Source::FromFile(""), absl::StatusCode::kInvalidArgument, "empty");
}

TEST(Source, RefusesUrlsAndExtendedNames) {
  const TempFolder folder;
  WriteBytes((folder / "x.fits"), "x");
  for (const std::string& name :
       {std::string("file:///etc/passwd"), std::string("http://127.0.0.1/x.fits"), (folder / "x.fits[1]"),
        (folder / "x.fits[IMAGE]"), (folder / ("x.fits(y.fits)")), std::string("mem://x"),
        std::string("shmem://h1")}) {
    ExpectError(Source::FromFile(name), absl::StatusCode::kInvalidArgument, name);
  }
}

TEST(Source, RefusesFoldersAndDevices) {
  const TempFolder folder;
  ExpectError(Source::FromFile(folder.path()), absl::StatusCode::kInvalidArgument, "is a folder");
  ExpectError(Source::FromFile("/dev/null"), absl::StatusCode::kInvalidArgument, "not a regular file");
  WriteBytes((folder / "x.fits"), "x");
  ExpectError(Source::FromFile((folder / "x.fits") + "/y"), absl::StatusCode::kNotFound, "x.fits/y");
}

}  // namespace
}  // namespace spexd::testing
