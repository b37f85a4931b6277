// Output files of a command. Checks them before the work begins, so that a bad path does not cost minutes of work.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "equivalence/services/named_files.h"
#include "reports/document.h"

namespace isonorm::tools {

using services::data_input, services::test_data_input, services::NamedFile, services::Written;  // for every verb

// Every command calls it once, before any work, with all files that it writes and reads. Throws as
// services::check_files(). Then reads inputs that are pipes to their end (tools/pipes.h). If an output is standard
// output (/dev/stdout, or a pipe that is also standard output), everything that is printed from then on goes to
// standard error. Every later replacement of a file is checked against these files.
void check_outputs(const services::NamedFiles& files);
inline void check_outputs(const std::vector<NamedFile>& outputs, const std::vector<NamedFile>& inputs) {
  check_outputs({outputs, inputs});
}

// Drops the recording for the file of ISONORM_PROFILE if check_outputs() has not returned, since the file may be an
// input. Called at the end of the program.
void drop_unchecked_profile();

// Throws Error (io) if there is a file at `path` that does not begin with `begin`: it is not isonorm's, and `output`
// would replace it.
void check_ours(const std::string& path, std::string_view begin, const std::string& output);

// Makes the folder and its parents; an empty name means none. Throws Error (io) if they cannot be made, or the folder
// is not writable; UsageError if the name is "-".
void make_folder(const std::string& path);

// Replaces the file's content. Throws Error (io).
void write_file(const std::string& path, const std::string& content);

// Writes a result to the named files. Throws Error (io).
void write(const reports::Document& document, const std::string& report, const std::string& json);
// Prints, and defers errors: if standard output cannot be written, the result still goes to the files.
class Printing {
 public:
  // Calls print() and keeps the first Error that it throws.
  void operator()(const std::function<void()>& print);
  // Throws that error.
  void check() const;

 private:
  std::exception_ptr failure_;
};

// Prints the lines of a result by print_line() and calls write_files(), also if printing fails. Throws Error (io).
void print_and_write(std::string_view lines, const std::function<void()>& write_files);
// Prints a document, or only its closing sentence if `quiet`, and writes it, also if printing fails. Throws Error (io).
void show(const reports::Document& document, bool quiet, const std::string& report, const std::string& json);

}  // namespace isonorm::tools
