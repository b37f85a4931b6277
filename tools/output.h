// Files that a verb writes. Trouble with them shows before minutes of work, not after.
#pragma once

#include <string>
#include <vector>

#include "reports/document.h"

namespace isonorm::tools {

// How an output comes to be: as a whole in place of what was there (io/replacement.h); in its place, line by line; or as
// several files, the star in the last part of the path standing for a word.
enum class Written { whole, in_place, several };

// A file or folder as the command line names it, and the option that does. An empty path is none.
struct NamedFile {
  std::string option, path;
  Written written = Written::whole;      // of an output
  std::vector<std::string> beside = {};  // further files: that an output writes in place, that an input is read from
};

// What is read of a verb's --data: its files, whichever model reads them.
NamedFile data_input(const std::string& path);

// Whether two names are of one regular file, whether it is there yet or not. An empty name is of none.
bool one_file(const std::string& a, const std::string& b);

// To be asked by every verb, before any work, with all that it writes and reads. ISONORM_PROFILE's file is one more
// output; what goes to standard output and error is none of these files either. Throws UsageError where an output,
// whatever it is called and with the names that it has while it is written, is an input, another output or a stream;
// Error (io) where one could not be written now.
void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs);

// Makes the folder where it is not there; that in which it lies has to be. Throws Error (io) where nothing could be
// written into it. An empty name is no folder.
void make_folder(const std::string& path);

// Writes `content` as the file's whole content. Throws Error (io).
void write_file(const std::string& path, const std::string& content);

// Writes a result where a file is named. Throws Error (io).
void write(const reports::Document& document, const std::string& report, const std::string& json);
// Prints it, its closing sentence alone where `quiet`, and then writes it.
void show(const reports::Document& document, bool quiet, const std::string& report, const std::string& json);

}  // namespace isonorm::tools
