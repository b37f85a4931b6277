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
#include "core/printed.h"
#include "core/system/foreign_text.h"

namespace isonorm::profile {
namespace {

using Clock = std::chrono::steady_clock;

// The marks around a call on a GPU. Their times are read at the end, when the device has passed them.
struct Pending {
  size_t call;
  Mark begin, end;
};

struct Recorder {
  std::mutex mutex;
  Clock::time_point begin;
  std::vector<Call> calls;
  std::vector<Pending> pending;

  double now() const { return std::chrono::duration<double>(Clock::now() - begin).count(); }
} recorder;

constexpr int kCannotBeWritten = 4;  // exit code, as in the program isonorm for files

// Serves ISONORM_PROFILE, for programs that do not use profile.h themselves.
struct WholeProgram {
  const char* wish = std::getenv("ISONORM_PROFILE");

  bool wanted() const { return wish && *wish && std::strcmp(wish, "0") != 0; }
  WholeProgram() {
    if (wanted()) start();
  }
  ~WholeProgram() { finish(); }
  void finish() const {
    if (!wanted() || !recording()) return;
    try {
      const Profile profile = stop();
      std::fputs(tables(profile).c_str(), stderr);
      if (std::strcmp(wish, "1") != 0) write_trace(wish, profile);
    } catch (const std::exception& e) {
      std::fputs((printable(e.what()) + '\n').c_str(), stderr);
      std::_Exit(kCannotBeWritten);
    }
  }
} whole_program;

// A mark of a GPU's clock. The clock is destroyed before the objects of this file, so atexit() finishes a profile of
// the whole program first.
Mark marked(Device device) {
  if (device == kCpu || !device_clock) return {};
  Mark mark = device_clock->mark(device);
  [[maybe_unused]] static const int once = std::atexit([] { whole_program.finish(); });
  return mark;
}

thread_local std::vector<const char*> running;                // kernels, the innermost last
thread_local std::vector<const std::string*> backward_paths;  // of the running backward rules, the innermost last

// Fills in the device time of every call since start(). Waits once for each device, then reads its clock together with
// the host's. Returns the host's time when the last device was done; 0 if no call was on a device.
double read_marks(std::vector<Call>& calls, const std::vector<Pending>& pending) {
  double over = 0;
  std::map<int, std::pair<Mark, double>> now;  // by device: a mark, and the host's time when the device had passed it
  for (const Pending& p : pending) {
    Call& call = calls[p.call];
    auto [at, first] = now.try_emplace(call.device.index);
    if (first) {
      const Mark last = device_clock->mark(call.device);
      device_clock->seconds(last, last);
      at->second = {last, over = recorder.now()};
    }
    call.device_seconds = device_clock->seconds(p.begin, p.end);
    call.device_start = at->second.second - device_clock->seconds(p.begin, at->second.first);
  }
  return over;
}

int this_thread() {
  static std::atomic<int> threads{0};
  thread_local const int index = threads++;
  return index;
}

struct Sum {
  int64_t calls = 0, bytes = 0, flops = 0;
  double forward = 0, backward = 0, host = 0;

