#include "tools/output.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "core/system/profile.h"
#include "core/system/terminal.h"
#include "io/replacement.h"
#include "tools/ending.h"
#include "tools/pipes.h"

namespace isonorm::tools {
namespace {

namespace fs = std::filesystem;

std::optional<services::Registry> registry;  // set by check_outputs()

}  // namespace

void drop_unchecked_profile() {
  if (!registry && !services::profile_output().path.empty() && profile::recording()) profile::stop();
}

void check_outputs(const services::NamedFiles& files) {
  services::Registry checked = services::check_files(files);
  keep_pipes(files.inputs);
  registry = std::move(checked);
  io::replacement_check() = [](const std::string& path, const struct stat& made) {
    registry->check_replacement(path, made);
  };
  const auto is_stdout = [](const NamedFile& output) { return services::is_standard_output(output.path); };
  if (std::ranges::any_of(files.outputs, is_stdout) || is_stdout(services::profile_output()))
    stdout = stderr;  // for printf and the like
}

void check_ours(const std::string& path, std::string_view begin, const std::string& output) {
  check_io(io::begins_with(path, begin), path, ": is in the way: it is written with ", output,
           ", but the file that is there is not of isonorm");
}

void make_folder(const std::string& path) {
  if (path.empty()) return;
  if (path == "-") throw UsageError("- is standard output, not a folder; ./- is a folder named -");
  std::error_code failed;
  fs::create_directories(path, failed);
  const bool there = fs::is_directory(path);
  check_io(there || failed, path, ": is not a folder");
  check_io(there, path, ": cannot be made a folder: ", failed.message());
  services::check_access(path, path, W_OK | X_OK);
}

void write_file(const std::string& path, const std::string& content) {
  io::Replacement file(path);
  file.write(content);
  file.commit();
}

void write(const reports::Document& document, const std::string& report, const std::string& json) {
  if (!json.empty()) write_file(json, to_json(document));
  if (!report.empty()) write_file(report, to_html(document));
}

void Printing::operator()(const std::function<void()>& print) try { print(); } catch (const Error&) {
  if (!failure_) failure_ = std::current_exception();
}

void Printing::check() const {
  if (failure_) std::rethrow_exception(failure_);
}

namespace {

void print_then_write(const std::function<void()>& print, const std::function<void()>& write_files) {
  Printing printing;
  printing(print);
  write_files();
  printing.check();
}

}  // namespace

void print_and_write(std::string_view lines, const std::function<void()>& write_files) {
  const auto print_lines = [lines] {
    for (size_t begin = 0; begin < lines.size();) {
      const size_t end = std::min(lines.find('\n', begin), lines.size());
      print_line(std::string(lines.substr(begin, end - begin)));
      begin = end + 1;
    }
  };
  print_then_write(print_lines, write_files);
}

void show(const reports::Document& document, bool quiet, const std::string& report, const std::string& json) {
  const bool color = wants_color(stdout);
  const size_t width = line_width(stdout);
  const std::string shown = quiet ? closing(document, color, width) + "\n" : to_text(document, color, width);
  print_then_write([&] { print(shown); }, [&] { write(document, report, json); });
}

}  // namespace isonorm::tools
