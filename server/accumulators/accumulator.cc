#include "server/accumulators/accumulator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/digest/sha256.h"
#include "core/base/status_macros.h"
#include "core/products/product_files.h"

namespace spexd {
namespace {

constexpr char kMagic[] = "spexd accumulator 2";
// Maximum bytes of snapshots in a PCA's series: those of 100 frames with 60 sky fibres of 2326 bins.
constexpr int64_t kSeriesBytes = int64_t{64} << 20;
constexpr int64_t kOverheadBytes = int64_t{256} << 10;  // names and numbers beside the arrays, cards aside
constexpr int64_t kKnownBytes = 192;                    // of a frame that is known
constexpr int kUsualComponents = 10;

int64_t TargetBytes(int64_t bins) {
  constexpr int64_t kPerBin = CoaddSums::kRows * static_cast<int64_t>(sizeof(double)) + sizeof(uint32_t);
  return kPerBin * bins + 128;
}

// Of the exposures that coadds remember, beside their names.
int64_t ExposureBytes(int64_t fibres) { return static_cast<int64_t>(sizeof(int64_t)) * fibres + 256; }

int64_t SumsOfPcaBytes(int64_t bins) { return static_cast<int64_t>(sizeof(double)) * bins * (bins + 1); }

int64_t CardBytes(const FrameOrigin& origin) {
  int64_t bytes = 0;
  for (const std::string& card : origin.image_cards) bytes += static_cast<int64_t>(card.size()) + 64;
  return bytes;
}

absl::string_view BytesOf(const void* data, int64_t bytes) {
  return {static_cast<const char*>(data), static_cast<size_t>(bytes)};
}

void WriteGrid(const WavelengthGrid& grid, StateWriter* file) {
  file->Value(grid.first);
  file->Value(grid.step);
  file->Value<int64_t>(grid.count);
}

WavelengthGrid ReadGrid(StateReader* file) {
  WavelengthGrid grid;
  grid.first = file->Value<double>();
  grid.step = file->Value<double>();
  const auto count = file->Value<int64_t>();
  if (count < 0 || count > kMaxWavelengthBins) file->FailAsForeign();
  grid.count = file->ok() ? static_cast<int>(count) : 0;
  return grid;
}

template <typename T>
void WriteOptional(const std::optional<T>& value, StateWriter* file) {
  file->Value<uint8_t>(value.has_value() ? 1 : 0);
  file->Value(value.value_or(T()));
}

template <typename T>
std::optional<T> ReadOptional(StateReader* file) {
  const bool there = file->Value<uint8_t>() != 0;
  const T value = file->Value<T>();
  return there ? std::optional<T>(value) : std::nullopt;
}

void WriteOrigin(const FrameOrigin& origin, StateWriter* file) {
  file->Value<int64_t>(static_cast<int64_t>(origin.image_cards.size()));
  for (const std::string& card : origin.image_cards) file->Text(card);
  for (const std::string* text :
       {&origin.input_image, &origin.input_psf, &origin.original_psf, &origin.version}) {
    file->Text(*text);
  }
  WriteOptional(origin.heliocentric_factor, file);
  WriteOptional(origin.flux_residual, file);
  file->Value(origin.psferr);
  file->Value<uint8_t>(origin.fine_grid_prior ? 1 : 0);
}

FrameOrigin ReadOrigin(StateReader* file) {
  FrameOrigin origin;
  const int64_t cards = file->Count(sizeof(int64_t));
  for (int64_t k = 0; k < cards && file->ok(); ++k) origin.image_cards.push_back(file->Text());
  for (std::string* text : {&origin.input_image, &origin.input_psf, &origin.original_psf, &origin.version})
    *text = file->Text();
  origin.heliocentric_factor = ReadOptional<double>(file);
  origin.flux_residual = ReadOptional<double>(file);
  origin.psferr = file->Value<double>();
  origin.fine_grid_prior = file->Value<uint8_t>() != 0;
  return origin;
}

void WritePca(const SkyPcaSums& pca, StateWriter* file) {
  WriteGrid(pca.grid(), file);
  if (!pca.components().has_value()) return;
  const PcaSums& sums = pca.components()->sums();
  const int64_t bins = sums.products.shape(0);
  for (int64_t j = 0; j < bins; ++j)  // the lower triangle
    file->Values<double>(sums.products.Row(j).first(static_cast<size_t>(j) + 1));
  file->Values<double>(sums.sums);
  file->Value(sums.snapshots);
  file->Value<int64_t>(static_cast<int64_t>(pca.spectra().size()));
  file->Values<int64_t>(pca.spectra());
  file->Value<int64_t>(static_cast<int64_t>(pca.series().size()));
  for (const SkyPcaSums::Kept& kept : pca.series()) {
    file->Text(kept.name);
    file->Value<int64_t>(kept.snapshots.shape(0));
    file->Values<float>(kept.snapshots.flat());
  }
}

void ReadPca(StateReader* file, SkyPcaSums* pca) {
  const WavelengthGrid grid = ReadGrid(file);
  const int64_t bins = grid.count;
  if (bins == 0 || !file->CheckRoom(SumsOfPcaBytes(bins) / 2)) return;
  PcaSums sums;
  sums.products.Assign({bins, bins});
  for (int64_t j = 0; j < bins; ++j)
    file->Values<double>(sums.products.Row(j).first(static_cast<size_t>(j) + 1));
  sums.sums.resize(static_cast<size_t>(bins));
  file->Values<double>(absl::MakeSpan(sums.sums));
  sums.snapshots = file->Value<double>();
  std::vector<int64_t> added(static_cast<size_t>(file->Count(sizeof(int64_t))));
  file->Values<int64_t>(absl::MakeSpan(added));
  std::deque<SkyPcaSums::Kept> series;
  const int64_t frames = file->Count(sizeof(int64_t));
  for (int64_t k = 0; k < frames && file->ok(); ++k) {
    SkyPcaSums::Kept& kept = series.emplace_back();
    kept.name = file->Text();
    const int64_t spectra = file->Count(bins * static_cast<int64_t>(sizeof(float)));
    kept.snapshots.Assign({spectra, bins});
    file->Values<float>(kept.snapshots.flat());
  }
  if (file->ok()) pca->Continue(grid, std::move(sums), std::move(added), std::move(series));
}

void WriteCoaddSums(const CoaddFrameSums& coadd, StateWriter* file) {
  const CoaddFrameSums::State& state = coadd.state();
  WriteGrid(state.grid, file);
  if (state.grid.count == 0) return;
  WriteOrigin(state.origin, file);
  file->Value<int64_t>(static_cast<int64_t>(state.targets.size()));
  for (const auto& [target, sums] : state.targets) {
    for (const int64_t value : {target.id, target.exposures, target.status}) file->Value(value);
    file->Text(target.type);
    file->Value(target.ra);
    file->Value(target.dec);
    file->Values<double>(sums.values.flat());
    file->Values<uint32_t>(sums.masks);
  }
  file->Value<int64_t>(static_cast<int64_t>(state.added.size()));
  for (const AddedExposure& added : state.added) {
    file->Text(added.exposure);
    file->Text(added.name);
    file->Value<int64_t>(static_cast<int64_t>(added.fibres.size()));
    file->Values<int64_t>(added.fibres);
  }
}

CoaddFrameSums ReadCoaddSums(StateReader* file) {
  CoaddFrameSums::State state;
  state.grid = ReadGrid(file);
  if (state.grid.count == 0) return CoaddFrameSums();
  state.origin = ReadOrigin(file);
  const int64_t bins = state.grid.count;
  const int64_t targets = file->Count(TargetBytes(bins) - 128);
  for (int64_t k = 0; k < targets && file->ok(); ++k) {
    auto& [target, sums] = state.targets.emplace_back(CoaddFrameSums::Target{{}, CoaddSums(bins)});
    for (int64_t* value : {&target.id, &target.exposures, &target.status}) *value = file->Value<int64_t>();
    target.type = file->Text();
    target.ra = file->Value<double>();
    target.dec = file->Value<double>();
    file->Values<double>(sums.values.flat());
    file->Values<uint32_t>(absl::MakeSpan(sums.masks));
  }
  const int64_t frames = file->Count(3 * sizeof(int64_t));
  for (int64_t k = 0; k < frames && file->ok(); ++k) {
    AddedExposure& added = state.added.emplace_back();
    added.exposure = file->Text();
    added.name = file->Text();
    added.fibres.resize(static_cast<size_t>(file->Count(sizeof(int64_t))));
    file->Values<int64_t>(absl::MakeSpan(added.fibres));
  }
  return file->ok() ? CoaddFrameSums(std::move(state)) : CoaddFrameSums();
}

std::variant<SkyPcaSums, CoaddFrameSums> EmptySums(const AccumulatorSpec& spec) {
  if (spec.kind == AccumulatorKind::kCoadd) return CoaddFrameSums();
  return SkyPcaSums(spec.pca, kSeriesBytes);
}

}  // namespace

std::string DigestOf(const Frame& frame) {
  Sha256 digest;
  digest.Update(BytesOf(&frame.grid.first, sizeof(double)));
  digest.Update(BytesOf(&frame.grid.step, sizeof(double)));
  const Spectra& spectra = frame.spectra;
  digest.Update(BytesOf(spectra.flux.data(), spectra.flux.size() * 4));
  digest.Update(BytesOf(spectra.ivar.data(), spectra.ivar.size() * 4));
  digest.Update(BytesOf(spectra.mask.data(), spectra.mask.size() * 4));
  return digest.Hex();
}

int64_t PcaAccumulatorBytes(int64_t fibres, int64_t bins) {
  constexpr int64_t kAdding = 20 + 3 * 8;  // per fibre and bin: usable spectra, residuals, snapshots
  return SumsOfPcaBytes(bins) + kSeriesBytes + kAdding * fibres * bins + kOverheadBytes;
}

int64_t SkySubtractedBytes(int64_t fibres, int64_t bins) {
  constexpr int64_t kPerBin = sizeof(float) * (4 + kResolutionDiagonals);
  return kPerBin * fibres * bins;
}

Accumulator::Accumulator(AccumulatorSpec spec)
    : spec_(std::move(spec)), changed_(spec_.created), sums_(EmptySums(spec_)) {}

void Accumulator::Write(StateWriter* file) const {
  file->Text(kMagic);
  file->Text(spec_.owner);
  file->Text(spec_.name);
  file->Value(static_cast<uint8_t>(spec_.kind));
  file->Value(spec_.pca.forget);
  file->Value(spec_.pca.clip);
  file->Value<uint8_t>(spec_.with_sky ? 1 : 0);
  file->Value(spec_.created);
  file->Value(changed_);
  file->Value(frames_);
  file->Value<int64_t>(static_cast<int64_t>(known_.size()));
  for (const Known& known : known_) {
    file->Text(known.digest);
    file->Text(known.job_id);
  }
  if (const auto* pca = std::get_if<SkyPcaSums>(&sums_)) {
    WritePca(*pca, file);
  } else {
    WriteCoaddSums(std::get<CoaddFrameSums>(sums_), file);
  }
}

absl::StatusOr<Accumulator> Accumulator::Read(StateReader* file) {
  AccumulatorSpec spec;
  if (file->Text() != kMagic) file->FailAsForeign();
  spec.owner = file->Text();
  spec.name = file->Text();
  spec.kind = file->Value<uint8_t>() == static_cast<uint8_t>(AccumulatorKind::kCoadd)
                  ? AccumulatorKind::kCoadd
                  : AccumulatorKind::kPca;
  spec.pca.forget = file->Value<double>();
  spec.pca.clip = file->Value<double>();
  spec.with_sky = file->Value<uint8_t>() != 0;
  spec.created = file->Value<double>();
  Accumulator accumulator(std::move(spec));
  accumulator.changed_ = file->Value<double>();
  accumulator.frames_ = file->Value<int64_t>();
  const int64_t known = file->Count(2 * sizeof(int64_t));
  for (int64_t k = 0; k < known && file->ok(); ++k) {
    Known& frame = accumulator.known_.emplace_back();
    frame.digest = file->Text();
    frame.job_id = file->Text();
  }
  if (auto* pca = std::get_if<SkyPcaSums>(&accumulator.sums_)) {
    ReadPca(file, pca);
  } else {
    std::get<CoaddFrameSums>(accumulator.sums_) = ReadCoaddSums(file);
  }
  SPEXD_RETURN_IF_ERROR(file->Finish());
  return accumulator;
}

bool Accumulator::Has(const FrameToAdd& frame) const {
  return std::any_of(known_.begin(), known_.end(), [&frame](const Known& known) {
    return known.digest == frame.digest || known.job_id == frame.job_id;
  });
}

absl::StatusOr<int64_t> Accumulator::BytesWith(const FrameToAdd& frame) const {
  const int64_t bins = frame.frame.grid.count, fibres = frame.frame.spectra.flux.shape(0);
  const int64_t heads =
      kOverheadBytes + kKnownBytes * static_cast<int64_t>(std::min(known_.size() + 1, kMostFrames));
  if (const auto* coadd = std::get_if<CoaddFrameSums>(&sums_)) {
    SPEXD_ASSIGN_OR_RETURN(const int64_t targets, coadd->TargetsWith(frame.frame, frame.name));
    int64_t exposures = ExposureBytes(fibres);
    for (const AddedExposure& added : coadd->state().added)
      exposures += ExposureBytes(static_cast<int64_t>(added.fibres.size()));
    return heads + CardBytes(frame.frame.origin) + targets * TargetBytes(bins) + exposures;
  }
  int64_t series = static_cast<int64_t>(sizeof(float)) * fibres * bins;
  for (const SkyPcaSums::Kept& kept : std::get<SkyPcaSums>(sums_).series())
    series += static_cast<int64_t>(sizeof(float)) * kept.snapshots.size();
  const auto added = static_cast<int64_t>(std::get<SkyPcaSums>(sums_).spectra().size() * sizeof(int64_t));
  return heads + SumsOfPcaBytes(bins) + std::min(series, kSeriesBytes) + added;
}

absl::Status Accumulator::Add(const FrameToAdd& frame, double now) {
  if (auto* pca = std::get_if<SkyPcaSums>(&sums_)) {
    SPEXD_RETURN_IF_ERROR(frame.sky.status());
    SPEXD_RETURN_IF_ERROR(pca->Add(frame.frame, frame.name, {frame.fiberflat, frame.threads, &*frame.sky}));
  } else if (spec_.with_sky) {
    SPEXD_RETURN_IF_ERROR(std::get<CoaddFrameSums>(sums_).Add(frame.frame, frame.name));
  } else {
    SPEXD_RETURN_IF_ERROR(frame.sky.status());
    const Frame subtracted = SkySubtracted(frame.frame, *frame.sky);
    SPEXD_RETURN_IF_ERROR(std::get<CoaddFrameSums>(sums_).Add(subtracted, frame.name));
  }
  known_.push_back({frame.digest, frame.job_id});
  if (known_.size() > kMostFrames) known_.pop_front();
  ++frames_;
  changed_ = now;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Accumulator::File(int components) const {
  if (frames_ == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("accumulator \"", spec_.name, "\": no frame was added yet"));
  }
  if (const auto* pca = std::get_if<SkyPcaSums>(&sums_)) {
    const int count = components > 0 ? components : std::min(kUsualComponents, pca->grid().count);
    SPEXD_ASSIGN_OR_RETURN(const SkyPca solved, pca->Solve(count));
    return SkyPcaFile(solved);
  }
  SPEXD_ASSIGN_OR_RETURN(const CoaddedFrames coadd, std::get<CoaddFrameSums>(sums_).Result());
  return CoaddFile(coadd);
}

double Accumulator::rows() const {
  if (const auto* coadd = std::get_if<CoaddFrameSums>(&sums_))
    return static_cast<double>(coadd->state().targets.size());
  const auto& components = std::get<SkyPcaSums>(sums_).components();
  return components.has_value() ? components->sums().snapshots : 0;
}

const WavelengthGrid& Accumulator::grid() const {
  if (const auto* coadd = std::get_if<CoaddFrameSums>(&sums_)) return coadd->state().grid;
  return std::get<SkyPcaSums>(sums_).grid();
}

}  // namespace spexd