  double seconds() const { return forward + backward; }
  void add(const Call& c) {
    ++calls, bytes += c.bytes, flops += c.flops, host += c.seconds;
    (c.backward ? backward : forward) += c.device == kCpu ? c.seconds : c.device_seconds;
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

template <class... A> void line(std::string& out, const char* format, const A&... a) {
  out += printed(format, a...);
  while (out.back() == ' ') out.pop_back();
  out += '\n';
}

// Billions per second, as text; empty if the count or the time is 0.
std::string rate(int64_t count, double seconds) {
  return count > 0 && seconds > 0 ? printed("%.1f", static_cast<double>(count) / seconds / 1e9) : "";
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
  recorder.pending.clear();
  recorder.begin = Clock::now();
  detail::recording = true;
}

Profile stop() {
  check(recording(), "profile: stop without start");
  const std::lock_guard lock(recorder.mutex);
  detail::recording = false;
  const double stopped = recorder.now(), over = read_marks(recorder.calls, recorder.pending);
  recorder.pending.clear();
  return {std::move(recorder.calls), std::max(stopped, over)};
}

Timer::Timer(const char* kernel, int64_t bytes, int64_t flops, Device device)
    : call_{.kernel = kernel,
            .module = backward_paths.empty() ? Scope::path() : *backward_paths.back(),
            .backward = !backward_paths.empty(),
            .thread = this_thread(),
            .start = 0,
            .seconds = 0,
            .bytes = bytes,
            .flops = flops,
            .device = device},
      begin_(marked(device)) {
  running.push_back(kernel);
  call_.start = recorder.now();
}

Timer::~Timer() {
  running.pop_back();
  call_.seconds = recorder.now() - call_.start;
  Mark end;
  try {
    if (begin_) end = device_clock->mark(call_.device);
  } catch (const std::exception&) {
    // The device is lost: the next wait reports it, and this call has no device time.
  }
  const std::lock_guard lock(recorder.mutex);
  if (end) recorder.pending.push_back({recorder.calls.size(), std::move(begin_), std::move(end)});
  recorder.calls.push_back(std::move(call_));
}

const char* running_kernel() { return running.empty() ? "" : running.back(); }

Backward::Backward(const std::string& path) { backward_paths.push_back(&path); }
Backward::~Backward() { backward_paths.pop_back(); }

std::string tables(const Profile& profile) {
  std::map<std::string, Sum> kernels, modules;
  std::set<int> threads, places;  // places: devices, -1 the host
  Sum all;
  for (const Call& c : profile.calls) {
    kernels[c.kernel].add(c), modules[without_numbers(c.module)].add(c), all.add(c);
    threads.insert(c.thread), places.insert(c.device == kCpu ? -1 : c.device.index);
  }
  const bool gpu = !places.empty() && *places.rbegin() >= 0;
  // The last column if a GPU was called, otherwise an empty text.
  const auto host = [&](const char* format, auto value) { return gpu ? printed(format, value) : ""; };
  const auto share = [&](double seconds) { return profile.seconds > 0 ? 100 * seconds / profile.seconds : 0; };
  std::string out;
  const std::string heading = host(" %9s", "host ms");
  line(out, "%-28s %9s %11s %9s %9s %9s%s", "kernel", "calls", "ms", "share", "GB/s", "GFLOP/s", heading);
  for (const auto& [name, sum] : longest_first(kernels))
    line(out, "%-28s %9d %11.2f %7.1f %% %9s %9s%s", name, sum.calls, 1e3 * sum.seconds(), share(sum.seconds()),
         rate(sum.bytes, sum.seconds()), rate(sum.flops, sum.seconds()), host(" %9.2f", 1e3 * sum.host));
  if (threads.size() < 2 && places.size() < 2) {  // otherwise calls overlap
    const double rest = profile.seconds - all.seconds();
    line(out, "%-28s %9s %11.2f %7.1f %%", "between kernels", "", 1e3 * rest, share(rest));
  }
  line(out, "%-28s %9d %11.2f\n", "all", all.calls, 1e3 * profile.seconds);
  line(out, "%-28s %9s %11s %11s %9s%s", "module", "calls", "forward ms", "backward ms", "share", heading);
  for (const auto& [name, sum] : longest_first(modules))
    line(out, "%-28s %9d %11.2f %11.2f %7.1f %%%s", name.empty() ? "(outside of modules)" : name, sum.calls,
         1e3 * sum.forward, 1e3 * sum.backward, share(sum.seconds()), host(" %9.2f", 1e3 * sum.host));
  return out;
}

void write_trace(const std::string& path, const Profile& profile) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  check_io(file != nullptr, path, ": cannot be written");
  std::fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", file.get());
  const char* comma = "\n";
  const auto event = [&](const Call& c, const char* category, int process, int row, double start, double seconds) {
    const std::string entry = printed(
        "%s{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
        "\"args\":{\"module\":\"%s\",\"bytes\":%d,\"flops\":%d}}",
        comma, in_json(c.kernel), category, process, row, 1e6 * start, 1e6 * seconds, in_json(c.module), c.bytes,
        c.flops);
    std::fputs(entry.c_str(), file.get());
    comma = ",\n";
  };
  std::set<int> gpus;
  for (const Call& c : profile.calls) {
    event(c, c.backward ? "backward" : "forward", 1, c.thread, c.start, c.seconds);
    if (c.device == kCpu) continue;
    gpus.insert(c.device.index);
    event(c, "device", 2 + c.device.index, 0, c.device_start, c.device_seconds);
  }
  const auto called = [&](int process, const std::string& name) {
    std::fputs(printed("%s{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"%s\"}}", comma,
                       process, name)
                   .c_str(),
               file.get());
  };
  if (!gpus.empty()) called(1, "host");
  for (int index : gpus) called(2 + index, text(Device{DeviceKind::cuda, index}));
  std::fputs("]}\n", file.get());
  check_io(std::fflush(file.get()) == 0 && std::ferror(file.get()) == 0, path, ": writing failed");
}

}  // namespace isonorm::profile
