#include "core/system/cores.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "core/error.h"
#include "core/printed.h"
#include "core/system/launcher.h"
#include "core/system/start_thread.h"

namespace isonorm {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The cores that the group in `folder` allows; 0: no limit. Quota and period are in microseconds.
double cores_of_group(const std::string& folder) {
  const std::string v2 = first_line(folder + "/cpu.max");  // "max 100000" or "150000 100000"
  const std::string v1 =
      first_line(folder + "/cpu.cfs_quota_us") + ' ' + first_line(folder + "/cpu.cfs_period_us");  // quota -1: no limit
  double quota = 0, period = 0;
  return read_numbers(v2.empty() ? v1 : v2, quota, period) && quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

double cores_of_groups(const std::string& root) {
  double least = 0;
  std::ifstream groups(root + "/proc/self/cgroup");
  // A line is "0::/a/b" in v2, "4:cpu,cpuacct:/a/b" in v1.
  for (std::string number, controllers, path;
       getline(groups, number, ':') && getline(groups, controllers, ':') && getline(groups, path);) {
    const bool v1 = (',' + controllers + ',').find(",cpu,") != std::string::npos;
    if (!v1 && !controllers.empty()) continue;
    const std::string folder = root + (v1 ? "/sys/fs/cgroup/cpu" : "/sys/fs/cgroup");
    for (size_t last = path.size(); last != path.npos; last = path.rfind('/')) {  // the group and its ancestors
      path.resize(last);
      const double cores = cores_of_group(folder + path);
      if (cores > 0 && (least == 0 || cores < least)) least = cores;
    }
  }
  return least;
}

Cores mask_of(pid_t thread) {
  constexpr size_t most = 1024;  // sets of 1024 cores each
  Cores cores;
  for (std::vector<cpu_set_t> set(1); set.size() <= most; set.resize(2 * set.size())) {
    const size_t bytes = set.size() * sizeof set[0];
    if (sched_getaffinity(thread, bytes, set.data()) == 0) {
      for (int core = 0; core < static_cast<int>(8 * bytes); ++core)
        if (CPU_ISSET_S(static_cast<size_t>(core), bytes, set.data())) cores.push_back(core);
      break;
    }
    if (errno != EINVAL) break;  // EINVAL: the kernel knows more cores than the sets hold
  }
  return cores;
}

namespace {

bool contains_all(const Cores& set, const Cores& part) { return std::ranges::includes(set, part); }

void insert(Cores& cores, int core) {
  const auto place = std::ranges::lower_bound(cores, core);
  if (place == cores.end() || *place != core) cores.insert(place, core);
}

// The cores in libgomp's places if it has pinned the thread with this mask to one place, else none. Places may
// include cores outside the mask that the process began with. omp_get_num_procs() is the number of cores in that mask,
// so only the first cores up to this number count. LLVM's runtime is not asked, because its functions pin the thread
// that calls them.
Cores openmp_cores(const Cores& mask) {
  const auto places = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_num_places"));
  const auto size = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "omp_get_place_num_procs"));
  const auto ids = reinterpret_cast<void (*)(int, int*)>(dlsym(RTLD_DEFAULT, "omp_get_place_proc_ids"));
  const auto processors = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_num_procs"));
  Dl_info library;
  if (!places || !size || !ids || !processors || !dladdr(reinterpret_cast<void*>(places), &library) ||
      std::string_view(library.dli_fname).find("libgomp") == std::string_view::npos)
    return {};
  const auto most = static_cast<size_t>(std::max(1, processors()));
  bool pinned = false;
  Cores all;
  for (int p = 0; p < places(); ++p) {
    Cores place(static_cast<size_t>(std::max(0, size(p))));
    ids(p, place.data());
    for (const int core : place)
      if (all.size() < most) insert(all, core);
    std::ranges::sort(place);
    pinned = pinned || contains_all(place, mask);
  }
  return pinned ? all : Cores();
}

// The cores in a list that the kernel writes, such as "0-3,8". Empty if the list is malformed.
Cores core_list(std::string_view list) {
  Cores cores;
  while (!list.empty()) {
    const std::string_view range = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), range.size() + 1));
    int first = 0, last = 0;
    if (!read_number(range.substr(0, range.find('-')), first)) return {};
    last = first;
    if (const size_t dash = range.find('-'); dash != range.npos && !read_number(range.substr(dash + 1), last))
      return {};
    for (int core = first; core <= last; ++core) insert(cores, core);
  }
  return cores;
}

// Returns true if the cores are hyperthreads of one physical core.
bool within_one_core(const Cores& cores) {
  if (cores.empty()) return false;
  const std::string siblings =
      first_line(text("/sys/devices/system/cpu/cpu", cores[0], "/topology/thread_siblings_list"));
  return cores.size() == 1 || contains_all(core_list(siblings), cores);
}

// The name by which this process was executed, without the folder. If that was a link, its name and not its target's.
std::string executed_name() {
  const auto* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  return path ? std::filesystem::path(path).filename() : "";
}

}  // namespace

Placement placement() {
  const std::string program = executed_name();
  const LocalRanks ranks = local_ranks([](const char* name) -> const char* { return std::getenv(name); }, program);
  Placement p{.mask = mask_of(0), .ranks = ranks.count, .allocated = ranks.allocated, .quota = cores_of_groups("")};
  p.openmp = openmp_cores(p.mask);
  p.bound_by_default = ranks.bound_by_default && within_one_core(p.openmp.empty() ? p.mask : p.openmp);
  if (ranks.variable)
    if (const pid_t launcher = launcher_of(ranks.variable); launcher > 0) p.launcher = mask_of(launcher);
  p.machine =
      p.launcher.empty() ? static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) : static_cast<int>(p.launcher.size());
  return p;
}

CoreUse core_use(const Placement& p) {
  CoreUse use{.cores = p.openmp.empty() ? p.mask : p.openmp, .ranks = p.ranks};
  if (p.bound_by_default && contains_all(p.launcher, use.cores)) use.cores = p.launcher;
  use.pinned = use.cores.size() > p.mask.size();
  const int cores = std::max(1, static_cast<int>(use.cores.size()));
  use.machine = std::max(p.machine, cores);
  if (p.allocated > 0) use.machine = std::min(use.machine, p.allocated);
  use.share = use.machine / p.ranks;
  if (p.quota > 0) use.share = std::min(use.share, static_cast<int>(std::ceil(p.quota / p.ranks)));
  use.share = std::max(1, use.share);
  use.threads = std::min(cores, use.share);
  return use;
}

const CoreUse& core_use() {
  static const CoreUse use = core_use(placement());
  return use;
}

void run_on_all_cores() noexcept try {
  const Cores& cores = core_use().cores;
  if (!core_use().pinned) return;
  std::vector<cpu_set_t> set(static_cast<size_t>(cores.back()) / CPU_SETSIZE + 1);
  const size_t bytes = set.size() * sizeof set[0];
  for (const int core : cores) CPU_SET_S(static_cast<size_t>(core), bytes, set.data());
  // If the kernel refuses, the thread stays on the core of the thread that started it.
  sched_setaffinity(0, bytes, set.data());
} catch (...) {  // there is no memory for the set
}

}  // namespace isonorm
