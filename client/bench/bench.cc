#include "client/bench/bench.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/bench/machine/host.h"
#include "client/bench/machine/machine_peak.h"
#include "core/base/status_macros.h"
#include "core/extract/cpu/cpu_engine.h"
#include "cuda/loader/choose_analyser.h"

namespace spexd::bench {
namespace {

using Clock = std::chrono::steady_clock;

// The bytes that all threads together copy to measure memory; more than the caches hold.
constexpr size_t kCopiedBytes = size_t{256} << 20, kMinCopiedBytes = size_t{16} << 20;

// The amount of work, which is smaller for an engine whose frames take seconds.
struct Amount {
  int repeats, warmup;
  std::vector<int> in_flight;
};

Amount ChooseAmount(const BenchOptions& options, const std::string& kind) {
  const Amount usual = kind == "cpu" ? Amount{3, 1, {1}} : Amount{9, 3, {1, 2, 4}};
  return {options.repeats.value_or(usual.repeats), options.warmup.value_or(usual.warmup),
          options.in_flight.empty() ? usual.in_flight : options.in_flight};
}

Report Describe(const Inputs& inputs, const ChosenEngine& chosen) {
  Report report;
  report.command = CommandLine();
  report.time = TimeNow();
  report.processor = ProcessorName();
  report.processors = static_cast<int>(std::thread::hardware_concurrency());
  report.engine = chosen.engine->Info();
  report.devices = chosen.engine->Devices();
  report.note = chosen.note;
  report.input = inputs.description;
  report.fibres = inputs.psf->fibres;
  report.bundles = inputs.bundles();
  report.ccd_rows = inputs.psf->rows;
  report.ccd_columns = inputs.psf->columns;
  report.grid = inputs.grid;
  report.image_bytes = inputs.image_bytes();
  report.result_bytes = inputs.result_bytes();
  return report;
}

Peaks FindPeaks(const EngineInfo& engine, const GivenPeaks& given) {
  Peaks peaks;
  if (engine.kind == "cpu") {
    peaks.threads = std::max(engine.threads, 1);
    const int processors = std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
    const int threads = std::min(peaks.threads, processors);
    peaks.flops = given.flops ? *given.flops : PeakFlops(threads);
    peaks.matrix_flops = given.matrix_flops.value_or(peaks.flops);
    peaks.bytes =
        given.bytes ? *given.bytes : PeakBytes(threads, std::max(kMinCopiedBytes, kCopiedBytes / threads));
    peaks.origin = given.flops && given.bytes ? "as given"
                   : given.flops || given.bytes
                       ? "partly as given, partly measured"
                       : absl::StrFormat("measured on %d thread%s", threads, threads == 1 ? "" : "s");
    return peaks;
  }
  peaks.flops = given.flops.value_or(kDeviceFlops);
  peaks.matrix_flops = given.matrix_flops.value_or(kDeviceMatrixFlops);
  peaks.bytes = given.bytes.value_or(kDeviceBytes);
  peaks.link_bytes = given.link_bytes.value_or(kDeviceLinkBytes);
  const bool all = given.flops && given.matrix_flops && given.bytes && given.link_bytes;
  peaks.origin = all ? "as given" : "assumed: an H200's, where --peak flags say no other";
  return peaks;
}

// Raises the peaks to the better of two measurements, before and after the frames, because on a shared
// machine either may be disturbed.
void Raise(const Peaks& other, Peaks* peaks) {
  peaks->flops = std::max(peaks->flops, other.flops);
  peaks->matrix_flops = std::max(peaks->matrix_flops, other.matrix_flops);
  peaks->bytes = std::max(peaks->bytes, other.bytes);
}

absl::StatusOr<CheckReport> Check(Engine* engine, const Inputs& inputs,
                                  const std::vector<BundleResult>& frame) {
  CheckReport report = CheckFrame(inputs, frame);
  if (!report.wrong.empty()) return report;
  std::unique_ptr<Engine> reference;
  if (engine->Info().kind != "cpu") reference = MakeCpuEngine({});
  SPEXD_RETURN_IF_ERROR(CheckBundle(engine, reference.get(), inputs, frame, &report));
  return report;
}

// Returns the device for products, which is the engine's first one.
EngineChoice DeviceOf(const Report& report) {
  return {.device = "cuda", .devices = {report.devices[0].index}};
}

}  // namespace

absl::StatusOr<BenchParts> ParseBenchParts(const std::string& text) {
  BenchParts parts;
  const std::vector<std::string> names = absl::StrSplit(text, ',');
  for (const std::string& part : names) {
    bool* wanted = part == "stages"       ? &parts.stages
                   : part == "frame"      ? &parts.frame
                   : part == "throughput" ? &parts.throughput
                   : part == "cold"       ? &parts.cold
                   : part == "products"   ? &parts.products
                   : part == "traces"     ? &parts.traces
                                          : nullptr;
    if (wanted == nullptr) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "--parts: \"%s\" is none of stages, frame, throughput, cold, products and traces", part));
    }
    *wanted = true;
  }
  return parts;
}

