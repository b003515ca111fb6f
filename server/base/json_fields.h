// Fields of a log line.
#ifndef SPEXD_SERVER_BASE_JSON_FIELDS_H_
#define SPEXD_SERVER_BASE_JSON_FIELDS_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace spexd {

// JSON values by their names, in the order given. Not a JSON object: to destroy one, the library takes
// memory, and where there is none that ends the process. So values of the lines of jobs are numbers, strings
// and booleans.
class JsonFields {
 public:
  struct Field {
    template <typename Value>
    Field(std::string key, Value&& value) : key(std::move(key)), value(std::forward<Value>(value)) {}
    std::string key;
    nlohmann::json value;
  };

  JsonFields() = default;
  JsonFields(std::initializer_list<Field> fields) : fields_(fields) {}

  // The value of that name, made if there is none.
  nlohmann::json& operator[](absl::string_view key) {
    for (Field& field : fields_) {
      if (field.key == key) return field.value;
    }
    fields_.emplace_back(std::string(key), nullptr);
    return fields_.back().value;
  }
  std::vector<Field>::const_iterator begin() const { return fields_.begin(); }
  std::vector<Field>::const_iterator end() const { return fields_.end(); }

 private:
  std::vector<Field> fields_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_JSON_FIELDS_H_
