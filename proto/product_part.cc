#include "proto/product_part.h"

#include <map>
#include <string>

#include "core/base/digest/crc32c.h"
#include "google/protobuf/descriptor.h"

namespace spexd {

using google::protobuf::FieldDescriptor;

bool Asks(const v1::ProductRequest& request, const ProductInfo& product) {
  const FieldDescriptor* const field = request.GetDescriptor()->FindFieldByName(product.request);
  return request.GetReflection()->HasField(request, field);  // for a bool: whether it is true
}

std::optional<uint32_t> ChecksumOf(const v1::ProductPart& part) {
  const FieldDescriptor* const set =
      part.GetReflection()->GetOneofFieldDescriptor(part, part.GetDescriptor()->FindOneofByName("part"));
  if (set == nullptr) return std::nullopt;
  const google::protobuf::Message& content = part.GetReflection()->GetMessage(part, set);
  std::map<int, const FieldDescriptor*> arrays;
  for (int k = 0; k < content.GetDescriptor()->field_count(); ++k) {
    const FieldDescriptor* const field = content.GetDescriptor()->field(k);
    if (field->type() == FieldDescriptor::TYPE_BYTES) arrays[field->number()] = field;
  }
  uint32_t crc = 0;
  std::string scratch;
  for (const auto& [number, field] : arrays)
    crc = ExtendCrc32c(crc, content.GetReflection()->GetStringReference(content, field, &scratch));
  return crc;
}

}  // namespace spexd
