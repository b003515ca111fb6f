// The memory for uploads, which identities share and streams hold, in Extract, Submit and LoadPsf.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/digest/sha256.h"
#include "server/admission/byte_budget.h"
#include "server/server.h"
#include "tests/service/support/harness.h"
#include "tests/support/matchers.h"

namespace spexd::testing {
namespace {

using grpc::StatusCode;

constexpr int64_t kMiB = 1 << 20;

// A call that uploads one input. `token`: that of its identity, "" for none.
class UploadCall {
 public:
  explicit UploadCall(const std::string& token) {
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
  }
  virtual ~UploadCall() = default;
  // Sends the next bytes of the upload; false if the call has ended.
  virtual bool Send(const std::string& bytes) = 0;
  // Reports that the upload is complete.
  virtual void Complete() = 0;
  // Waits for the end of the call.
  virtual Answer End() = 0;

 protected:
  grpc::ClientContext context_;
};

// Sends a chunk of an upload of Extract or Submit.
template <typename Request>
bool SendChunk(grpc::internal::WriterInterface<Request>* stream, const std::string& bytes, uint64_t* sent) {
  Request request;
  request.mutable_chunk()->set_input(v1::INPUT_IMAGE);
  request.mutable_chunk()->set_offset(*sent);
  request.mutable_chunk()->set_payload(bytes);
  *sent += bytes.size();
  return stream->Write(request);
}

class ExtractUpload final : public UploadCall {
 public:
  ExtractUpload(const std::string& token, const std::shared_ptr<grpc::Channel>& channel,
                const v1::JobHeader& header)
      : UploadCall(token), stub_(v1::Extraction::NewStub(channel)), stream_(stub_->Extract(&context_)) {
    SendHeader(stream_.get(), header);
  }
  bool Send(const std::string& bytes) override { return SendChunk(stream_.get(), bytes, &sent_); }
  void Complete() override {
    v1::ExtractRequest request;
    request.mutable_end()->set_input(v1::INPUT_IMAGE);
    stream_->Write(request);
    stream_->WritesDone();
  }
  Answer End() override {
    const grpc::Status status = ReadToTheEnd(stream_.get());
    return Ended(status, context_);
  }

 private:
  const std::unique_ptr<v1::Extraction::Stub> stub_;
  const std::unique_ptr<ExtractStream> stream_;
  uint64_t sent_ = 0;
};

class SubmitUpload final : public UploadCall {
 public:
  SubmitUpload(const std::string& token, const std::shared_ptr<grpc::Channel>& channel,
               const v1::JobHeader& header, const std::string& request_id)
      : UploadCall(token), stub_(v1::Jobs::NewStub(channel)), stream_(stub_->Submit(&context_, &reply_)) {
    v1::SubmitRequest request;
    *request.mutable_header() = Submission(request_id, header);
    stream_->Write(request);
  }
  bool Send(const std::string& bytes) override { return SendChunk(stream_.get(), bytes, &sent_); }
  void Complete() override {
    v1::SubmitRequest request;
    request.mutable_end()->set_input(v1::INPUT_IMAGE);
    stream_->Write(request);
    stream_->WritesDone();
  }
  Answer End() override {
    const grpc::Status status = stream_->Finish();
    return Ended(status, context_);
  }

 private:
  v1::SubmitReply reply_;
  const std::unique_ptr<v1::Jobs::Stub> stub_;
  const std::unique_ptr<grpc::ClientWriter<v1::SubmitRequest>> stream_;
  uint64_t sent_ = 0;
};

class LoadPsfUpload final : public UploadCall {
 public:
  LoadPsfUpload(const std::string& token, const std::shared_ptr<grpc::Channel>& channel, int64_t bytes)
      : UploadCall(token),
        stub_(v1::PsfRegistry::NewStub(channel)),
        stream_(stub_->LoadPsf(&context_, &info_)) {
    v1::LoadPsfRequest request;
    request.mutable_header()->mutable_upload()->set_name("psf.fits");
    request.mutable_header()->mutable_upload()->set_bytes(static_cast<uint64_t>(bytes));
    stream_->Write(request);
  }
  bool Send(const std::string& bytes) override {
    v1::LoadPsfRequest request;
    request.set_payload(bytes);
    return stream_->Write(request);
  }
  void Complete() override { stream_->WritesDone(); }
  Answer End() override {
    const grpc::Status status = stream_->Finish();
    return Ended(status, context_);
  }

