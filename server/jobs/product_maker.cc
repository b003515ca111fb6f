#include "server/jobs/product_maker.h"

#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"
#include "server/jobs/warm_file.h"
#include "server/messages/product_messages.h"

namespace spexd {
namespace {

// Threads of one job: more gain little, as parts of the sky are made by one.
constexpr int kMaxThreads = 16;
// Threads of a job whose products a device makes, for what is left to processors. Few, so that many jobs work
// at once: while one has the device, others prepare spectra or convert and send results.
constexpr int kThreadsBesideDevice = 2;
constexpr int64_t kFrameBytesPerBin = sizeof(float) * (4 + kResolutionDiagonals);

// Extractions go first on processors, because somebody waits for their bundles.
void YieldToOthers() {
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, 0, kNice);  // of the calling thread, and of those that it starts
}

}  // namespace

ProductMaker::ProductMaker(const ServerParts& parts, JsonFields log_fields, ProductInputs inputs)
    : parts_(parts), log_fields_(std::move(log_fields)), asked_(std::move(inputs)) {
  fiberflat_.file = std::exchange(asked_.fiberflat, std::nullopt);
  fiberflat_.hash = asked_.fiberflat_hash;
  templates_.file = std::exchange(asked_.templates, std::nullopt);
  templates_.hash = asked_.templates_hash;
}

std::vector<FileInput*> ProductMaker::files() {
  std::vector<FileInput*> files;
  for (Input* input : {&fiberflat_, &templates_}) {
    if (input->file.has_value()) files.push_back(&*input->file);
  }
  return files;
}

absl::Status ProductMaker::OpenInput(Input* input,
                                     const std::function<absl::StatusOr<Source>(FileInput*)>& open) {
  if (!input->hash.empty()) {
    absl::StatusOr<WarmCache::Lease> lease = parts_.cache->Get(input->hash, input->kind);
    input->status = lease.status();
    if (!lease.ok()) return absl::OkStatus();
    const Array<double, 2>& values =
        input->kind == WarmKind::kFiberflat ? lease->fiberflat().values : lease->templates().flux;
    input->outline = {values.shape(0), values.shape(1), 0};
    input->lease.emplace(*std::move(lease));
    return absl::OkStatus();
  }
  SPEXD_ASSIGN_OR_RETURN(input->source, open(&*input->file));
  const absl::StatusOr<InputOutline> outline = CatchExceptions([&] {
    return input->kind == WarmKind::kFiberflat ? ReadFiberflatOutline(*input->source)
                                               : ReadTemplatesOutline(*input->source);
  });
  input->status = outline.status();
  if (outline.ok()) input->outline = *outline;
  return absl::OkStatus();
}

absl::Status ProductMaker::Open(const std::function<absl::StatusOr<Source>(FileInput*)>& open) {
  for (Input* input : {&fiberflat_, &templates_}) {
    if (input->asked()) SPEXD_RETURN_IF_ERROR(OpenInput(input, open));
  }
  return absl::OkStatus();
}

int ProductMaker::max_threads() const {
  return parts_.analyser != nullptr ? kThreadsBesideDevice : kMaxThreads;
}

int64_t ProductMaker::BytesOf(const JobPlan& plan, bool velocities) const {
  const int64_t fibres = plan.fibres.count, bins = plan.output_grid.count;
  AnalysisSize size = {fibres, bins, 0, 0, max_threads()};
  int64_t bytes = kFrameBytesPerBin * fibres * bins;
  const auto add = [&bytes](const Input& input) {
    bytes += input.outline.decode_bytes + (input.source.has_value() ? input.source->memory_bytes() : 0);
  };
  add(fiberflat_);
  if (velocities) {
    add(templates_);
    size.templates = templates_.outline.rows;
    size.samples = templates_.outline.columns;
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
    for (Input* input : {&fiberflat_, &templates_}) input->source.reset();
    return 0;
  }
  if (!asked_.asks(Product::kVelocity) || !templates_.status.ok()) return bytes;
  const int64_t with_velocities = BytesOf(plan, true);
  if (with_velocities <= limit) return with_velocities;
  templates_.status = too_large(with_velocities);
  templates_.source.reset();
  return bytes;
}

int64_t ProductMaker::MessageBytes(const JobPlan& plan) const {
  int64_t bytes = 0;
  for (const Product product : asked_.asked)
    bytes += ProductMessageBytes(product, plan.fibres.count, plan.output_grid.count);
  return bytes;
}

int64_t ProductMaker::ResultBytes(const JobPlan& plan) const {
  // The frame is kept all the same.
  if (!too_large_.ok()) return kFrameBytesPerBin * plan.fibres.count * plan.output_grid.count;
  return MessageBytes(plan);
}

void ProductMaker::Load(Input* input, const std::stop_token& stop) {
  if (!input->status.ok() || !input->source.has_value()) return;
  const Source& source = *input->source;
  absl::StatusOr<WarmCache::Lease> lease = parts_.cache->GetOrLoad(
      source.content_hash(), source.name(), WarmCache::Keep{},
      [&] { return ReadWarmItem(input->kind, source, stop); }, stop, input->kind);
  input->status = lease.status();
  if (lease.ok()) input->lease.emplace(*std::move(lease));
  input->source.reset();
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
  request.velocities = templates_.lease.has_value();
  request.threads = threads;
  request.stop = stop;
  request.analyser = parts_.analyser;
  request.resident = resident_.get();
  request.fall_back = true;
  if (fiberflat_.lease.has_value()) request.fiberflat = fiberflat_.lease->fiberflat();
  if (request.velocities) request.templates = templates_.lease->templates();
  return request;
}

// Returns what is wrong with all that was not sent.
absl::Status ProductMaker::MakeAll(const Frame& frame, const std::stop_token& stop, const Sink& sink,
                                   int threads) {
  SPEXD_RETURN_IF_ERROR(too_large_);
  Load(&fiberflat_, stop);
  SPEXD_RETURN_IF_ERROR(fiberflat_.status);
  Load(&templates_, stop);
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
  return templates_.status;
}

absl::Status ProductMaker::Make(const Frame& frame, const std::stop_token& stop, const Sink& sink) {
  const int threads = static_cast<int>(std::min<int64_t>(max_threads(), parts_.product_threads->limit()));
  SPEXD_ASSIGN_OR_RETURN(const ByteBudget::Reservation reserved,
                         parts_.product_threads->WaitFor(threads, stop));
  absl::Status rest;
  const absl::Status started = CatchExceptions([&] {
    // A thread of its own: what gave way to others cannot be raised again.
    const std::jthread worker([&] {
      YieldToOthers();
      rest = CatchExceptions([&] { return MakeAll(frame, stop, sink, threads); });
    });
    return absl::OkStatus();
  });
  resident_.reset();
  if (stop.stop_requested()) return absl::CancelledError("the job was cancelled");
  rest.Update(started);
  if (!rest.ok()) FailRest(rest, sink);
  return absl::OkStatus();
}

}  // namespace spexd
