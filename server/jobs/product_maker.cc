#include "server/jobs/product_maker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "server/base/retry.h"
#include "server/jobs/product_threads.h"
#include "server/messages/product_messages.h"

namespace spexd {
namespace {

constexpr int64_t kFrameBytesPerBin = sizeof(float) * (4 + kResolutionDiagonals);

}  // namespace

ProductMaker::ProductMaker(const ServerParts& parts, JsonFields log_fields, ProductInputs inputs)
    : parts_(parts),
      log_fields_(std::move(log_fields)),
      asked_(std::move(inputs)),
      fiberflat_(WarmKind::kFiberflat, std::exchange(asked_.fiberflat, std::nullopt), asked_.fiberflat_hash),
      templates_(WarmKind::kTemplates, std::exchange(asked_.templates, std::nullopt), asked_.templates_hash) {
}

std::vector<FileInput*> ProductMaker::files() {
  std::vector<FileInput*> files;
  for (WarmInput* input : {&fiberflat_, &templates_}) {
    if (FileInput* const file = input->file()) files.push_back(file);
  }
  return files;
}

absl::Status ProductMaker::Open(const FileOpener& open) {
  SPEXD_RETURN_IF_ERROR(fiberflat_.Open(parts_.cache, open));
  return templates_.Open(parts_.cache, open);
}

int64_t ProductMaker::BytesOf(const JobPlan& plan, bool velocities) const {
  const int64_t fibres = plan.fibres.count, bins = plan.output_grid.count;
  AnalysisSize size = {fibres, bins, 0, 0, MaxProductThreads(parts_)};
  int64_t bytes = kFrameBytesPerBin * fibres * bins + fiberflat_.bytes();
  if (velocities) {
    bytes += templates_.bytes();
    size.templates = templates_.outline().rows;
    size.samples = templates_.outline().columns;
  }
  return bytes + AnalysisBytes(size);
}

int64_t ProductMaker::Plan(const JobPlan& plan) {
  const int64_t limit = parts_.options->max_product_bytes;
  const auto too_large = [limit](int64_t bytes) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "the products need %d bytes, the server's limit is %d (--max-product-bytes)", bytes, limit));
  };
  const int64_t bytes = BytesOf(plan, false);
  if (bytes > limit) {
    too_large_ = too_large(bytes);
    fiberflat_.Drop();
    templates_.Drop();
    return 0;
  }
  if (!asked_.asks(Product::kVelocity) || !templates_.status().ok()) return bytes;
  const int64_t with_velocities = BytesOf(plan, true);
  if (with_velocities <= limit) return with_velocities;
  templates_.Drop(too_large(with_velocities));
  return bytes;
}

int64_t ProductMaker::MessageBytes(const JobPlan& plan) const {
  int64_t bytes = 0;
  for (const Product product : asked_.asked)
    bytes += ProductMessageBytes(product, plan.fibres.count, plan.output_grid.count);
  return bytes;
}

int64_t ProductMaker::ResultBytes(const JobPlan& plan) const {
  // The frame is in memory although no product can be made.
  if (!too_large_.ok()) return kFrameBytesPerBin * plan.fibres.count * plan.output_grid.count;
  return MessageBytes(plan);
}

void ProductMaker::Send(Product product, std::vector<v1::ExtractEvent> parts, const StageSeconds& took,
                        const Sink& sink) {
  if (!asked_.asks(product) || std::find(sent_.begin(), sent_.end(), product) != sent_.end()) return;
  sent_.push_back(product);
  const auto code = static_cast<absl::StatusCode>(parts[0].product().code());
  const char* const name = InfoOf(product).name;
  parts_.metrics->CountProduct(name, code == absl::StatusCode::kOk);
  if (took.by == "cuda") parts_.metrics->CountProductByDevice(name);
  JsonFields fields = log_fields_;
  fields["product"] = name;
  fields["code"] = CodeLabel(code);
  fields["seconds"] = took.seconds;
  fields["by"] = took.by;
  if (code != absl::StatusCode::kOk) fields["message"] = parts[0].product().error();
  parts_.log->Info("product", fields);
  sink(std::move(parts));
}

void ProductMaker::FailRest(const absl::Status& error, const Sink& sink) {
  for (const Product product : asked_.asked) Send(product, {FailedProduct(product, error)}, {}, sink);
}

AnalysisRequest ProductMaker::RequestOf(const std::stop_token& stop, int threads) const {
  AnalysisRequest request;
  request.lines = asked_.asks(Product::kLines);
  request.velocities = templates_.get() != nullptr;
  request.threads = threads;
  request.stop = stop;
  request.analyser = parts_.analyser;
  request.resident = resident_.get();
  request.fall_back = true;
  if (fiberflat_.get() != nullptr) request.fiberflat = &fiberflat_.get()->fiberflat();
  if (request.velocities) request.templates = &templates_.get()->templates();
  return request;
}

// Makes and sends the products. Returns the error of all products that were not sent.
absl::Status ProductMaker::MakeAll(const Frame& frame, const std::stop_token& stop, const Sink& sink,
                                   int threads) {
  SPEXD_RETURN_IF_ERROR(too_large_);
  fiberflat_.Load(parts_.cache, stop);
  SPEXD_RETURN_IF_ERROR(fiberflat_.status());
  templates_.Load(parts_.cache, stop);
  const AnalysisRequest request = RequestOf(stop, threads);
  ProductLabels labels{frame.fibres, {}};
  if (request.velocities) labels.parameters = request.templates->names;
  const auto observe = [&](Product product, const FrameProducts& products, double seconds) {
    if (stop.stop_requested()) return;
    stages_.push_back({InfoOf(product).name, seconds, MakerOf(product, products)});
    parts_.metrics->ObserveStage(stages_.back().stage, seconds);
    if (asked_.asks(product)) Send(product, CutProduct(product, products, labels), stages_.back(), sink);
  };
  SPEXD_RETURN_IF_ERROR(Analyse(frame, request, observe).status());
  return templates_.status();
}

absl::Status ProductMaker::Make(const Frame& frame, const std::stop_token& stop, const Sink& sink) {
  const absl::Status rest =
      MakeWithProductThreads(parts_, stop, [&](int threads) { return MakeAll(frame, stop, sink, threads); });
  resident_.reset();
  if (stop.stop_requested()) return rest;
  if (!rest.ok()) FailRest(rest, sink);
  return absl::OkStatus();
}

}  // namespace spexd
