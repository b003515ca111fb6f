#include "python/native/text.h"

namespace nb = nanobind;

namespace spexd::python {

nb::str TextOf(const std::string& text) {
  PyObject* const decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

nb::object Latin1Of(const std::string& bytes) {
  PyObject* const decoded =
      PyUnicode_DecodeLatin1(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "strict");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal(decoded);
}

nb::list Latin1Of(const std::vector<std::string>& cards) {
  nb::list list;
  for (const std::string& card : cards) list.append(Latin1Of(card));
  return list;
}

std::string BytesOf(nb::handle latin1) {
  PyObject* const encoded = PyUnicode_AsLatin1String(latin1.ptr());
  if (encoded == nullptr) throw nb::python_error();
  const auto bytes = nb::steal<nb::bytes>(encoded);
  return std::string(bytes.c_str(), bytes.size());
}

std::vector<std::string> CardsOf(const nb::list& latin1) {
  std::vector<std::string> cards;
  for (nb::handle card : latin1) cards.push_back(BytesOf(card));
  return cards;
}

}  // namespace spexd::python
