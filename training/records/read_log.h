// Reads the log of a training that is resumed.
#pragma once

#include <functional>
#include <istream>
#include <string>

namespace isonorm::training {

// Calls `read` with the content of the file. Does nothing if the file is not regular (opening a pipe would block), or
// if this process has it open (/dev/stdout). Throws Error (io) if reading stops before the end.
void read_log(const std::string& path, const std::function<void(std::istream&)>& read);

// Like std::getline(), but throws if a line is longer than 16 MiB.
bool next_line(std::istream& log, std::string& line);

}  // namespace isonorm::training
