// The event log of a detached job on its own: what is read back, and how damage of any byte is handled.
#include "server/detached/store/event_log.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/escaping.h"
#include "tests/service/parts/job_files.h"

namespace spexd::testing {
namespace {

using Group = std::vector<v1::ExtractEvent>;

const std::string kId(kJobIdBytes, 'a');

v1::ExtractEvent FrameInfoPiece(int count, bool last, const std::string& version = "1") {
  v1::ExtractEvent event;
  event.mutable_frame_info()->set_fibre_count(static_cast<uint32_t>(count));
  event.mutable_frame_info()->set_version(version);
  event.mutable_frame_info()->set_last(last);
  return event;
}

v1::ExtractEvent BundlePiece(int bundle, bool last) {
  v1::ExtractEvent event;
  event.mutable_bundle()->set_bundle(static_cast<uint32_t>(bundle));
  event.mutable_bundle()->set_flux(std::string(10, static_cast<char>('0' + bundle)));
  event.mutable_bundle()->set_last(last);
  return event;
}

v1::ExtractEvent ModelPiece(int bundle) {
  v1::ExtractEvent event;
  event.mutable_model()->set_bundle(static_cast<uint32_t>(bundle));
  return event;
}

v1::ExtractEvent SummaryPiece(bool last) {
  v1::ExtractEvent event;
  event.mutable_summary()->set_last(last);
  return event;
}

class EventLogTest : public ::testing::Test {
 protected:
  absl::StatusOr<EventLogWriter> Open(uint64_t shown = 0) { return EventLogWriter::Open(path_, kId, shown); }
  // Writes an event log of five events in three groups: the frame's information and two bundles.
  void Write() {
    auto log = Open();
    ASSERT_TRUE(log.ok()) << log.status();
    for (const Group& group :
         {Group{FrameInfoPiece(5, true)}, Group{ModelPiece(1), BundlePiece(1, false), BundlePiece(1, true)},
          Group{BundlePiece(0, true)}}) {
      ASSERT_TRUE(log->Append(group).ok());
      ends_.push_back(log->bytes());
    }
    ASSERT_TRUE(log->Commit().ok());
  }
  // Returns the events that can be read up to `last`, and how reading ended.
  std::pair<std::vector<std::string>, absl::Status> ReadAll(uint64_t last, uint64_t after = 0) const {
    EventLogReader reader(path_, kId, after);
    std::vector<std::string> events;
    while (reader.next() <= last) {
      const auto event = reader.Read();
      if (!event.ok()) return {events, event.status()};
      events.push_back(event->SerializeAsString());
    }
    return {events, absl::OkStatus()};
  }

