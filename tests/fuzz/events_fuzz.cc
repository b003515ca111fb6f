// Event logs of detached jobs: any file may be in the place of one. It is read as by a client that watches,
// and opened as by a run that continues the job.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/model/psf.h"
#include "proto/trace_report.h"
#include "server/detached/store/event_log.h"
#include "tests/fuzz/support/event_log_id.h"
#include "tests/fuzz/support/fuzz_check.h"
#include "tests/support/temp_folder.h"

namespace spexd::fuzz {
namespace {

using testing::ReadBytes;
using testing::WriteBytes;

struct Reading {
  std::vector<std::string> events;
  absl::Status end;  // why reading ended
};

// protobuf reserves at most this much for one string with a wrong length, and leaves it untouched.
constexpr int64_t kReservedForString = 50'000'000;

// A record is in memory as on disk and as a message, whose smallest parts take 2 bytes on disk and about 100
// in memory.
int64_t MostHeap(int64_t file_bytes) {
  return int64_t{kMaxRecordBytes} + StructureBytes(file_bytes) + 64 * file_bytes + kReservedForString;
}

Reading ReadFrom(const std::string& path, uint64_t after) {
  EventLogReader reader(path, EventLogId(), after);
  Reading reading;
  for (;;) {
    const uint64_t next = reader.next();
    const absl::StatusOr<int64_t> bytes = reader.NextBytes();
    const absl::StatusOr<v1::ExtractEvent> event = reader.Read();
    reading.end = event.status();
    if (!event.ok()) break;
    Require(bytes.ok() && *bytes <= kMaxRecordBytes, "an event that is read has a size");
    Require(next == after + reading.events.size() + 1 && reader.next() == next + 1, "events are counted");
    reading.events.push_back(event->SerializeAsString());
  }
  RequireGoodError(reading.end,
                   {.also = {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kDataLoss}});
  Require(absl::StrContains(reading.end.message(), path), "an error names the file");
  return reading;
}

v1::ExtractEvent Parsed(const std::string& event) {
  v1::ExtractEvent parsed;
  Require(parsed.ParseFromString(event), "an event that was read is read again");
  return parsed;
}

void RequireContent(const EventLogContent& content, const std::vector<std::string>& events) {
  Require(content.last_sequence <= events.size(), "a run goes on behind events that can be read");
  std::set<uint32_t> bundles;
  for (size_t k = 0; k < events.size(); ++k) {
    const v1::ExtractEvent event = Parsed(events[k]);
    if (k >= content.last_sequence) {
      Require(!EndsGroup(event), "a run goes on behind the last whole group");
    } else if (event.has_bundle() && event.bundle().last()) {
      bundles.insert(event.bundle().bundle());
    }
  }
  Require(content.bundles == bundles, "a run knows which bundles are there");
}

// Reads the trace shifts of a frame as a client does.
void ReadTraces(const std::vector<std::string>& events) {
  for (const std::string& event : events) {
    const v1::ExtractEvent parsed = Parsed(event);
    if (!parsed.frame_info().has_trace_shifts()) continue;
    const v1::TraceShifts& message = parsed.frame_info().trace_shifts();
    const int fibres = static_cast<int>(std::min<uint32_t>(parsed.frame_info().fibre_count(), kMaxFibres));
    const absl::StatusOr<TraceReport> report = TraceReportOf(message, fibres);
    RequireGoodError(report.status());
    if (!report.ok()) continue;
    v1::TraceShifts once, twice;
    SetTraceReport(*report, &once);
    const absl::StatusOr<TraceReport> again = TraceReportOf(once, fibres);
    Require(again.ok(), "trace shifts that are read are read again");
    SetTraceReport(*again, &twice);
    Require(once.SerializeAsString() == twice.SerializeAsString(),
            "trace shifts are read as they were written");
  }
}

// Writes the events that were read, and reads them again.
void WriteAgain(const std::string& path, const std::vector<std::string>& events) {
  std::string file = EventLogHeader(EventLogId());
  for (size_t k = 0; k < events.size(); ++k) AppendRecord(k + 1, events[k], &file);
  WriteBytes(path, file);
  Require(ReadFrom(path, 0).events == events, "events are read as they were written");
}

// Opens the file as a run that continues it, and adds a group.
void GoOn(const std::string& path, const std::string& bytes, const std::vector<std::string>& events) {
  absl::StatusOr<EventLogWriter> writer = EventLogWriter::Open(path, EventLogId(), 0);
  RequireGoodError(writer.status(),
                   {.also = {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kDataLoss}});
  if (!writer.ok()) {
    Require(ReadBytes(path) == bytes, "a file that cannot be used stays as it is");
    return;
  }
  const EventLogContent content = writer->content();
  RequireContent(content, events);
  const std::string cut = ReadBytes(path);
  Require(static_cast<int64_t>(cut.size()) == content.bytes, "a file is cut behind its last whole group");
  Require(content.last_sequence == 0 || absl::StartsWith(bytes, cut), "what is kept stays as it is");
  std::vector<std::string> kept(events.begin(), events.begin() + static_cast<int64_t>(content.last_sequence));
  v1::ExtractEvent summary;
  summary.mutable_summary()->set_last(true);
  Require(writer->Append({summary}).ok() && writer->Commit().ok(), "a run goes on");
  kept.push_back(summary.SerializeAsString());
  Require(ReadFrom(path, 0).events == kept, "what a run adds comes behind what was kept");
  const absl::StatusOr<EventLogWriter> again = EventLogWriter::Open(path, EventLogId(), kept.size());
  Require(again.ok() && again->content().has_summary, "what was shown is there after a restart");
}

void UseAsEventLog(const std::string& bytes) {
  static const testing::TempFolder folder;
  const std::string path = folder / "events";
  WriteBytes(path, bytes);
  Reading all;
  {
    const HeapMeter meter;
    all = ReadFrom(path, 0);
    RequireHeapWithin(meter, MostHeap(static_cast<int64_t>(bytes.size())), "reading an event log");
  }
  const size_t half = all.events.size() / 2;
  Require(ReadFrom(path, half).events ==
              std::vector<std::string>(all.events.begin() + static_cast<int64_t>(half), all.events.end()),
          "a number always names the same event");
  const absl::Status shown = EventLogWriter::Open(path, EventLogId(), all.events.size() + 1).status();
  Require(!shown.ok(), "a run does not go on where an event that was shown is missing");
  RequireGoodError(shown, {.also = {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kDataLoss}});
  Require(ReadBytes(path) == bytes, "what cannot be mended stays");
  ReadTraces(all.events);
  GoOn(path, bytes, all.events);
  WriteAgain(path, all.events);
}

}  // namespace
}  // namespace spexd::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spexd::fuzz::UseAsEventLog(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