absl::StatusOr<Report> RunBench(const Inputs& inputs, const BenchOptions& options, const EngineMaker& make,
                                const Announce& announce) {
  announce("Making the engine, extracting the first frame");
  ColdStart cold;
  cold.process = options.process_seconds;
  const Clock::time_point start = Clock::now();
  SPEXD_ASSIGN_OR_RETURN(const ChosenEngine chosen, make());
  cold.engine = std::chrono::duration<double>(Clock::now() - start).count();
  Engine* engine = chosen.engine.get();
  std::vector<BundleResult> first;
  const BundleSink keep = [&first](BundleResult bundle) {
    first.push_back(std::move(bundle));
    return absl::OkStatus();
  };
  SPEXD_ASSIGN_OR_RETURN(cold.frame, TimeWithPsf(engine, inputs, inputs.psf, inputs.grid, keep));

  Report report = Describe(inputs, chosen);
  if (options.check) {
    announce("Checking its spectra");
    SPEXD_ASSIGN_OR_RETURN(report.check, Check(engine, inputs, first));
    if (!report.check->wrong.empty()) return report;
  }
  first.clear();
  const Amount amount = ChooseAmount(options, report.engine.kind);
  if (options.parts.cold) report.cold = cold;
  report.stages = options.parts.stages;
  report.frame = options.parts.frame;
  if (report.stages) {
    announce("Counting operations and bytes; measuring what the machine can do");
    const bool cpu = report.engine.kind == "cpu";
    report.floors = FloorOfFrame(*inputs.psf, inputs.grid, inputs.bundle_size,
                                 cpu ? Handover::kInCache : Handover::kInMemory);
    report.peaks = FindPeaks(report.engine, options.peaks);
  }
  if (report.stages || report.frame) {
    announce(absl::StrFormat("Timing frames, one in flight, %d times", amount.repeats));
    SPEXD_ASSIGN_OR_RETURN(report.series,
                           TimeFrames(engine, inputs, amount.repeats, amount.warmup, options.parts.traces));
  }
  for (size_t k = 0; options.parts.throughput && k < amount.in_flight.size(); ++k) {
    for (const PsfKind psf : {PsfKind::kOwn, PsfKind::kPrepared, PsfKind::kMoved}) {
      if (psf == PsfKind::kMoved && !options.parts.traces) continue;
      ThroughputOptions throughput;
      throughput.in_flight = amount.in_flight[k];
      throughput.psf = psf;
      throughput.warmup = amount.warmup;
      throughput.frames = amount.repeats;
      throughput.seconds = options.seconds;
      announce(absl::StrFormat("Timing throughput, %d in flight, %s", throughput.in_flight,
                               psf == PsfKind::kPrepared ? "PSF prepared"
                               : psf == PsfKind::kOwn    ? "each with its own PSF"
                                                         : "each with a moved PSF"));
      SPEXD_ASSIGN_OR_RETURN(Throughput run, TimeThroughput(engine, inputs, throughput));
      report.throughput.push_back(std::move(run));
    }
  }
  if (options.parts.products) {
    announce("Timing products of a frame, on one thread");
    // With a device, one sample suffices, because one thread takes seconds.
    const int repeats = report.engine.kind == "cpu" ? amount.repeats : 1;
    SPEXD_ASSIGN_OR_RETURN(report.products, TimeProducts(inputs.psf->fibres, inputs.grid, repeats));
  }
  if (options.parts.products && report.engine.kind == "cuda") {
    announce("Timing products of a frame, on a GPU");
    SPEXD_ASSIGN_OR_RETURN(const ChosenAnalyser analyser, ChooseAnalyser(DeviceOf(report)));
    const Peaks peaks = FindPeaks(report.engine, options.peaks);
    SPEXD_ASSIGN_OR_RETURN(
        report.device_products,
        TimeProductsOn(analyser.analyser.get(), {report.devices[0].name, peaks.flops, peaks.bytes},
                       inputs.psf->fibres, inputs.grid, amount.repeats));
  }
  if (report.stages) {
    announce("Measuring once more what the machine can do");
    Raise(FindPeaks(report.engine, options.peaks), &report.peaks);
  }
  return report;
}

}  // namespace spexd::bench
