// Counts how often pixel data are copied: between gRPC's memory and core's in a server, and between a file
// and its messages in a client (docs/performance.md). It counts the bytes of large blocks from operator new,
// in which strings and messages lie; for arrays it compares addresses.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/job_request.h"
#include "core/base/digest/crc32c.h"
#include "core/frame/bundle_spectra.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/inputs/job_inputs.h"
#include "server/messages/event_messages.h"
#include "server/messages/received_request.h"
#include "tests/support/temp_folder.h"

namespace {

constexpr size_t kLarge = 32 << 10;
std::atomic<size_t> large_bytes = 0;  // in all large blocks so far

}  // namespace

// Replaces operator new of the whole program.
void* operator new(size_t bytes) {
  if (bytes >= kLarge) large_bytes += bytes;
  if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
// Not inlined, because GCC would consider malloc and delete a mismatch.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace spexd {
namespace {

constexpr size_t kChunk = size_t{1} << 20;  // of an upload
constexpr size_t kSlice = 100000;           // of what gRPC receives

// Returns whether one block lies within another.
bool LiesIn(absl::string_view inner, absl::string_view outer) {
  return inner.data() >= outer.data() && inner.data() + inner.size() <= outer.data() + outer.size();
}

// A stream's messages after its header, in slices as gRPC receives them.
class UploadedImage {
 public:
  explicit UploadedImage(size_t bytes) {
    for (size_t k = 0; k < bytes; ++k) bytes_ += static_cast<char>(k % 251);
    for (size_t offset = 0; offset < bytes; offset += kChunk) {
      v1::ExtractRequest request;
      request.mutable_chunk()->set_input(v1::INPUT_IMAGE);
      request.mutable_chunk()->set_offset(offset);
      request.mutable_chunk()->set_payload(bytes_.substr(offset, kChunk));
      messages_.push_back(request.SerializeAsString());
    }
    v1::ExtractRequest request;
    request.mutable_end()->set_input(v1::INPUT_IMAGE);
    request.mutable_end()->set_crc32c(Crc32c(bytes_));
    messages_.push_back(request.SerializeAsString());
  }
  const std::string& bytes() const { return bytes_; }

  // Returns the inputs of the job, received as JobCall receives them.
  JobInputs Receive(const v1::JobHeader& header) const {
    absl::StatusOr<InputReceiver> receiver = InputReceiver::Make(header, int64_t{1} << 30);
    EXPECT_TRUE(receiver.ok()) << receiver.status();
    ReceivedRequest<v1::ExtractRequest> request;
    for (const std::string& message : messages_) {
      std::vector<grpc::Slice> slices;
      for (size_t at = 0; at < message.size(); at += kSlice) {
        slices.emplace_back(message.data() + at, std::min(kSlice, message.size() - at),
                            grpc::Slice::STATIC_SLICE);
      }
      *request.buffer() = grpc::ByteBuffer(slices.data(), slices.size());
      EXPECT_TRUE(request.Parse().ok());
      for (const absl::string_view piece : request.payload()) EXPECT_TRUE(LiesIn(piece, message));
      const absl::Status added = receiver->Add(request.message(), request.payload());
      EXPECT_TRUE(added.ok()) << added;
    }
    absl::StatusOr<JobInputs> inputs = receiver->Finish();
    EXPECT_TRUE(inputs.ok()) << inputs.status();
    return *std::move(inputs);
  }

 private:
  std::string bytes_;
  std::vector<std::string> messages_;
};

TEST(CopiesInAServer, UploadedArraysAreCopiedOnceBeforeTheyAreDecoded) {
  constexpr int kRows = 600, kColumns = 500;
  const UploadedImage image(size_t{kRows} * kColumns * kRawBytesPerPixel);
  v1::JobHeader header;
  header.mutable_image()->mutable_raw()->set_rows(kRows);
  header.mutable_image()->mutable_raw()->set_columns(kColumns);
  header.mutable_psf()->set_psf_hash("known");
  const size_t before = large_bytes;
  const JobInputs inputs = image.Receive(header);
  EXPECT_EQ(large_bytes - before, image.bytes().size() + 1);  // plus a string's terminating zero
  ASSERT_TRUE(inputs.raw_image.has_value());
  EXPECT_TRUE(inputs.raw_image->bytes == image.bytes());
  EXPECT_EQ(PlanesOf(*inputs.raw_image).pixels, inputs.raw_image->bytes.data());
}

TEST(CopiesInAServer, AnUploadedFileIsCopiedOnceBeforeItIsRead) {
  const UploadedImage image(3 * kChunk + 1000);
  v1::JobHeader header;
  header.mutable_image()->mutable_upload()->set_name("image");
  header.mutable_image()->mutable_upload()->set_bytes(image.bytes().size());
  header.mutable_psf()->set_psf_hash("known");
  const size_t before = large_bytes;
  JobInputs inputs = image.Receive(header);
  ASSERT_TRUE(inputs.image->Measure(*PathPolicy::Make({}), int64_t{1} << 30).ok());
  const absl::StatusOr<Source> file = inputs.image->Open(nullptr);
  EXPECT_EQ(large_bytes - before, image.bytes().size() + 1);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->bytes() == image.bytes());
}

template <typename T, size_t N>
absl::string_view BytesOf(const Array<T, N>& array) {
  return {reinterpret_cast<const char*>(array.data()), static_cast<size_t>(array.size()) * sizeof(T)};
}

TEST(CopiesInAServer, ResultsAreSentFromTheArraysOfTheEngine) {
  constexpr int kFibres = 25, kBins = 3000;
  BundleResult result;
  result.fibres = {0, kFibres};
  for (Array<float, 2>* array : {&result.spectra.flux, &result.spectra.ivar, &result.spectra.chi2pix})
    array->Assign({kFibres, kBins}, 1);
  result.spectra.mask.Assign({kFibres, kBins}, 2);
  result.spectra.resolution.Assign({kFibres, kResolutionDiagonals, kBins}, 3);
  result.model.pixels.Assign({2000, 300}, 4);
  const std::vector<absl::string_view> arrays = {
      BytesOf(result.spectra.flux),       BytesOf(result.spectra.ivar),    BytesOf(result.spectra.mask),
      BytesOf(result.spectra.resolution), BytesOf(result.spectra.chi2pix), BytesOf(result.model.pixels)};
  size_t all = 0, sent = 0, heads = 0;
  for (const absl::string_view array : arrays) all += array.size();

  const size_t before = large_bytes;
  const auto bundle = std::make_shared<const BundleSpectra>(ToBundleSpectra(std::move(result)));
  for (const BundlePiece& piece : CutBundle(*bundle, kBins)) {
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(ToMessage(piece, bundle).Dump(&slices).ok());
    for (const grpc::Slice& slice : slices) {
      const absl::string_view bytes(reinterpret_cast<const char*>(slice.begin()), slice.size());
      bool in_array = false;
      for (const absl::string_view array : arrays) in_array = in_array || LiesIn(bytes, array);
      if (in_array) {
        sent += bytes.size();
      } else {
        heads += bytes.size();
      }
    }
  }
  EXPECT_EQ(sent, all);
  EXPECT_LT(heads, kLarge) << "bytes beside those of arrays";
  EXPECT_EQ(large_bytes, before);
}

// Counts the chunks of an upload, and the blocks of memory in which their payloads lie.
struct CountingStream {
  bool Write(const v1::ExtractRequest& request) {
    if (request.has_end()) return true;
    bytes += request.chunk().payload().size();
    blocks.insert(request.chunk().payload().data());
    return true;
  }

  size_t bytes = 0;
  std::set<const char*> blocks;
};

TEST(CopiesInAServer, ProductsAreSentFromTheirMessages) {
  const auto event = std::make_shared<v1::ExtractEvent>();
  v1::SkyPart* const sky = event->mutable_product()->mutable_sky();
  sky->set_bins(7);
  sky->set_flux(std::string(size_t{1} << 20, 'f'));
  sky->set_ivar(std::string(size_t{1} << 19, 'i'));
  sky->set_throughput(std::string(200, 't'));
  event->mutable_product()->set_last(true);
  const std::string expected = event->SerializeAsString();
  const std::weak_ptr<const v1::ExtractEvent> alive = event;
  const size_t before = large_bytes;
  std::vector<grpc::Slice> slices;
  {
    const std::shared_ptr<const v1::ExtractEvent> taken = event;
    ASSERT_TRUE(ToMessage(taken).Dump(&slices).ok());
  }
  EXPECT_EQ(large_bytes, before);
  std::string sent;
  for (const grpc::Slice& slice : slices)
    sent.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  EXPECT_TRUE(sent == expected);
  const auto within = [&](const std::string& array) {
    return std::any_of(slices.begin(), slices.end(), [&](const grpc::Slice& slice) {
      return LiesIn(absl::string_view(reinterpret_cast<const char*>(slice.begin()), slice.size()), array);
    });
  };
  EXPECT_TRUE(within(sky->flux()));
  EXPECT_TRUE(within(sky->ivar()));
  EXPECT_GT(alive.use_count(), 1) << "the message keeps the arrays";
  slices.clear();
  EXPECT_EQ(alive.use_count(), 1) << "and lets them go when it was sent";
}

TEST(CopiesInAClient, AFileIsReadPieceByPieceIntoOneMessage) {
  constexpr size_t kBytes = 5 * kChunk + 1000;
  testing::TempFolder folder;
  std::ofstream(folder / "image") << std::string(kBytes, 'x');
  CountingStream stream;
  const size_t before = large_bytes;
  const absl::StatusOr<bool> open =
      client::SendFile<v1::ExtractRequest>(folder / "image", v1::INPUT_IMAGE, &stream);
  EXPECT_LT(large_bytes - before, 2 * kChunk);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ(stream.bytes, kBytes);
  EXPECT_EQ(stream.blocks.size(), 1u);
}

}  // namespace
}  // namespace spexd
