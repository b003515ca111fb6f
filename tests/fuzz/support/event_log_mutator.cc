// Changes event logs, mostly with correct checksums: fields of events, whole records, their numbers, the
// version; or any bytes.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/digest/crc32c.h"
#include "tests/fuzz/support/event_log_id.h"
#include "tests/fuzz/support/message_mutator.h"
#include "tests/fuzz/support/random.h"

namespace spexd::fuzz {
namespace {

constexpr size_t kVersionAt = 8, kHeaderCrcAt = kEventLogHeaderBytes - 4;

struct Record {
  uint64_t sequence = 0;
  std::string payload;
};

// Returns the records up to the first that cannot be read.
std::vector<Record> RecordsOf(const std::string& file) {
  std::vector<Record> records;
  for (size_t at = kEventLogHeaderBytes; file.size() >= at + kRecordHeadBytes;) {
    Record record;
    uint32_t length = 0;
    std::memcpy(&record.sequence, &file[at], sizeof(record.sequence));
    std::memcpy(&length, &file[at + sizeof(record.sequence)], sizeof(length));
    at += kRecordHeadBytes;
    record.payload = file.substr(at, length);
    at += record.payload.size();
    records.push_back(std::move(record));
  }
  return records;
}

std::string Event(const std::string& payload, Random& random) {
  v1::ExtractEvent event;
  if (!event.ParseFromString(payload)) event.Clear();
  ChangeMessage(&event, random);
  return event.SerializeAsString();
}

void ChangeRecords(std::vector<Record>* records, Random& random) {
  if (records->empty()) records->push_back({1, ""});
  const size_t at = Below(random, records->size());
  Record& record = (*records)[at];
  switch (random() % 8) {
    case 0:
      record.sequence += random() % 5 - 2;
      return;
    case 1:
      records->erase(records->begin() + static_cast<int64_t>(at));
      break;
    case 2:
      records->insert(records->begin() + static_cast<int64_t>(at), Record(record));
      break;
    case 3:
      std::swap(record.payload, (*records)[Below(random, records->size())].payload);
      break;
    case 4:
      ChangeBytes(&record.payload, record.payload.size() + 64);
      break;
    default:
      record.payload = Event(record.payload, random);
  }
  for (size_t k = 0; k < records->size(); ++k) (*records)[k].sequence = k + 1;
}

std::string ChangeHeader(Random& random) {
  std::string header = EventLogHeader(EventLogId());
  header[kVersionAt + Below(random, kHeaderCrcAt - kVersionAt)] ^= static_cast<char>(1 << random() % 8);
  const uint32_t crc = Crc32c(header.substr(0, kHeaderCrcAt));
  std::memcpy(&header[kHeaderCrcAt], &crc, sizeof(crc));
  return header;
}

std::string Changed(std::string file, size_t most, Random& random) {
  if (random() % 16 == 0) {
    ChangeBytes(&file, most);
    return file;
  }
  std::vector<Record> records = RecordsOf(file);
  for (int changes = 1 << random() % 3; changes > 0; --changes) ChangeRecords(&records, random);
  std::string changed = random() % 64 == 0 ? ChangeHeader(random) : EventLogHeader(EventLogId());
  for (const Record& record : records) AppendRecord(record.sequence, record.payload, &changed);
  if (random() % 16 == 0) changed.resize(Below(random, changed.size()));
  return changed;
}

}  // namespace
}  // namespace spexd::fuzz

// libFuzzer calls this to make its next input.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  spexd::fuzz::Random random(seed);
  std::string file = spexd::fuzz::Changed(std::string(reinterpret_cast<char*>(data), size), most, random);
  file.resize(std::min(file.size(), most));
  std::copy(file.begin(), file.end(), data);
  return file.size();
}
