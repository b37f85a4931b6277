// The files that a command reads and writes, identified by device and inode. No output may be an input or another
// output. Problems with an output appear before minutes of work, not after.
#pragma once

#include <sys/stat.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace isonorm::services {

// How an output is written: as a whole, replacing an existing file (io/replacement.h); in place, line by line; or as
// several files, whose names have another word for the star in the last part of the path.
enum class Written { whole, in_place, several };

// A file or folder given by an option. An empty path means no file.
struct NamedFile {
  std::string option, path;
  Written written = Written::whole;      // outputs only
  std::vector<std::string> beside = {};  // additional files: written in place with an output, or read with an input
  bool binary = false;                   // outputs only: refused if it is a terminal
};

// A regular file: device and inode if it exists, else its canonical path.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  std::string path = {};

  auto operator<=>(const FileId&) const = default;
};
// The file at a path. None for an empty path, a folder, a device or a pipe; any number of outputs may share these.
std::optional<FileId> file_id(const std::string& path);

struct NamedFiles {
  std::vector<NamedFile> outputs, inputs;
};

// The files of --data and --test-data, for any model.
NamedFile data_input(const std::string& path);
NamedFile test_data_input(const std::string& path);

// Returns true if both names lead to the same regular file, which need not exist yet. An empty name leads to no file.
bool one_file(const std::string& a, const std::string& b);
// Returns true if `path` is the file, pipe or socket of standard output. (Two opens of one device, such as a terminal,
// do not disturb each other.)
bool is_standard_output(const std::string& path);
// Throws Error (io) if the file or folder does not allow this access (W_OK, X_OK).
void check_access(const std::string& path, const std::string& file, int mode);

// The files of one command. An input folder stands for the files that hub::open_folder() and Tokenizer read in it. A
// file that a command continues from and then replaces counts only as an output: --checkpoint, --best and --log of
// train.
class Registry {
 public:
  // Throws UsageError if an output is an input or another output. Outputs include their additional files, and their
  // temporary names while they are written.
  Registry(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

  // The same check during the work, before the new file `made` replaces the file at `path`. Throws Error (io).
  void check_replacement(const std::string& path, const struct stat& made);

 private:
  std::map<FileId, std::string> inputs_;   // option name
  std::map<FileId, std::string> written_;  // files written since the start -> path
};

// The file of ISONORM_PROFILE; an empty path if there is none.
NamedFile profile_output();

// Checks all files of a command before any work; the file of ISONORM_PROFILE is an additional output. Throws UsageError
// if an output is an input, another output, or the regular file of standard output or standard error; if a terminal
// would get a binary file; or if a path is "-". Throws Error (io) if an output could not be written now. If it throws,
// recording for ISONORM_PROFILE stops: its file may be an input.
Registry check_files(const NamedFiles& files);

}  // namespace isonorm::services
