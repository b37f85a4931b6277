// Reads a log that a training continues.
#pragma once

#include <functional>
#include <istream>
#include <string>

namespace isonorm::training {

// Calls `read` with the content of the file. Does nothing if it is no regular file, since the open of a pipe would wait, or a
// file that this process has open (/dev/stdout). Throws Error (io) if reading stops before the end.
void read_log(const std::string& path, const std::function<void(std::istream&)>& read);

// As std::getline(), but throws if a line is longer than 16 MiB.
bool next_line(std::istream& log, std::string& line);

}  // namespace isonorm::training
