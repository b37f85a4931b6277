// Warnings: lines that a user should see about input that can still be used.
#pragma once

#include <functional>
#include <string>

namespace isonorm {

// Passes the line to the handler the first time that the process warns with this line. Thread-safe.
void warn(const std::string& line);

using WarningHandler = std::function<void(const std::string& line)>;

// Sets the handler of the process and returns the previous one. The initial handler writes "isonorm: LINE" to stderr.
// An empty handler ignores warnings.
WarningHandler set_warning_handler(WarningHandler handler);

}  // namespace isonorm
