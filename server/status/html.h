// A writer of HTML: markup is written as it is, and everything else is escaped.
#ifndef SPEXD_SERVER_STATUS_HTML_H_
#define SPEXD_SERVER_STATUS_HTML_H_

#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "core/base/text.h"

namespace spexd {

class Html {
 public:
  // A piece of markup. Only string literals convert to it.
  class Markup {
   public:
    template <size_t size>
    consteval Markup(const char (&literal)[size]) : text_(literal, size - 1) {}
    absl::string_view text() const { return text_; }

   private:
    absl::string_view text_;
  };

  Html& operator<<(Markup markup) {
    page_.append(markup.text().data(), markup.text().size());
    return *this;
  }
  // Writes text, also within an attribute's double quotes. Control characters are shown as escapes.
  Html& Text(absl::string_view text) {
    for (const char c : EscapeControlCharacters(text)) {
      switch (c) {
        case '&':
          page_ += "&amp;";
          break;
        case '<':
          page_ += "&lt;";
          break;
        case '>':
          page_ += "&gt;";
          break;
        case '"':
          page_ += "&quot;";
          break;
        case '\'':
          page_ += "&#39;";
          break;
        default:
          page_ += c;
      }
    }
    return *this;
  }
  std::string Take() { return std::move(page_); }

 private:
  std::string page_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_STATUS_HTML_H_
