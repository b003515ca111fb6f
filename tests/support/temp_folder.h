// A separate folder for each test, removed at its end.
#ifndef SPEXD_TESTS_SUPPORT_TEMP_FOLDER_H_
#define SPEXD_TESTS_SUPPORT_TEMP_FOLDER_H_

#include <string>
#include <vector>

namespace spexd::testing {

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Returns the names of its entries, including hidden files, sorted.
  std::vector<std::string> Entries() const;

 private:
  std::string path_;
};

// Read and write whole files as strings. A missing file reads as "".
std::string ReadBytes(const std::string& path);
void WriteBytes(const std::string& path, const std::string& bytes);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_TEMP_FOLDER_H_
