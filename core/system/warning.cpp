#include "core/system/warning.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/system/foreign_text.h"

namespace isonorm {
namespace {

struct Warnings {
  std::mutex mutex;
  std::set<std::string> given;
  WarningHandler handler = [](const std::string& line) {
    std::fputs(text("isonorm: ", printable(line), '\n').c_str(), stderr);
  };
};

Warnings& warnings() {
  static Warnings all;
  return all;
}

}  // namespace

void warn(const std::string& line) {
  Warnings& all = warnings();
  const std::lock_guard lock(all.mutex);
  if (all.given.insert(line).second && all.handler) all.handler(line);
}

WarningHandler set_warning_handler(WarningHandler handler) {
  Warnings& all = warnings();
  const std::lock_guard lock(all.mutex);
  return std::exchange(all.handler, std::move(handler));
}

}  // namespace isonorm