  TempFolder folder_;
  const std::string path_ = folder_ / "events";
  std::vector<int64_t> ends_;  // ends of the groups, in bytes
};

TEST_F(EventLogTest, GivesBackWhatWasAppendedFromAnyEventOn) {
  Write();
  const auto all = ReadAll(5);
  ASSERT_TRUE(all.second.ok()) << all.second;
  EXPECT_THAT(all.first,
              ElementsAre(FrameInfoPiece(5, true).SerializeAsString(), ModelPiece(1).SerializeAsString(),
                          BundlePiece(1, false).SerializeAsString(), BundlePiece(1, true).SerializeAsString(),
                          BundlePiece(0, true).SerializeAsString()));
  EXPECT_THAT(ReadAll(5, 4).first, ElementsAre(BundlePiece(0, true).SerializeAsString()));
  EXPECT_THAT(ReadAll(5, 5).first, IsEmpty());
}

TEST_F(EventLogTest, IsCutBehindItsLastWholeGroupAndGoesOnThere) {
  Write();
  {
    auto log = Open(5);
    ASSERT_TRUE(log.ok()) << log.status();
    ASSERT_TRUE(log->Append({BundlePiece(2, false)}).ok());  // then the server dies
  }
  auto log = Open(5);
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_EQ(log->content().last_sequence, 5u);
  EXPECT_THAT(log->content().bundles, ElementsAre(0u, 1u));
  EXPECT_EQ(log->content().frame_info, FrameInfoDigest({FrameInfoPiece(5, true, "2")}));
  EXPECT_NE(log->content().frame_info, FrameInfoDigest({FrameInfoPiece(6, true)}));
  EXPECT_FALSE(log->content().has_summary);
  EXPECT_EQ(static_cast<int64_t>(ReadBytes(path_).size()), ends_.back());
  ASSERT_TRUE(log->Append({SummaryPiece(false), SummaryPiece(true)}).ok());
  ASSERT_TRUE(log->Commit().ok());
  EXPECT_TRUE(log->content().has_summary);
  EXPECT_THAT(ReadAll(7).first, SizeIs(7));
}

// Whatever byte of an event log is damaged, events that are served equal those written, or there is an error
// that names the file. A run that continues keeps the events that were shown, or reports that it cannot.
TEST_F(EventLogTest, ServesNothingWrongWhateverByteIsDamaged) {
  Write();
  const std::string good = ReadBytes(path_);
  const std::vector<std::string> events = ReadAll(5).first;
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    WriteBytes(path_, bad);
    const auto [read, status] = ReadAll(5);
    ASSERT_FALSE(status.ok()) << "byte " << at;
    EXPECT_THAT(status.message(), HasSubstr(path_)) << "byte " << at;
    EXPECT_TRUE(std::equal(read.begin(), read.end(), events.begin())) << "byte " << at;
    const auto shown = Open(5);
    EXPECT_FALSE(shown.ok()) << "byte " << at;
    EXPECT_EQ(ReadBytes(path_), bad) << "what cannot be mended stays, byte " << at;
    const auto unseen = Open(0);
    // The damaged bytes of the version may name another version.
    if (absl::IsFailedPrecondition(unseen.status())) continue;
    ASSERT_TRUE(unseen.ok()) << unseen.status() << ", byte " << at;
    const uint64_t last = unseen->content().last_sequence;
    EXPECT_LT(last, 5u);
    const auto left = ReadAll(last);
    EXPECT_TRUE(left.second.ok()) << left.second;
    EXPECT_TRUE(std::equal(left.first.begin(), left.first.end(), events.begin())) << "byte " << at;
  }
}

TEST_F(EventLogTest, ServesNothingWrongWhereverItIsCutOff) {
  Write();
  const std::string good = ReadBytes(path_);
  const std::vector<std::string> events = ReadAll(5).first;
  for (size_t size = 0; size < good.size(); ++size) {
    WriteBytes(path_, good.substr(0, size));
    EXPECT_TRUE(absl::IsDataLoss(Open(5).status())) << size;
    const auto [read, status] = ReadAll(5);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status << " at " << size;
    EXPECT_TRUE(std::equal(read.begin(), read.end(), events.begin())) << size;
    const auto unseen = Open(0);
    ASSERT_TRUE(unseen.ok()) << unseen.status() << " at " << size;
    const int64_t whole = std::count_if(ends_.begin(), ends_.end(),
                                        [&](int64_t end) { return end <= static_cast<int64_t>(size); });
    EXPECT_EQ(unseen->content().bytes,
              whole == 0 ? kEventLogHeaderBytes : ends_[static_cast<size_t>(whole - 1)]);
  }
}

// A case that fuzzing found. The checksum of an event is right even if its sender was wrong.
TEST_F(EventLogTest, TellsOfAnEventThatStatesMoreBytesThanItHas) {
  std::string file = EventLogHeader(kId);
  AppendRecord(1, absl::HexStringToBytes("22fcffffff043a003a0092ff2880808004"), &file);
  WriteBytes(path_, file);
  const auto [events, end] = ReadAll(1);
  EXPECT_THAT(events, IsEmpty());
  EXPECT_TRUE(absl::IsDataLoss(end)) << end;
  EXPECT_THAT(end.message(), HasSubstr("record 1 is no event"));
}

TEST_F(EventLogTest, OfAnotherJobOrMissingIsDataLoss) {
  Write();
  EventLogReader reader(path_, std::string(kJobIdBytes, 'b'), 0);
  EXPECT_THAT(reader.Read().status().message(), HasSubstr("another job's"));
  std::filesystem::remove(path_);
  const absl::Status missing = EventLogReader(path_, kId, 0).NextBytes().status();
  EXPECT_TRUE(absl::IsDataLoss(missing)) << missing;
  EXPECT_THAT(missing.message(), HasSubstr(path_));
}

TEST_F(EventLogTest, OnAFullDiskNamesItsFileAndKeepsWhatItHas) {
  Write();
  absl::Status full;
  {
    const FileSizeLimit limit(static_cast<rlim_t>(ends_.back() + 30));
    auto log = Open(5);
    full = log.ok() ? log->Append({BundlePiece(2, true)}) : log.status();
  }
  EXPECT_TRUE(absl::IsUnavailable(full)) << full;
  EXPECT_THAT(full.message(), HasSubstr(path_));
  EXPECT_THAT(ReadAll(5).first, SizeIs(5));
  const auto again = Open(5);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->content().bytes, ends_.back());
}

}  // namespace
}  // namespace spexd::testing
