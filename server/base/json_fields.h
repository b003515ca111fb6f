// The fields of a log line.
#ifndef SPEXD_SERVER_BASE_JSON_FIELDS_H_
#define SPEXD_SERVER_BASE_JSON_FIELDS_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace spexd {

// JSON values with their names, in the order in which they were added. This is no nlohmann::json object,
// because the destructor of one allocates memory, and without memory the process would end. For the same
// reason, values in log lines of jobs are only numbers, strings and booleans.
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

  // Returns the value of that name; adds null if there is none.
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
