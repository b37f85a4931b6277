// The files that a command reads and writes, known by device and inode. No output is an input or another output.
// Trouble with an output shows before minutes of work, not after.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

struct stat;  // of <sys/stat.h>

namespace isonorm::services {

// How an output is written: as a whole, replacing the file that was there (io/replacement.h); in place, line by line;
// or as several files, each with another word for the star in the last part of the path.
enum class Written { whole, in_place, several };

// A file or folder that an option names. An empty path means no file.
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
// The file that a path leads to. None for an empty path, a folder, a device and a pipe, which any number of outputs may
// share.
std::optional<FileId> file_id(const std::string& path);

struct NamedFiles {
  std::vector<NamedFile> outputs, inputs;
};

// The files of --data and --test-data, for any model.
NamedFile data_input(const std::string& path);
NamedFile test_data_input(const std::string& path);

// Returns true if both names lead to the same regular file, which need not exist yet. An empty name leads to no file.
bool one_file(const std::string& a, const std::string& b);
// Returns true if `path` is the file, pipe or socket of standard output. (Opening a device such as a terminal twice
// does no harm.)
bool is_standard_output(const std::string& path);
// Throws Error (io) if the file or folder does not allow this access (W_OK, X_OK).
void check_access(const std::string& path, const std::string& file, int mode);

// The files of a command. An input that is a folder means the files that hub::open_folder() and Tokenizer read in it. A
// file that a command continues from and then replaces is only an output: --checkpoint, --best and --log of train.
class Registry {
 public:
  // Throws UsageError if an output is an input or another output. An output here includes its further files, and its
  // names while it is written.
  Registry(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

  // The same check while the command runs, before the file at `path` is replaced by the new file `made`. Throws Error
  // (io).
  void check_replacement(const std::string& path, const struct stat& made);

 private:
  std::map<FileId, std::string> inputs_;   // option name
  std::map<FileId, std::string> written_;  // files written since the start -> path
};

// The file of ISONORM_PROFILE; an empty path if there is none.
NamedFile profile_output();

// Checks all files that a command reads and writes, before any work; the file of ISONORM_PROFILE is one more output.
// Throws UsageError if an output is an input, another output, a regular file that standard output or error goes to, or
// a binary file for a terminal, or if a path is "-"; Error (io) if an output could not be written now. If it throws,
// nothing is recorded for ISONORM_PROFILE any more: its file may be an input.
Registry check_files(const NamedFiles& files);

}  // namespace isonorm::services
