// Files that a verb writes. Trouble with them shows before minutes of work, not after.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace isonorm::tools {

// A file or folder as the command line names it, and the option that does. An empty path is none.
struct NamedFile {
  std::string option, path;
};

// Whether two names are of one regular file, whether it is there yet or not.
bool one_file(const std::string& a, const std::string& b);

// Throws UsageError where an output is another output, an input or, where that is a folder, one of the files of
// Fashion-MNIST in it, under whatever name; Error (io) where an output could not be written now.
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

// Makes the folder where it is not there; that in which it lies has to be. Throws Error (io) where nothing could be
// written into it. An empty name is no folder.
void make_folder(const std::string& path);

// Writes `content` as the file's whole content. Throws Error (io).
void write_file(const std::string& path, const std::string& content);

// A file that grows by whole lines, each on the disk's side of the program before the next step.
class LineLog {
 public:
  // Begins anew, or after `kept` bytes of what is there; an empty name is no file. Devices and pipes are written as
  // they are.
  explicit LineLog(const std::string& path, int64_t kept = 0);
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  bool open() const { return file_ != nullptr; }
  void write(const std::string& line);  // with its newline; throws Error (io)

 private:
  std::string path_;
  std::FILE* file_ = nullptr;
};

}  // namespace isonorm::tools
