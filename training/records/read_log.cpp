#include "training/records/read_log.h"

#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "io/replacement.h"

namespace isonorm::training {

namespace {

constexpr size_t kLongestLogLine = size_t{1} << 24;  // bytes; our lines have a few thousand

}  // namespace

bool next_line(std::istream& log, std::string& line) {
  line.clear();
  for (;;) {
    const int c = log.rdbuf()->sbumpc();
    if (c == '\n') return true;
    if (c == std::char_traits<char>::eof()) {
      log.setstate(std::ios::eofbit);
      return !line.empty();
    }
    check(line.size() < kLongestLogLine, "a line has more than ", kLongestLogLine, " bytes: this is not a log");
    line += static_cast<char>(c);
  }
}

void read_log(const std::string& path, const std::function<void(std::istream&)>& read) {
  if (io::descriptor_of(path) >= 0 || !std::filesystem::is_regular_file(path)) return;
  const Scope scope(path);
  std::ifstream log(path, std::ios::binary);
  log.exceptions(std::ios::badbit);  // else a lack of memory during a read would look like the end of the file
  try {
    read(log);
  } catch (const std::ios_base::failure&) {
    check_io(false, "cannot be read");
  }
  check_io(log.eof(), "cannot be read");  // reading stopped before the end
}

}  // namespace isonorm::training
