// The files of a detached job, whatever happens to their bytes, and the index of the jobs.
#include "server/detached/store/job_record.h"

#include <iterator>
#include <limits>
#include <numeric>
#include <tuple>

#include "nlohmann/json.hpp"
#include "server/detached/store/job_index.h"
#include "tests/service/parts/job_files.h"

namespace spexd::testing {
namespace {

class JobRecordTest : public ::testing::Test {
 protected:
  // Bits to flip in a byte: a digit becomes another digit, and a letter changes its case or stops being a
  // letter.
  static constexpr int kFlips[] = {0x01, 0x10, 0x20, 0x80};
  static constexpr int64_t kLargest = int64_t{1} << 62, kLargestBytes = int64_t{1} << 50;

  static StoredJob Job() {
    StoredJob job;
    job.number = 7;
    job.id = std::string(32, 'a');
    job.owner = "me";
    job.request_id = "night 1";
    job.image = "preproc.fits";
    job.psf = "psf.fits";
    job.header = std::string("header\0of", 9);
    job.header_bytes = 9;
    job.inputs = {{"image", 6, std::string(64, '1')}, {"psf", 1 << 20, std::string(64, '2')}};
    job.digest = std::string(64, '3');
    job.trace_id = std::string(32, '4');
    job.keep_seconds = 60;
    job.submitted = 1700000000.123456;
    job.deadline = 1700000100.5;
    job.priority = -3;
    job.changes = 4;
    job.state = v1::DETACHED_STATE_FAILED;
    job.started = 1700000001.25;
    job.ended = 1700000002.75;
    job.expires = 1700000062.75;
    job.runs = 3;
    job.deaths = 1;
    job.device_failures = 2;
    job.bundles_done = 5;
    job.bundles_total = 20;
    job.last_sequence = 9;
    job.acknowledged = 8;
    job.result_bytes = 12345;
    job.code = 13;
    job.message = "it failed";
    return job;
  }
  static auto Submitted(const StoredJob& job) {
    std::vector<std::tuple<std::string, int64_t, std::string>> inputs;
    for (const StoredInput& input : job.inputs) inputs.emplace_back(input.name, input.bytes, input.sha256);
    return std::tuple(job.number, job.id, job.owner, job.request_id, job.image, job.psf, job.header,
                      job.header_bytes, inputs, job.digest, job.trace_id, job.keep_seconds, job.submitted,
                      job.deadline, job.priority);
  }
  static auto Happened(const StoredJob& job) {
    return std::tuple(job.changes, job.state, job.started, job.ended, job.expires, job.runs, job.deaths,
                      job.device_failures, job.bundles_done, job.bundles_total, job.last_sequence,
                      job.acknowledged, job.result_bytes, job.code, job.message);
  }
  static void ExpectComesBack(const StoredJob& job) {
    StoredJob read;
    const absl::Status header = ParseHeaderRecord(HeaderRecord(job), &read);
    EXPECT_TRUE(header.ok()) << header;
    EXPECT_EQ(Submitted(read), Submitted(job));
    const std::string record = StateRecord(job);
    EXPECT_THAT(record, SizeIs(kStateBytes));
    const absl::Status state = ParseStateRecord(record, &read);
    EXPECT_TRUE(state.ok()) << state;
    EXPECT_EQ(Happened(read), Happened(job));
    StoredJob listed, without_header = job;
    without_header.header.clear();
    const absl::Status index = ParseIndexRecord(IndexRecord(job), &listed);
    EXPECT_TRUE(index.ok()) << index;
    EXPECT_EQ(Submitted(listed), Submitted(without_header));
    EXPECT_EQ(Happened(listed), Happened(job));
  }
  // Returns the record with a value changed or removed (null), and with the right checksum.
  static std::string With(const std::string& record, const std::string& name, const nlohmann::json& value) {
    nlohmann::json fields = nlohmann::json::parse(record.substr(9));
    fields[name] = value;
    if (value.is_null()) fields.erase(name);
    return SealedRecord(fields.dump());
  }
};

TEST_F(JobRecordTest, ComesBackAsItWasWritten) {
  ExpectComesBack(Job());
  ExpectComesBack(StoredJob());
  StoredJob strange = Job();
  strange.owner = std::string("nul \0 and \x01\x7f", 12);
  strange.request_id = "\"quoted\" \\ {}[],:\r\n\t";
  strange.image = "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\xad";
  strange.header.resize(256);
  std::iota(strange.header.begin(), strange.header.end(), '\0');
  strange.header_bytes = 256;
  strange.message = strange.request_id + strange.image;
  ExpectComesBack(strange);
  StoredJob largest = Job();
  for (int64_t StoredJob::*field :
       {&StoredJob::number, &StoredJob::keep_seconds, &StoredJob::changes, &StoredJob::runs,
        &StoredJob::deaths, &StoredJob::device_failures, &StoredJob::bundles_done, &StoredJob::bundles_total})
    largest.*field = kLargest;
  largest.result_bytes = kLargestBytes;
  largest.last_sequence = largest.acknowledged = kLargest;
  largest.priority = 10;
  largest.submitted = largest.deadline = largest.started = largest.ended = largest.expires =
      std::numeric_limits<double>::max();
  ExpectComesBack(largest);
}

TEST_F(JobRecordTest, HasRoomForWhateverAJobEndsWith) {
  for (const char* piece : {"x", "\"", "\\", "\n", "\x01", "\xff", "\xc3\xa9"}) {
    StoredJob job = Job();
    job.last_sequence = job.acknowledged = kLargest;
    job.changes = job.runs = job.deaths = job.device_failures = kLargest;
    job.bundles_done = job.bundles_total = kLargest;
    std::string message;
    while (message.size() < 10000) message += piece;
    EndJob(absl::InternalError(message), &job);
    job.started = job.ended = job.expires = 1.2345678901234567e300;
    job.result_bytes = kLargestBytes;
    EXPECT_THAT(job.message, SizeIs(::testing::Gt(1000u)));
    ExpectComesBack(job);
  }
}

TEST_F(JobRecordTest, GivesNoOtherJobWhateverByteOfItsHeaderIsDamagedOrCutOff) {
  const std::string good = HeaderRecord(Job());
  for (size_t at = 0; at < good.size(); ++at) {
    for (const int flip : kFlips) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      StoredJob read;
      const absl::Status status = ParseHeaderRecord(bad, &read);
      EXPECT_TRUE(absl::IsDataLoss(status) || at + 1 == good.size()) << status << ", byte " << at;
      EXPECT_TRUE(!status.ok() || Submitted(read) == Submitted(Job())) << "byte " << at;
    }
    StoredJob read;
    const absl::Status cut = ParseHeaderRecord(good.substr(0, at), &read);
    EXPECT_TRUE(absl::IsDataLoss(cut) || at + 1 == good.size()) << cut << ", cut at " << at;
    EXPECT_TRUE(!cut.ok() || Submitted(read) == Submitted(Job())) << "cut at " << at;
  }
}

TEST_F(JobRecordTest, TakesTheOtherStateWhateverByteOfOneIsDamagedOrCutOff) {
  const StoredJob older = Job();
  StoredJob newer = Job();
  ++newer.changes;
  newer.acknowledged = 9;
  newer.message = "it failed again";
  const std::string good = StateRecord(older) + StateRecord(newer);
  for (size_t at = 0; at < good.size(); ++at) {
    const bool in_newer = at >= kStateBytes;
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ kFlips[at % std::size(kFlips)]);
    StoredJob read;
    const absl::Status status = ParseStateFile(bad, &read);
    ASSERT_TRUE(status.ok()) << status << ", byte " << at;
    const bool other = in_newer && Happened(read) == Happened(older);
    EXPECT_TRUE(other || Happened(read) == Happened(newer)) << "byte " << at;
    StoredJob rest;
    const absl::Status cut = ParseStateFile(good.substr(0, at), &rest);
    EXPECT_TRUE(cut.ok() || (!in_newer && absl::IsDataLoss(cut))) << cut << ", cut at " << at;
    const bool one = Happened(rest) == Happened(older) || (in_newer && Happened(rest) == Happened(newer));
    EXPECT_TRUE(one || !cut.ok()) << "cut at " << at;
  }
  std::string both = good;
  both[100] = both[kStateBytes + 100] = '\x01';
  StoredJob read;
  EXPECT_TRUE(absl::IsDataLoss(ParseStateFile(both, &read)));
}

