#include "tests/client/support/fake_connection.h"

#include <algorithm>
#include <atomic>

#include "core/base/digest/crc32c.h"
#include "core/base/status_macros.h"
#include "core/model/frame.h"

namespace spexd::testing {
namespace {

constexpr int kRows = 3, kColumns = 6;

template <typename Request>
class FakeStream : public client::JobStream<Request> {
 public:
  FakeStream(Script script, std::vector<Request>* requests)
      : script_(std::move(script)), requests_(requests) {
    requests_->clear();
  }

  bool Write(const Request& request) override {
    requests_->push_back(request);
    return !cancelled_;
  }
  bool WritesDone() override { return true; }
  bool Read(v1::ExtractEvent* event) override {
    if (cancelled_ || next_ >= script_.events.size()) return false;
    *event = script_.events[next_++];
    return true;
  }
  client::CallResult Finish() override {
    if (cancelled_) return {absl::CancelledError("cancelled"), {}};
    return script_.result;
  }
  void Cancel() override { cancelled_ = true; }

 private:
  const Script script_;
  std::vector<Request>* requests_;
  size_t next_ = 0;
  std::atomic<bool> cancelled_ = false;  // Cancel is called from another thread
};

template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace

Script FakeConnection::NextScript() {
  const size_t call = calls++;
  return call < scripts_.size() ? scripts_[call] : Script{{}, {absl::UnavailableError("no script"), {}}};
}

std::unique_ptr<client::ExtractStream> FakeConnection::Extract(Deadline deadline) {
  return std::make_unique<FakeStream<v1::ExtractRequest>>(NextScript(), &requests);
}

std::unique_ptr<client::AnalyseStream> FakeConnection::Analyse(Deadline deadline) {
  return std::make_unique<FakeStream<v1::AnalyseRequest>>(NextScript(), &analyses);
}

absl::StatusOr<v1::Capabilities> FakeConnection::GetCapabilities(Deadline deadline) {
  return v1::Capabilities();
}

absl::StatusOr<v1::PsfInfo> FakeConnection::LoadPsf(const v1::LoadPsfHeader& header,
                                                    const PieceSource& pieces, Deadline deadline) {
  while (header.has_upload()) {
    SPEXD_ASSIGN_OR_RETURN(const std::string piece, pieces());
    if (piece.empty()) break;
    psf_bytes += piece;
  }
  v1::PsfInfo info;
  info.set_hash(header.upload().sha256());
  info.set_name(header.path());
  return info;
}

absl::StatusOr<v1::ListPsfsResponse> FakeConnection::ListPsfs(const v1::ListPsfsRequest& request,
                                                              Deadline deadline) {
  v1::ListPsfsResponse page;
  int next = request.page_token().empty() ? 0 : std::stoi(request.page_token());
  for (int end = std::min(next + 2, psfs); next < end; ++next)
    page.add_psfs()->set_hash(std::to_string(next));
  if (next < psfs) page.set_next_page_token(std::to_string(next));
  page.set_total(psfs);
  return page;
}

absl::Status FakeConnection::UnloadPsf(const std::string& hash, v1::WarmKind kind, Deadline deadline) {
  return absl::OkStatus();
}

v1::ExtractEvent Info(bool model) {
  v1::ExtractEvent event;
  v1::FrameInfo& info = *event.mutable_frame_info();
  info.mutable_grid()->set_first(6000);
  info.mutable_grid()->set_step(0.8);
  info.mutable_grid()->set_count(kEventBins);
  info.set_first_fibre(kEventFirst);
  info.set_fibre_count(kEventFibres);
  info.set_bundles(2);
  info.set_model_rows(model ? kRows : 0);
  info.set_model_columns(model ? kColumns : 0);
  info.set_input_image("/server/image.fits");
  info.set_input_psf("/server/psf.fits");
  info.set_psferr(0.01);
  info.set_version("9.9");
  info.add_image_cards(std::string(80, ' '));
  info.set_last(true);
  return event;
}

void SetChecksum(v1::BundlePart* part) {
  uint32_t crc = 0;
  for (const std::string* bytes :
       {&part->flux(), &part->ivar(), &part->mask(), &part->resolution(), &part->chi2pix()}) {
    crc = ExtendCrc32c(crc, *bytes);
  }
  part->set_crc32c(crc);
}

v1::ExtractEvent Part(int bundle, int first, int count, bool last) {
  v1::ExtractEvent event;
  v1::BundlePart& part = *event.mutable_bundle();
  part.set_bundle(bundle);
  part.set_bundle_first_fibre(bundle == 0 ? kEventFirst : kEventFirst + 2);
  part.set_bundle_fibre_count(bundle == 0 ? 2 : 3);
  part.set_first_fibre(first);
  part.set_fibre_count(count);
  part.set_bins(kEventBins);
  std::vector<float> flux, resolution;
  for (int i = first; i < first + count; ++i) {
    for (int j = 0; j < kEventBins; ++j) flux.push_back(static_cast<float>(100 * i + j));
    for (int k = 0; k < kResolutionDiagonals * kEventBins; ++k)
      resolution.push_back(static_cast<float>(1000 * i + k));
  }
  part.set_flux(Bytes(flux));
  part.set_ivar(Bytes(std::vector<float>(flux.size(), 4)));
  part.set_mask(Bytes(std::vector<uint32_t>(flux.size(), 0)));
  part.set_resolution(Bytes(resolution));
  part.set_chi2pix(Bytes(std::vector<float>(flux.size(), 1)));
  part.set_last(last);
  SetChecksum(&part);
  return event;
}

v1::ExtractEvent Model(int bundle, float value) {
  v1::ExtractEvent event;
  v1::ModelPart& part = *event.mutable_model();
  part.set_bundle(bundle);
  part.set_row_count(kRows);
  part.set_first_column(bundle == 0 ? 0 : 3);
  part.set_column_count(4 - bundle);
  part.set_pixels(Bytes(std::vector<float>(kRows * (4 - bundle), value)));
  part.set_crc32c(Crc32c(part.pixels()));
  return event;
}

v1::ExtractEvent Summary() {
  v1::ExtractEvent event;
  v1::JobSummary& summary = *event.mutable_summary();
  summary.set_job_id("job-1");
  summary.add_bad2dfit(kEventBins + 1);
  summary.set_masked_bins(1);
  summary.set_last(true);
  return event;
}

std::vector<v1::ExtractEvent> GoodEvents() {
  v1::ExtractEvent accepted;
  accepted.mutable_accepted()->set_job_id("job-1");
  return {accepted, Info(), Part(1, 12, 1, false), Part(1, 13, 2), Part(0, 10, 2), Summary()};
}

}  // namespace spexd::testing
