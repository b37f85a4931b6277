// The files that a verb reads and writes, known by device and inode. No output is an input or another output.
#pragma once

#include <sys/stat.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace isonorm::tools {

// How an output is written: as a whole, replacing the file that was there (io/replacement.h); in place, line by line; or as
// several files, each with another word for the star in the last part of the path.
enum class Written { whole, in_place, several };

// A file or folder as the command line names it, and the option that names it. An empty path is no file.
struct NamedFile {
  std::string option, path;
  Written written = Written::whole;      // of an output
  std::vector<std::string> beside = {};  // further files: written in place with an output, or read with an input
  bool binary = false;                   // of an output: a terminal does not get it
};

// A regular file: device and inode if it exists, else its canonical path.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  std::string path = {};

  auto operator<=>(const FileId&) const = default;
};
// The file that a path leads to. None for an empty path, a folder, a device and a pipe, which any number of outputs may share.
std::optional<FileId> file_id(const std::string& path);

// The files of one verb. An input that is a folder stands for the files that hub::open_folder() and Tokenizer read in it. A file
// that a verb continues from and then replaces is only an output: --checkpoint, --best and --log of train.
class Registry {
 public:
  // Throws UsageError if an output is an input or another output. An output here includes its further files, and its names
  // while it is written.
  Registry(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

  // The same check while the verb runs, before the file at `path` is replaced by the new file `made`. Throws Error (io).
  void check_replacement(const std::string& path, const struct stat& made);

 private:
  std::map<FileId, std::string> inputs_;   // the option
  std::map<FileId, std::string> written_;  // since the start: the path
};

}  // namespace isonorm::tools