TEST_F(JobRecordTest, TakesTheLaterOfTwoStatesWhicheverComesFirst) {
  const StoredJob older = Job();
  StoredJob newer = Job();
  ++newer.changes;
  for (const std::string& file :
       {StateRecord(older) + StateRecord(newer), StateRecord(newer) + StateRecord(older)}) {
    StoredJob read;
    ASSERT_TRUE(ParseStateFile(file, &read).ok());
    EXPECT_EQ(Happened(read), Happened(newer));
  }
}

TEST_F(JobRecordTest, KeepsTheStateBeforeOneWhoseWritingWasCutShort) {
  StoredJob before = Job(), after = Job();
  after.changes = before.changes + 1;
  after.message = "it failed, for a longer reason than before";
  StoredJob two_before = before;
  --two_before.changes;
  two_before.state = v1::DETACHED_STATE_RUNNING;
  const std::string written = StateRecord(after);
  for (size_t bytes = 0; bytes <= written.size(); ++bytes) {
    std::string file = StateRecord(before) + StateRecord(two_before);
    file.replace(kStateBytes, bytes, written, 0, bytes);
    StoredJob read;
    const absl::Status status = ParseStateFile(file, &read);
    ASSERT_TRUE(status.ok()) << status << " after " << bytes;
    const bool is_before = Happened(read) == Happened(before), is_after = Happened(read) == Happened(after);
    EXPECT_TRUE(is_before || (is_after && bytes > 0)) << bytes;
    EXPECT_TRUE(is_after || bytes < written.size()) << bytes;
  }
}

