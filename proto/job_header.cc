#include "proto/job_header.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <optional>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/frame/job_options.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"

namespace spexd {
namespace {

using google::protobuf::FieldDescriptor;

const FieldDescriptor* FieldOf(const JobOption& option) {
  return v1::JobHeader::descriptor()->FindFieldByName(option.field);
}

// Returns the value of a field. REQUIRES: the field is a number or a bool.
double NumberIn(const v1::JobHeader& header, const FieldDescriptor* field) {
  const google::protobuf::Reflection& reflection = *header.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(header, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnumValue(header, field);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(header, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(header, field);
    default:
      return reflection.GetDouble(header, field);
  }
}

void SetNumber(const FieldDescriptor* field, double number, v1::JobHeader* header) {
  const google::protobuf::Reflection& reflection = *header->GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.SetBool(header, field, number != 0);
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.SetEnumValue(header, field, static_cast<int>(number));
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection.SetInt32(header, field, static_cast<int32_t>(number));
    case FieldDescriptor::CPPTYPE_UINT32:
      return reflection.SetUInt32(header, field, static_cast<uint32_t>(number));
    default:
      return reflection.SetDouble(header, field, number);
  }
}

}  // namespace

absl::Status CheckFieldsAreKnown(const char* name, const google::protobuf::Message& message) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "the job's %s has field %d, which this version of spexd does not know; leave the option out, "
      "or ask a newer spexd",
      name, unknown.field(0).number()));
}

void SetJobOptions(const JobSpec& spec, v1::JobHeader* header) {
  for (const JobOption& option : kJobOptions) {
    const std::optional<double> number = option.NumberIn(spec);
    if (number.has_value()) SetNumber(FieldOf(option), option.negated ? 1 - *number : *number, header);
  }
  if (spec.trace_degrees != TraceDegrees()) {
    v1::TraceDegrees* const degrees = header->mutable_trace_degrees();
    degrees->set_x_fibre(static_cast<uint32_t>(spec.trace_degrees.x[0]));
    degrees->set_x_wavelength(static_cast<uint32_t>(spec.trace_degrees.x[1]));
    degrees->set_y_fibre(static_cast<uint32_t>(spec.trace_degrees.y[0]));
    degrees->set_y_wavelength(static_cast<uint32_t>(spec.trace_degrees.y[1]));
  }
  if (!spec.grid.has_value()) return;
  header->mutable_grid()->set_first(spec.grid->first);
  header->mutable_grid()->set_step(spec.grid->step);
  header->mutable_grid()->set_count(static_cast<uint32_t>(spec.grid->count));
}

absl::StatusOr<JobSpec> JobOptionsOf(const v1::JobHeader& header) {
  SPEXD_RETURN_IF_ERROR(CheckFieldsAreKnown("header", header));
  SPEXD_RETURN_IF_ERROR(CheckFieldsAreKnown("products", header.products()));
  JobSpec spec;
  for (const JobOption& option : kJobOptions) {
    const FieldDescriptor* const field = FieldOf(option);
    if (field->message_type() != nullptr) continue;
    if (field->has_presence() && !header.GetReflection()->HasField(header, field)) continue;
    const double number = NumberIn(header, field);
    SPEXD_RETURN_IF_ERROR(option.Check(number));
    option.SetNumber(option.negated ? 1 - number : number, &spec);
  }
  if (header.has_trace_degrees()) {
    const v1::TraceDegrees& degrees = header.trace_degrees();
    const auto as_int = [](uint32_t degree) { return static_cast<int>(std::min<uint32_t>(degree, INT_MAX)); };
    spec.trace_degrees.x = {as_int(degrees.x_fibre()), as_int(degrees.x_wavelength())};
    spec.trace_degrees.y = {as_int(degrees.y_fibre()), as_int(degrees.y_wavelength())};
  }
  if (header.has_grid()) {
    const uint32_t count = std::min<uint32_t>(header.grid().count(), INT_MAX);
    spec.grid = WavelengthGrid{header.grid().first(), header.grid().step(), static_cast<int>(count)};
  }
  SPEXD_RETURN_IF_ERROR(CheckJobOptions(spec, header.has_trace_reference()));
  return spec;
}

}  // namespace spexd
