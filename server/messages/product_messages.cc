#include "server/messages/product_messages.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "absl/strings/string_view.h"
#include "core/base/digest/crc32c.h"
#include "core/base/text.h"
#include "proto/product_part.h"
#include "server/messages/convert.h"

namespace spexd {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays travel as they lie in memory");

constexpr size_t kMaxReasonBytes = 1000;
constexpr int64_t kSkyBytesPerBin = 7 * sizeof(float), kSkyBytesPerFibre = 64;
constexpr int64_t kFitBytesPerBin = 2 * sizeof(float), kVelocityBytesPerTarget = 1024;

// Returns the bytes of `of(value)` for each value, as elements of type T.
template <typename T, typename Values, typename Of>
std::string PackedBy(const Values& values, const Of& of) {
  std::string bytes(values.size() * sizeof(T), '\0');
  char* next = bytes.data();
  for (const auto& value : values) {
    const T as = static_cast<T>(of(value));
    std::memcpy(next, &as, sizeof(T));
    next += sizeof(T);
  }
  return bytes;
}

template <typename T, typename Values>
std::string Packed(const Values& values) {
  return PackedBy<T>(values, [](const auto& value) { return value; });
}

// Returns the bytes of `size` values of each star, as float32 [star, value]. `of(star)` is a reference to the
// values; missing ones are NaN.
template <typename Of>
std::string Spectra32(absl::Span<const StarVelocity> stars, size_t size, const Of& of) {
  std::vector<float> values(stars.size() * size, std::numeric_limits<float>::quiet_NaN());
  float* next = values.data();
  for (const StarVelocity& star : stars) {
    const std::vector<double>& row = of(star);
    std::copy_n(row.data(), std::min(size, row.size()), next);
    next += size;
  }
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

v1::ProductPart* Begin(Product product, std::vector<v1::ExtractEvent>* parts) {
  v1::ProductPart* const part = parts->emplace_back().mutable_product();
  part->set_product(static_cast<v1::Product>(product));
  return part;
}

// Returns the elements of the fibres [first, first + count).
template <typename T>
absl::Span<const T> RowsOf(const Array<T, 2>& array, int64_t first, int64_t count) {
  return array.flat().subspan(static_cast<size_t>(first * array.shape(1)),
                              static_cast<size_t>(count * array.shape(1)));
}

void FillSky(const Sky& sky, int64_t first, int64_t count, v1::SkyPart* part) {
  part->set_model(Packed<float>(RowsOf(sky.model, first, count)));
  part->set_model_ivar(PackedBy<float>(RowsOf(sky.model_variance, first, count),
                                       [](double variance) { return variance > 0 ? 1 / variance : 0; }));
  part->set_statistical_ivar(Packed<float>(RowsOf(sky.statistical_ivar, first, count)));
  part->set_mask(Packed<uint32_t>(RowsOf(sky.mask, first, count)));
  part->set_flux(Packed<float>(RowsOf(sky.flux, first, count)));
  part->set_ivar(Packed<float>(RowsOf(sky.ivar, first, count)));
  part->set_throughput(Packed<double>(
      absl::MakeConstSpan(sky.throughput).subspan(static_cast<size_t>(first), static_cast<size_t>(count))));
}

std::vector<v1::ExtractEvent> CutSky(const Sky& sky, const FibreRange& frame) {
  const int64_t fibres = sky.model.shape(0), bins = sky.model.shape(1);
  const int64_t at_once =
      std::max<int64_t>(1, kMaxPayloadBytes / (kSkyBytesPerBin * bins + kSkyBytesPerFibre));
  std::vector<v1::ExtractEvent> parts;
  for (int64_t first = 0; first < fibres; first += at_once) {
    const int64_t count = std::min(at_once, fibres - first);
    v1::ProductPart* const part = Begin(Product::kSky, &parts);
    v1::SkyPart* const out = part->mutable_sky();
    out->set_first_fibre(static_cast<uint32_t>(frame.first + first));
    out->set_fibre_count(static_cast<uint32_t>(count));
    out->set_bins(static_cast<uint32_t>(bins));
    FillSky(sky, first, count, out);
    part->set_last(first + count == fibres);
    if (part->last()) {
      out->set_deconvolved(Packed<double>(sky.deconvolved));
      out->set_sky_rows(Packed<uint32_t>(sky.sky_fibres));
      out->set_rounds(static_cast<uint32_t>(sky.rounds));
      out->set_rejected(static_cast<uint64_t>(sky.rejected));
    }
    part->set_crc32c(*ChecksumOf(*part));
  }
  return parts;
}

void FillVelocities(absl::Span<const StarVelocity> stars, size_t bins, size_t scanned,
                    v1::VelocityPart* part) {
  const auto column = [&](const auto& value) { return PackedBy<double>(stars, value); };
  std::vector<double> values, errors;
  for (const StarVelocity& star : stars) {
    values.insert(values.end(), star.parameters.begin(), star.parameters.end());
    errors.insert(errors.end(), star.parameter_errors.begin(), star.parameter_errors.end());
  }
  part->set_bins(static_cast<uint32_t>(bins));
  part->set_velocity(column([](const StarVelocity& star) { return star.v; }));
  part->set_error(column([](const StarVelocity& star) { return star.error; }));
  part->set_conditional_error(column([](const StarVelocity& star) { return star.conditional_error; }));
  part->set_parameter_values(Packed<double>(values));
  part->set_parameter_errors(Packed<double>(errors));
  part->set_vsini(column([](const StarVelocity& star) { return star.vsini; }));
  part->set_chi2(column([](const StarVelocity& star) { return star.chi2; }));
  part->set_bins_used(PackedBy<uint32_t>(stars, [](const StarVelocity& star) { return star.bins; }));
  part->set_continuum_chi2(column([](const StarVelocity& star) { return star.continuum_chi2; }));
  part->set_dchi2(column([](const StarVelocity& star) { return star.dchi2; }));
  part->set_second_velocity(column([](const StarVelocity& star) { return star.v2; }));
  part->set_flag(PackedBy<uint32_t>(stars, [](const StarVelocity& star) { return star.flag; }));
  part->set_model(Spectra32(
      stars, bins, [](const StarVelocity& star) -> auto& { return star.arms[0].model; }));
  part->set_continuum(Spectra32(
      stars, bins, [](const StarVelocity& star) -> auto& { return star.arms[0].continuum; }));
  part->set_scan(Spectra32(
      stars, scanned, [](const StarVelocity& star) -> auto& { return star.scan; }));
}

// The number of bins is that of the sky, because the service fits velocities to sky-subtracted spectra.
std::vector<v1::ExtractEvent> CutVelocities(const FrameProducts& products, const ProductLabels& labels) {
  const std::vector<StarVelocity>& stars = *products.velocities;
  const size_t bins = static_cast<size_t>(products.sky->model.shape(1));
  const size_t scanned = ScannedVelocities(VelocityOptions()).size();
  const size_t at_once =
      std::max<size_t>(1, kMaxPayloadBytes / (kFitBytesPerBin * bins + kVelocityBytesPerTarget));
  std::vector<v1::ExtractEvent> parts;
  size_t first = 0;
  do {
    const size_t count = std::min(at_once, stars.size() - first);
    v1::ProductPart* const part = Begin(Product::kVelocity, &parts);
    v1::VelocityPart* const out = part->mutable_velocity();
    for (const std::string& name : labels.parameters) out->add_parameters(name);
    out->set_rows(Packed<uint32_t>(absl::MakeConstSpan(products.targets).subspan(first, count)));
    FillVelocities(absl::MakeConstSpan(stars).subspan(first, count), bins, scanned, out);
    first += count;
    part->set_last(first == stars.size());
    part->set_crc32c(*ChecksumOf(*part));
  } while (first < stars.size());
  return parts;
}

std::vector<v1::ExtractEvent> CutLines(const FrameProducts& products) {
  const absl::Span<const LineRedshift> lines = *products.lines;
  std::vector<v1::ExtractEvent> parts;
  v1::ProductPart* const part = Begin(Product::kLines, &parts);
  v1::LinePart* const out = part->mutable_lines();
  out->set_rows(Packed<uint32_t>(products.targets));
  out->set_redshift(PackedBy<double>(lines, [](const LineRedshift& line) { return line.z; }));
  out->set_dchi2(PackedBy<double>(lines, [](const LineRedshift& line) { return line.dchi2; }));
  out->set_gap(PackedBy<double>(lines, [](const LineRedshift& line) { return line.gap; }));
  out->set_second_redshift(PackedBy<double>(lines, [](const LineRedshift& line) { return line.z2; }));
  out->set_lines(PackedBy<uint32_t>(lines, [](const LineRedshift& line) { return line.lines; }));
  out->set_error(PackedBy<double>(lines, [](const LineRedshift& line) { return line.error; }));
  out->set_warning(PackedBy<uint32_t>(lines, [](const LineRedshift& line) { return line.warning; }));
  part->set_last(true);
  part->set_crc32c(*ChecksumOf(*part));
  return parts;
}

}  // namespace

v1::ExtractEvent FailedProduct(Product product, const absl::Status& error) {
  v1::ExtractEvent event;
  v1::ProductPart& part = *event.mutable_product();
  part.set_product(static_cast<v1::Product>(product));
  part.set_code(static_cast<int>(error.code()));
  part.set_error(std::string(CutUtf8(error.message(), kMaxReasonBytes)));
  part.set_last(true);
  return event;
}

std::vector<v1::ExtractEvent> CutProduct(Product product, const FrameProducts& products,
                                         const ProductLabels& labels) {
  if (const absl::Status status = InfoOf(product).StatusIn(products); !status.ok())
    return {FailedProduct(product, status)};
  switch (product) {
    case Product::kSky:
      return CutSky(*products.sky, labels.fibres);
    case Product::kLines:
      return CutLines(products);
    case Product::kVelocity:
      return CutVelocities(products, labels);
  }
  return {};
}

std::vector<v1::ExtractEvent> CutFile(JointProduct product, const absl::StatusOr<JointFile>& file) {
  std::vector<v1::ExtractEvent> parts;
  const auto next = [&] {
    v1::FilePart* const part = parts.emplace_back().mutable_file();
    part->set_file(static_cast<v1::AnalysisFile>(product));
    return part;
  };
  if (!file.ok()) {
    v1::FilePart* const part = next();
    part->set_code(static_cast<int>(file.status().code()));
    part->set_error(std::string(CutUtf8(file.status().message(), kMaxReasonBytes)));
    part->set_last(true);
    return parts;
  }
  for (size_t offset = 0; offset < file->bytes.size(); offset += kMaxPayloadBytes) {
    v1::FilePart* const part = next();
    part->set_bytes(file->bytes.size());
    part->set_offset(offset);
    part->set_payload(file->bytes.substr(offset, kMaxPayloadBytes));
    part->set_crc32c(Crc32c(part->payload()));
    part->set_last(offset + part->payload().size() == file->bytes.size());
    part->set_targets(static_cast<uint32_t>(file->targets));
    part->set_good(static_cast<uint32_t>(file->good));
  }
  return parts;
}

int64_t ProductMessageBytes(Product product, int64_t fibres, int64_t bins) {
  if (product == Product::kSky) return fibres * (kSkyBytesPerBin * bins + kSkyBytesPerFibre) + 16 * bins;
  if (product == Product::kVelocity) return fibres * (kFitBytesPerBin * bins + kVelocityBytesPerTarget);
  return 0;
}

}  // namespace spexd