TEST_F(JobRecordTest, TakesNoValueThatNoJobHasAndNamesTheField) {
  using Json = nlohmann::json;
  const std::vector<std::pair<std::string, Json>> of_header = {
      {"number", -1},      {"number", std::numeric_limits<int64_t>::max()},
      {"id", 5},           {"owner", nullptr},
      {"priority", 11},    {"priority", -11},
      {"submitted", -1.5}, {"keep_seconds", 1.5},
      {"inputs", 1},       {"header", "%"},
      {"version", "1"}};
  for (const auto& [name, value] : of_header) {
    StoredJob read;
    const absl::Status status = ParseHeaderRecord(With(HeaderRecord(Job()), name, value), &read);
    EXPECT_TRUE(absl::IsDataLoss(status)) << name << " " << value << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(name)) << value;
  }
  const std::vector<std::pair<std::string, Json>> of_state = {
      {"state", 0},
      {"state", 77},
      {"state", "done"},
      {"state", nullptr},
      {"runs", -1},
      {"runs", 1e300},
      {"deaths", std::numeric_limits<uint64_t>::max()},
      {"last_sequence", -1},
      {"acknowledged", 10},
      {"code", 17},
      {"ended", "x"},
      {"message", 1}};
  for (const auto& [name, value] : of_state) {
    StoredJob read;
    const absl::Status status = ParseStateRecord(With(StateRecord(Job()), name, value), &read);
    EXPECT_TRUE(absl::IsDataLoss(status)) << name << " " << value << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(name)) << value;
  }
}

TEST_F(JobRecordTest, OfANewerVersionIsNotTakenForDamage) {
  StoredJob read;
  for (const absl::Status& status : {ParseHeaderRecord(With(HeaderRecord(Job()), "version", 2), &read),
                                     ParseIndexRecord(With(IndexRecord(Job()), "version", 2), &read)}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("version 2"), HasSubstr("newer spexd")));
  }
}

