// Converts text of files and messages, which need not be UTF-8, to Python's str. FITS cards are converted
// both ways without loss.
#ifndef SPEXD_PYTHON_NATIVE_TEXT_H_
#define SPEXD_PYTHON_NATIVE_TEXT_H_

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

namespace spexd::python {

// Converts a message. Bytes that are not UTF-8 become replacement characters.
nanobind::str TextOf(const std::string& text);

// Converts bytes as Latin-1, one character each.
nanobind::object Latin1Of(const std::string& bytes);
nanobind::list Latin1Of(const std::vector<std::string>& cards);
// Converts back to bytes. Throws ValueError for characters outside Latin-1.
std::string BytesOf(nanobind::handle latin1);
std::vector<std::string> CardsOf(const nanobind::list& latin1);

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_TEXT_H_
