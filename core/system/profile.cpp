#include "core/system/profile.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "core/error.h"
#include "core/system/running_kernel.h"

namespace isonorm::profile {
namespace {

using Clock = std::chrono::steady_clock;

struct Recorder {
  std::mutex mutex;
  Clock::time_point begin;
  std::vector<Call> calls;

  double now() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
} recorder;

constexpr int kCannotBeWritten = 4;  // exit code, that of the program isonorm for files

// ISONORM_PROFILE, for programs that do not know of profiles.
struct WholeProgram {
  const char* wish = std::getenv("ISONORM_PROFILE");

  bool wanted() const { return wish && *wish && std::strcmp(wish, "0") != 0; }
  WholeProgram() {
    if (wanted()) start();
  }
  ~WholeProgram() {
    if (!wanted() || !recording()) return;
    try {
      const Profile profile = stop();
      std::fputs(tables(profile).c_str(), stderr);
      if (std::strcmp(wish, "1") != 0) write_trace(wish, profile);
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
      std::_Exit(kCannotBeWritten);
    }
  }
} whole_program;

thread_local std::vector<const char*> running;                // kernels, the innermost last
thread_local std::vector<const std::string*> backward_paths;  // of the rules that run, the innermost last

int this_thread() {
  static std::atomic<int> threads{0};
  thread_local const int index = threads++;
  return index;
}

struct Sum {
  int64_t calls = 0, bytes = 0, flops = 0;
  double forward = 0, backward = 0;

  double seconds() const { return forward + backward; }
  void add(const Call& c) {
    ++calls, bytes += c.bytes, flops += c.flops;
    (c.backward ? backward : forward) += c.seconds;
  }
};

// "blocks.3.mlp" becomes "blocks.*.mlp".
std::string without_numbers(const std::string& path) {
  std::string result;
  for (size_t i = 0; i < path.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(path[i]));
    const bool number = digit && (result.empty() || result.back() == '.' || result.back() == '*');
    if (!number)
      result += path[i];
    else if (result.empty() || result.back() != '*')
      result += '*';
  }
  return result;
}

std::vector<std::pair<std::string, Sum>> longest_first(const std::map<std::string, Sum>& sums) {
  std::vector<std::pair<std::string, Sum>> rows(sums.begin(), sums.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds() > b.second.seconds(); });
  return rows;
}

template <class... A> void line(std::string& out, const char* format, A... a) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, a...);
  out += buffer;
  while (out.back() == ' ') out.pop_back();
  out += '\n';
}

// Billions per second, as text; nothing where there are none.
std::string rate(int64_t count, double seconds) {
  char buffer[32] = "";
  if (count > 0 && seconds > 0)
    std::snprintf(buffer, sizeof buffer, "%.1f", static_cast<double>(count) / seconds / 1e9);
  return buffer;
}

std::string in_json(const std::string& s) {
  std::string result;
  for (const char c : s) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= ' ') result += c;
  }
  return result;
}

}  // namespace

void start() {
  const std::lock_guard lock(recorder.mutex);
  recorder.calls.clear();
  recorder.begin = Clock::now();
  detail::recording = true;
}

Profile stop() {
  check(recording(), "profile: stop without start");
  const std::lock_guard lock(recorder.mutex);
  detail::recording = false;
  return {std::move(recorder.calls), recorder.now()};
}

Timer::Timer(const char* kernel, int64_t bytes, int64_t flops)
    : call_{.kernel = kernel,
            .module = backward_paths.empty() ? Scope::path() : *backward_paths.back(),
            .backward = !backward_paths.empty(),
            .thread = this_thread(),
            .start = recorder.now(),
            .seconds = 0,
            .bytes = bytes,
            .flops = flops} {
  running.push_back(kernel);
}

Timer::~Timer() {
  running.pop_back();
  call_.seconds = recorder.now() - call_.start;
  const std::lock_guard lock(recorder.mutex);
  recorder.calls.push_back(std::move(call_));
}

const char* running_kernel() { return running.empty() ? "" : running.back(); }

Backward::Backward(const std::string& path) { backward_paths.push_back(&path); }
Backward::~Backward() { backward_paths.pop_back(); }

std::string tables(const Profile& profile) {
  std::map<std::string, Sum> kernels, modules;
  std::set<int> threads;
  Sum all;
  for (const Call& c : profile.calls) {
    kernels[c.kernel].add(c), modules[without_numbers(c.module)].add(c), all.add(c);
    threads.insert(c.thread);
  }
  const auto share = [&](double seconds) { return profile.seconds > 0 ? 100 * seconds / profile.seconds : 0; };
  std::string out;
  line(out, "%-28s %9s %11s %9s %9s %9s", "kernel", "calls", "ms", "share", "GB/s", "GFLOP/s");
  for (const auto& [name, sum] : longest_first(kernels))
    line(out, "%-28s %9lld %11.2f %7.1f %% %9s %9s", name.c_str(), static_cast<long long>(sum.calls),
         1e3 * sum.seconds(), share(sum.seconds()), rate(sum.bytes, sum.seconds()).c_str(),
         rate(sum.flops, sum.seconds()).c_str());
  if (threads.size() < 2) {
    const double rest = profile.seconds - all.seconds();
    line(out, "%-28s %9s %11.2f %7.1f %%", "between kernels", "", 1e3 * rest, share(rest));
  }
  line(out, "%-28s %9lld %11.2f\n", "all", static_cast<long long>(all.calls), 1e3 * profile.seconds);
  line(out, "%-28s %9s %11s %11s %9s", "module", "calls", "forward ms", "backward ms", "share");
  for (const auto& [name, sum] : longest_first(modules))
    line(out, "%-28s %9lld %11.2f %11.2f %7.1f %%", name.empty() ? "(outside of modules)" : name.c_str(),
         static_cast<long long>(sum.calls), 1e3 * sum.forward, 1e3 * sum.backward, share(sum.seconds()));
  return out;
}

void write_trace(const std::string& path, const Profile& profile) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  check_io(file != nullptr, path, ": cannot be written");
  std::fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", file.get());
  const char* comma = "\n";
  for (const Call& c : profile.calls) {
    std::fprintf(file.get(),
                 "%s{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
                 "\"args\":{\"module\":\"%s\",\"bytes\":%lld,\"flops\":%lld}}",
                 comma, in_json(c.kernel).c_str(), c.backward ? "backward" : "forward", c.thread, 1e6 * c.start,
                 1e6 * c.seconds, in_json(c.module).c_str(), static_cast<long long>(c.bytes),
                 static_cast<long long>(c.flops));
    comma = ",\n";
  }
  std::fputs("]}\n", file.get());
  check_io(std::fflush(file.get()) == 0 && std::ferror(file.get()) == 0, path, ": writing failed");
}

}  // namespace isonorm::profile