class JobIndexTest : public ::testing::Test {
 protected:
  static StoredJob Job(const std::string& id, const std::string& owner) {
    StoredJob job;
    job.id = job.request_id = id;
    job.number = id[0];
    job.owner = owner;
    job.header = "header";
    job.submitted = 1000 + id[0];
    return job;
  }
  static std::vector<std::string> Ids(const std::vector<StoredJob>& jobs) {
    std::vector<std::string> ids;
    for (const StoredJob& job : jobs) ids.push_back(job.id);
    return ids;
  }
  JobIndex index_;
};

TEST_F(JobIndexTest, ListsNewestFirstByOwnerStateTimeAndPage) {
  for (const char* id : {"c", "a", "d", "b"}) {
    StoredJob job = Job(id, *id == 'b' ? "you" : "me");
    if (*id == 'd') job.state = v1::DETACHED_STATE_DONE;
    index_.Put(job);
  }
  JobIndex::Filter filter;
  EXPECT_THAT(Ids(index_.List(filter, 10)), ElementsAre("d", "c", "b", "a"));
  EXPECT_THAT(index_.List(filter, 10)[0].header, IsEmpty());
  filter.before = index_.List(filter, 2)[1].number;
  EXPECT_THAT(Ids(index_.List(filter, 2)), ElementsAre("b", "a"));
  filter = {};
  filter.owner = "me";
  filter.states = {v1::DETACHED_STATE_QUEUED, v1::DETACHED_STATE_RUNNING};
  EXPECT_THAT(Ids(index_.List(filter, 10)), ElementsAre("c", "a"));
  filter.submitted_after = 1000 + 'b';
  EXPECT_THAT(Ids(index_.List(filter, 10)), ElementsAre("c"));
  EXPECT_EQ(index_.last_number(), 'd');
}

TEST_F(JobIndexTest, FindsJobsThatAreLateAndThoseThatExpire) {
  for (const char* id : {"a", "b", "c", "d"}) {
    StoredJob job = Job(id, "me");
    job.deadline = *id == 'a' ? 0 : 2000 + *id;
    if (*id == 'b') {
      job.state = v1::DETACHED_STATE_DONE;
      job.expires = 3000;
    }
    index_.Put(job);
  }
  EXPECT_EQ(index_.next_deadline(), 2000 + 'c');
  EXPECT_THAT(index_.LateAt(2000 + 'c' - 1, 10), IsEmpty());
  EXPECT_THAT(index_.LateAt(3000, 1), ElementsAre("c"));
  EXPECT_THAT(index_.LateAt(3000, 10), ElementsAre("c", "d"));
  EXPECT_EQ(index_.next_expiry(), 3000);
  EXPECT_THAT(index_.ExpiringUntil(2999, 10), IsEmpty());
  EXPECT_THAT(index_.ExpiringUntil(3000, 10), ElementsAre("b"));
}

TEST_F(JobIndexTest, KnowsAJobAsItWasPutLastAndForgetsItOnceErased) {
  StoredJob job = Job("a", "me");
  job.deadline = 2000;
  index_.Put(job);
  EXPECT_EQ(index_.FindRequest("me", "a")->id, "a");
  EXPECT_EQ(index_.FindRequest("you", "a"), nullptr);
  job.state = v1::DETACHED_STATE_DONE;
  job.expires = 3000;
  index_.Put(job);
  EXPECT_EQ(index_.Find("a")->state, v1::DETACHED_STATE_DONE);
  EXPECT_EQ(index_.counts()[v1::DETACHED_STATE_QUEUED], 0);
  EXPECT_EQ(index_.counts()[v1::DETACHED_STATE_DONE], 1);
  EXPECT_EQ(index_.next_deadline(), std::numeric_limits<double>::infinity());
  index_.Erase("a");
  EXPECT_EQ(index_.Find("a"), nullptr);
  EXPECT_EQ(index_.FindRequest("me", "a"), nullptr);
  EXPECT_EQ(index_.next_expiry(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(index_.counts()[v1::DETACHED_STATE_DONE], 0);
  EXPECT_THAT(index_.List({}, 10), IsEmpty());
}

}  // namespace
}  // namespace spexd::testing