 private:
  v1::PsfInfo info_;
  const std::unique_ptr<v1::PsfRegistry::Stub> stub_;
  const std::unique_ptr<grpc::ClientWriter<v1::LoadPsfRequest>> stream_;
};

enum class Kind { kExtract, kSubmit, kLoadPsf };
constexpr Kind kKinds[] = {Kind::kExtract, Kind::kSubmit, Kind::kLoadPsf};

class UploadsTest : public ServiceTest {
 protected:
  UploadsTest() {
    options_.jobs_dir = folder_ / "jobs";
    options_.max_upload_bytes = kMiB;
    options_.max_upload_total_bytes = 4 * kMiB;
  }
  void StartWith(const std::vector<std::string>& identities) {
    std::string text;
    for (const std::string& name : identities)
      absl::StrAppend(&text, name, " submit token sha256:", Sha256Hex("token of " + name), "\n");
    WriteText(folder_ / "identities", text);
    options_.identities = folder_ / "identities";
    Start();
  }
  static std::string TokenOf(const std::string& identity) {
    return identity.empty() ? "" : "token of " + identity;
  }
  std::unique_ptr<UploadCall> Begin(Kind kind, const std::string& identity, const v1::JobHeader& header,
                                    int64_t psf_bytes) {
    switch (kind) {
      case Kind::kExtract:
        return std::make_unique<ExtractUpload>(TokenOf(identity), NewChannel(), header);
      case Kind::kSubmit:
        return std::make_unique<SubmitUpload>(TokenOf(identity), NewChannel(), header,
                                              absl::StrCat("request ", ++submits_));
      case Kind::kLoadPsf:
        return std::make_unique<LoadPsfUpload>(TokenOf(identity), NewChannel(), psf_bytes);
    }
    return nullptr;
  }
  // Begins a call that declares `bytes` bytes and sends none.
  std::unique_ptr<UploadCall> Declare(Kind kind, int64_t bytes, const std::string& identity = "") {
    v1::JobHeader header = PathHeader();
    header.mutable_image()->mutable_upload()->set_name("image.fits");
    header.mutable_image()->mutable_upload()->set_bytes(static_cast<uint64_t>(bytes));
    return Begin(kind, identity, header, bytes);
  }
  // Returns the end of a call with a correct upload.
  Answer Upload(Kind kind, const std::string& identity = "") {
    const std::string bytes =
        kind == Kind::kLoadPsf ? ReadBytes(folder_ / "psf.fits") : RawArrays(kRows, kColumns);
    const auto call = Begin(kind, identity, RawHeader(), static_cast<int64_t>(bytes.size()));
    call->Send(bytes);
    call->Complete();
    return call->End();
  }

 private:
  int submits_ = 0;
};

TEST_F(UploadsTest, OneIdentityHoldsNotAllOfTheMemoryByWhateverCalls) {
  StartWith({"alice", "bob"});
  std::vector<std::unique_ptr<UploadCall>> held;
  for (const Kind kind : kKinds) {
    held.push_back(Declare(kind, kMiB, "bob"));
    held.push_back(Declare(kind, kMiB, "bob"));
  }
  ASSERT_TRUE(Eventually([&] { return Metric("spexd_rejections_total{reason=\"identity_share\"}") == 4; }));
  for (const Kind kind : kKinds) {
    const Answer accepted = Upload(kind, "alice");
    EXPECT_TRUE(accepted.status.ok()) << static_cast<int>(kind) << ": " << accepted.message();
  }
}

TEST_F(UploadsTest, ARefusedIdentityLearnsItsPartAndWhenToComeAgain) {
  StartWith({"alice", "bob"});
  const auto first = Declare(Kind::kLoadPsf, kMiB, "bob"), second = Declare(Kind::kLoadPsf, kMiB, "bob"),
             third = Declare(Kind::kLoadPsf, kMiB, "bob");
  ASSERT_TRUE(Eventually([&] { return Metric("spexd_rejections_total{reason=\"identity_share\"}") == 1; }));
  const Answer refused = Upload(Kind::kSubmit, "bob");
  EXPECT_EQ(refused.status.error_code(), StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.message(),
              HasSubstr("uploads in flight (--max-upload-total-bytes): \"bob\" holds 2097152 bytes"));
  EXPECT_GE(refused.retry_seconds(), 0.5);
}

TEST_F(UploadsTest, UploadsThatOnlyTrickleEndWhenOthersWait) {
  options_.max_upload_total_bytes = 60000;  // a later upload takes 57600
  Start();
  std::vector<std::unique_ptr<UploadCall>> slow;
  for (const Kind kind : kKinds) slow.push_back(Declare(kind, 20000));
  EXPECT_TRUE(Eventually([&] {
    for (const auto& call : slow) call->Send("S");
    return Upload(Kind::kExtract).status.ok();
  }));
  for (const auto& call : slow) {
    const Answer ended = call->End();
    EXPECT_THAT(ended.status,
                StatusIs(StatusCode::RESOURCE_EXHAUSTED, HasSubstr("others waited for memory")));
    EXPECT_GT(ended.retry_seconds(), 0);
  }
  EXPECT_EQ(Metric("spexd_rejections_total{reason=\"slow_upload\"}"), 3);
}

TEST_F(UploadsTest, UploadsThatDoNotComeLeaveTheQueueWhenItIsFull) {
  options_.max_running_jobs = 1;
  options_.max_queued_jobs = 1;
  Start();
  const auto first = Declare(Kind::kExtract, 20000), second = Declare(Kind::kExtract, 20000);
  EXPECT_TRUE(Eventually([&] { return Upload(Kind::kExtract).status.ok(); }));
  EXPECT_THAT(first->End().message(), HasSubstr("others waited"));
}

TEST_F(UploadsTest, UploadsThatDoNotComeStayWhileNobodyWaits) {
  Start();
  const auto idle = Declare(Kind::kSubmit, kMiB);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(Eventually([&] {
    EXPECT_TRUE(Upload(Kind::kLoadPsf).status.ok());
    return std::chrono::steady_clock::now() - begin > ByteBudget::kSlowTime;
  }));
  EXPECT_TRUE(idle->Send("S"));
  EXPECT_EQ(Metric("spexd_rejections_total{reason=\"slow_upload\"}"), 0);
}

}  // namespace
}  // namespace spexd::testing
