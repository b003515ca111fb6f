#include "proto/assembler/product_assembler.h"

#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "proto/product_part.h"

namespace spexd {
namespace {

constexpr int kMaxParameters = 64;  // most parameters of templates

absl::Status Wrong(const std::string& what) { return absl::InvalidArgumentError(what); }

// Returns the elements of type T in `bytes`, converted to To.
template <typename T, typename To = T>
std::vector<To> Unpacked(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return std::vector<To>(values.begin(), values.end());
}

absl::Status CheckSizes(const char* product, std::initializer_list<const std::string*> arrays, size_t bytes) {
  for (const std::string* array : arrays) {
    if (array->size() != bytes)
      return Wrong(absl::StrFormat("%s: an array of %d bytes, expected %d", product, array->size(), bytes));
  }
  return absl::OkStatus();
}

// Writes the elements of `bytes`, converted by `of`, to the array's rows from `first` on. An array of double
// has float32 in `bytes`.
template <typename T, typename Of>
void PutRows(const std::string& bytes, int64_t first, Array<T, 2>* array, const Of& of) {
  using Element = std::conditional_t<std::is_same_v<T, double>, float, T>;
  T* to = array->data() + first * array->shape(1);
  for (size_t at = 0; at < bytes.size(); at += sizeof(Element)) {
    Element element;
    std::memcpy(&element, bytes.data() + at, sizeof(Element));
    *to++ = of(element);
  }
}
template <typename T>
void PutRows(const std::string& bytes, int64_t first, Array<T, 2>* array) {
  PutRows(bytes, first, array, [](T element) { return element; });
}

}  // namespace

absl::Status ProductAssembler::Add(const v1::ProductPart& part) {
  if (open_.has_value() ? *open_ != part.product() : done_.count(part.product()) > 0)
    return Wrong(absl::StrFormat("parts of product %d out of order", part.product()));
  open_ = part.product();
  if (part.code() != 0) {
    SPEXD_RETURN_IF_ERROR(Fail(part));
  } else {
    const std::optional<uint32_t> crc = ChecksumOf(part);
    if (!crc.has_value()) {
      // A part of a newer version, which this version does not need.
    } else if (*crc != part.crc32c()) {
      return Wrong(
          absl::StrFormat("product %d: checksum %08x, expected %08x", part.product(), *crc, part.crc32c()));
    } else if (part.has_sky()) {
      SPEXD_RETURN_IF_ERROR(AddSky(part.sky()));
    } else if (part.has_velocity()) {
      SPEXD_RETURN_IF_ERROR(AddVelocities(part.velocity()));
    } else {
      SPEXD_RETURN_IF_ERROR(AddLines(part.lines()));
    }
    if (part.last() && part.has_sky()) SPEXD_RETURN_IF_ERROR(EndSky(part.sky()));
    if (part.last() && part.has_velocity()) result_.products.velocities = std::move(stars_);
  }
  if (!part.last()) return absl::OkStatus();
  done_.insert(part.product());
  open_.reset();
  return absl::OkStatus();
}

absl::Status ProductAssembler::Fail(const v1::ProductPart& part) {
  if (!part.last() || part.code() < 0 || part.code() > static_cast<int>(absl::StatusCode::kUnauthenticated))
    return Wrong(absl::StrFormat("product %d: status %d", part.product(), part.code()));
  const absl::Status error(static_cast<absl::StatusCode>(part.code()), part.error());
  for (const ProductInfo& info : kProducts) {
    if (static_cast<int>(info.product) != part.product()) continue;
    std::visit([&](auto member) { result_.products.*member = error; }, info.value);
  }
  return absl::OkStatus();
}

absl::Status ProductAssembler::AddSky(const v1::SkyPart& part) {
  const int64_t first = int64_t{part.first_fibre()} - fibres_.first, count = part.fibre_count();
  if (part.bins() != bins_ || count < 1 || first != sky_fibres_ || first + count > fibres_.count)
    return Wrong("sky: fibres or bins that are not the frame's");
  SPEXD_RETURN_IF_ERROR(CheckSizes(
      "sky",
      {&part.model(), &part.model_ivar(), &part.statistical_ivar(), &part.mask(), &part.flux(), &part.ivar()},
      static_cast<size_t>(4 * count * bins_)));
  SPEXD_RETURN_IF_ERROR(CheckSizes("sky", {&part.throughput()}, static_cast<size_t>(8 * count)));
  if (first == 0) {
    for (Array<double, 2>* array :
         {&sky_.model, &sky_.model_variance, &sky_.statistical_ivar, &sky_.flux, &sky_.ivar}) {
      array->Reshape({fibres_.count, bins_});
    }
    sky_.mask.Reshape({fibres_.count, bins_});
  }
  PutRows(part.model(), first, &sky_.model);
  PutRows(part.model_ivar(), first, &sky_.model_variance, [](double ivar) { return 1 / ivar; });
  PutRows(part.statistical_ivar(), first, &sky_.statistical_ivar);
  PutRows(part.mask(), first, &sky_.mask);
  PutRows(part.flux(), first, &sky_.flux);
  PutRows(part.ivar(), first, &sky_.ivar);
  const std::vector<double> throughput = Unpacked<double>(part.throughput());
  sky_.throughput.insert(sky_.throughput.end(), throughput.begin(), throughput.end());
  sky_fibres_ += count;
  return absl::OkStatus();
}

absl::Status ProductAssembler::EndSky(const v1::SkyPart& part) {
  if (sky_fibres_ != fibres_.count)
    return Wrong(absl::StrFormat("sky: it ended after %d of %d fibres", sky_fibres_, fibres_.count));
  SPEXD_RETURN_IF_ERROR(CheckSizes("sky", {&part.deconvolved()}, static_cast<size_t>(8 * bins_)));
  SPEXD_RETURN_IF_ERROR(AddRows(part.sky_rows(), &sky_.sky_fibres));
  sky_.deconvolved = Unpacked<double>(part.deconvolved());
  sky_.rounds = static_cast<int>(part.rounds());
  sky_.rejected = static_cast<int64_t>(part.rejected());
  result_.products.sky = std::move(sky_);
  return absl::OkStatus();
}

absl::Status ProductAssembler::AddRows(const std::string& bytes, std::vector<int>* rows) const {
  if (bytes.size() % 4 != 0) return Wrong("rows that are not whole numbers");
  for (const uint32_t row : Unpacked<uint32_t>(bytes)) {
    const bool ascends = rows->empty() || static_cast<int64_t>(row) > rows->back();
    if (row >= static_cast<uint32_t>(fibres_.count) || !ascends)
      return Wrong(absl::StrFormat("row %d of a frame of %d, or out of order", row, fibres_.count));
    rows->push_back(static_cast<int>(row));
  }
  return absl::OkStatus();
}

absl::Status ProductAssembler::AddVelocities(const v1::VelocityPart& part) {
  const size_t count = part.rows().size() / 4, numbers = static_cast<size_t>(part.parameters_size());
  const size_t bins = static_cast<size_t>(bins_);
  const std::vector<std::string> names(part.parameters().begin(), part.parameters().end());
  if (part.bins() != bins || numbers > kMaxParameters || (!stars_.empty() && names != result_.parameters))
    return Wrong("velocity: bins or parameters that are not the frame's or the library's");
  SPEXD_RETURN_IF_ERROR(AddRows(part.rows(), &star_rows_));
  SPEXD_RETURN_IF_ERROR(
      CheckSizes("velocity",
                 {&part.velocity(), &part.error(), &part.conditional_error(), &part.vsini(), &part.chi2(),
                  &part.dchi2(), &part.second_velocity(), &part.continuum_chi2()},
                 8 * count));
  SPEXD_RETURN_IF_ERROR(
      CheckSizes("velocity", {&part.parameter_values(), &part.parameter_errors()}, 8 * count * numbers));
  SPEXD_RETURN_IF_ERROR(CheckSizes("velocity", {&part.bins_used(), &part.flag()}, 4 * count));
  SPEXD_RETURN_IF_ERROR(CheckSizes("velocity", {&part.model(), &part.continuum()}, 4 * count * bins));
  const size_t scanned = ScannedVelocities(VelocityOptions()).size();
  SPEXD_RETURN_IF_ERROR(CheckSizes("velocity", {&part.scan()}, 4 * count * scanned));
  result_.parameters = names;
  const auto column = [](const std::string& bytes) { return Unpacked<double>(bytes); };
  const std::vector<double> v = column(part.velocity()), error = column(part.error()),
                            conditional = column(part.conditional_error()), vsini = column(part.vsini()),
                            chi2 = column(part.chi2()), dchi2 = column(part.dchi2()),
                            v2 = column(part.second_velocity()), values = column(part.parameter_values()),
                            errors = column(part.parameter_errors()),
                            continuum_chi2 = column(part.continuum_chi2());
  const auto used = Unpacked<uint32_t, int>(part.bins_used()), flag = Unpacked<uint32_t, int>(part.flag());
  const auto model = Unpacked<float, double>(part.model()),
             continuum = Unpacked<float, double>(part.continuum()),
             scan = Unpacked<float, double>(part.scan());
  for (size_t k = 0; k < count; ++k) {
    const auto row = [k](const std::vector<double>& from, size_t size) {
      return std::vector<double>(from.begin() + k * size, from.begin() + (k + 1) * size);
    };
    StarVelocity& star = stars_.emplace_back();
    star.v = v[k];
    star.error = error[k];
    star.conditional_error = conditional[k];
    star.parameters = row(values, numbers);
    star.parameter_errors = row(errors, numbers);
    star.vsini = vsini[k];
    star.chi2 = chi2[k];
    star.continuum_chi2 = continuum_chi2[k];
    star.bins = used[k];
    star.dchi2 = dchi2[k];
    star.v2 = v2[k];
    star.flag = flag[k];
    ArmVelocity& arm = star.arms.emplace_back();
    if ((star.flag & kVelocityNoData) != 0) continue;
    arm = {star.v, star.conditional_error, star.chi2, star.continuum_chi2, star.bins, {}, {}, {}};
    arm.model = row(model, bins);
    arm.continuum = row(continuum, bins);
    star.scan = row(scan, scanned);
  }
  return absl::OkStatus();
}

absl::Status ProductAssembler::AddLines(const v1::LinePart& part) {
  SPEXD_RETURN_IF_ERROR(AddRows(part.rows(), &line_rows_));
  const size_t count = line_rows_.size();
  SPEXD_RETURN_IF_ERROR(CheckSizes(
      "lines", {&part.redshift(), &part.dchi2(), &part.gap(), &part.second_redshift(), &part.error()},
      8 * count));
  SPEXD_RETURN_IF_ERROR(CheckSizes("lines", {&part.lines(), &part.warning()}, 4 * count));
  const std::vector<double> z = Unpacked<double>(part.redshift()), dchi2 = Unpacked<double>(part.dchi2()),
                            gap = Unpacked<double>(part.gap()), z2 = Unpacked<double>(part.second_redshift()),
                            error = Unpacked<double>(part.error());
  const auto lines = Unpacked<uint32_t, int>(part.lines()), warning = Unpacked<uint32_t, int>(part.warning());
  std::vector<LineRedshift> targets;
  for (size_t k = 0; k < count; ++k)
    targets.push_back({z[k], dchi2[k], gap[k], z2[k], lines[k], error[k], warning[k]});
  result_.products.lines = std::move(targets);
  return absl::OkStatus();
}

absl::StatusOr<NamedProducts> ProductAssembler::Finish() {
  if (open_.has_value()) return Wrong(absl::StrFormat("product %d is not whole", *open_));
  const bool velocities = result_.products.velocities.ok(), lines = result_.products.lines.ok();
  if (velocities && lines && star_rows_ != line_rows_) return Wrong("velocities and lines of other targets");
  result_.products.targets = velocities ? std::move(star_rows_) : std::move(line_rows_);
  return std::move(result_);
}

}  // namespace spexd
