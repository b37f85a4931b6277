#include "tests/emulated_gpu/device_memory.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tests/emulated_gpu/runtime.h"
#include "tests/emulated_gpu/sanitizers.h"

namespace isonorm::gpu::emulated {
namespace {

constexpr size_t kGap = 256, kPage = 4096, kLarge = size_t{1} << 20;

// Address space of a device. In a dry run, which accesses no memory, more than any device has.
size_t reserved() { return size_t{runtime_settings().dry ? 256u : 64u} << 30; }

int exposed = -1;  // the device whose memory is accessible
const char* volatile running_kernel = nullptr;

void say(const char* s) { (void)!write(STDERR_FILENO, s, std::strlen(s)); }

struct Block {
  size_t bytes, whole;  // whole: including the guard bytes after it
};

struct Memory {
  std::byte *kernels, *copies;  // the two mappings
  size_t span = kGap;           // addresses used so far; guard bytes come before the first block
  size_t in_use = 0;
  std::map<std::byte*, Block> living, leaving;
  std::multimap<size_t, std::byte*> free;

  Memory() : kernels(nullptr), copies(nullptr) {
    map();
    std::memset(copies, 0xff, kGap);
  }
  // Maps memory filled with zeros, at the existing addresses if there are any.
  void map() {
    const int file = memfd_create("emulated device memory", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(reserved())) != 0) std::abort();
    const auto mapped = [&](void* at, int rights) {
      void* p = mmap(at, reserved(), rights, MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0), file, 0);
      if (p == MAP_FAILED) std::abort();
      return static_cast<std::byte*>(p);
    };
    kernels = mapped(kernels, PROT_NONE);
    copies = mapped(copies, PROT_READ | PROT_WRITE);
    close(file);
  }
  // In a child of fork(): maps separate memory and copies the parent's contents.
  void separate() {
    std::vector<std::pair<std::byte*, std::vector<std::byte>>> kept;
    for (const auto* blocks : {&living, &leaving})
      for (const auto& [p, b] : *blocks)
        kept.emplace_back(copy_address(p), std::vector<std::byte>(copy_address(p), copy_address(p) + b.whole));
    map();
    std::memset(copies, 0xff, kGap);
    for (const auto& [at, bytes] : kept) std::memcpy(at, bytes.data(), bytes.size());
    for (const auto& [whole, p] : free)
      if (whole < kLarge) std::memset(copy_address(p), 0xff, whole);
  }
  std::byte* copy_address(std::byte* p) const { return copies + (p - kernels); }
  bool holds(const void* p) const {
    const auto at = reinterpret_cast<uintptr_t>(p), begin = reinterpret_cast<uintptr_t>(kernels);
    return at >= begin && at - begin < reserved();
  }
  // The pages of the block that contains p; if p is null, all pages used so far. Empty beyond them.
  std::span<std::byte> pages(const void* p) const {
    if (!p) return {kernels, (span + kPage - 1) / kPage * kPage};
    auto* at = const_cast<std::byte*>(static_cast<const std::byte*>(p));
    for (const auto* blocks : {&living, &leaving}) {
      auto b = blocks->upper_bound(at);
      if (b == blocks->begin() || at >= (--b)->first + b->second.whole) continue;
      const size_t from = static_cast<size_t>(b->first - kernels) / kPage * kPage,
                   to = (static_cast<size_t>(b->first - kernels) + b->second.whole + kPage - 1) / kPage * kPage;
      return {kernels + from, to - from};
    }
    const size_t page =
        static_cast<size_t>(at - kernels) / kPage * kPage;  // released blocks are checked by their bytes
    return page < span ? std::span(kernels + page, kPage) : std::span<std::byte>();
  }
  bool ones(std::byte* begin, size_t bytes) const {  // in the mapping for copies
    static const std::vector<std::byte> all(kPage, std::byte{0xff});
    for (size_t i = 0; i < bytes; i += kPage)
      if (std::memcmp(begin + i, all.data(), std::min(kPage, bytes - i)) != 0) return false;
    return true;
  }
};

std::vector<Memory*>& opened() {  // by device; lives until the process ends
  static std::vector<Memory*>& all = *new std::vector<Memory*>(kDevicesMost);
  return all;
}
Memory& memory(int device) {
  Memory*& m = opened()[static_cast<size_t>(device)];
  if (!m) {
    m = new Memory;
    watch_accesses();
    [[maybe_unused]] static const int once = pthread_atfork(nullptr, nullptr, [] {
      for (Memory* of_device : opened())
        if (of_device) of_device->separate();
    });
  }
  return *m;
}

// Memory that kernels of the exposed device may access now. It grows block by block, since changing the protection of
// all memory takes far longer than a small kernel.
std::vector<std::span<std::byte>>& shown() {
  static std::vector<std::span<std::byte>>& all = *new std::vector<std::span<std::byte>>;
  return all;
}
std::atomic_flag showing = ATOMIC_FLAG_INIT;  // several OS threads may run one kernel

// False if p lies beyond the addresses used so far.
bool expose(int device, const void* p) {
  while (showing.test_and_set(std::memory_order_acquire)) {
  }
  const std::span<std::byte> pages = memory(device).pages(p);
  if (!pages.empty()) {
    mprotect(pages.data(), pages.size(), PROT_READ | PROT_WRITE);
    shown().push_back(pages);
  }
  showing.clear(std::memory_order_release);
  return !pages.empty();
}

void conceal() {
  for (const std::span<std::byte> pages : shown()) mprotect(pages.data(), pages.size(), PROT_NONE);
  shown().clear();
}

// The first access of a kernel to a block makes the block accessible. For any other access it prints one line that
// names the culprit. The access is then repeated and ends the process.
void on_access(int, siginfo_t* info, void*) {
  const int device = device_of(info->si_addr);
  if (device >= 0 && device == exposed && expose(device, info->si_addr)) return;
  const char digit[2] = {static_cast<char>('0' + device), 0};
  say("emulated cuda: ");
  if (running_kernel) {
    say("kernel ");
    say(running_kernel);
  } else {
    say("host code");
  }
  if (device < 0) {
    say(" touches memory that is nobody's\n");
  } else {
    say(" touches memory of cuda:");
    say(digit);
    say(running_kernel ? ", where it does not run, or beyond all blocks\n" : " outside of a transfer\n");
  }
  std::signal(SIGSEGV, SIG_DFL);
}

}  // namespace

void watch_accesses() {
  if (kAddressChecks || kRaceChecks) return;
  struct sigaction action {};
  action.sa_sigaction = on_access;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

void* allocate_device(int device, size_t bytes) {
  Memory& m = memory(device);
  if (m.in_use + bytes > runtime_settings().memory) return nullptr;
  const size_t whole = (bytes + 255) / 256 * 256 + kGap;
  std::byte* at;
  if (const auto f = m.free.find(whole); f != m.free.end()) {
    at = f->second;
    m.free.erase(f);
    if (whole < kLarge && !runtime_settings().dry && !m.ones(m.copy_address(at), whole))
      throw Fault("device memory was written to after it was released: a block of " + std::to_string(bytes) + " bytes");
  } else {
    if (m.span + whole > reserved()) return nullptr;
    at = m.kernels + m.span;
    m.span += whole;
  }
  if (!runtime_settings().dry) std::memset(m.copy_address(at), 0xff, whole);
  show(at, whole);
  hide(at + bytes, whole - bytes);
  m.living[at] = {bytes, whole};
  m.in_use += bytes;
  return at;
}

bool release_device(int device, void* p) {
  Memory& m = memory(device);
  auto block = m.living.extract(static_cast<std::byte*>(p));
  if (!block) return false;
  m.in_use -= block.mapped().bytes;
  if (runtime_settings().dry) {
    m.free.emplace(block.mapped().whole, block.key());
    return true;
  }
  m.leaving.insert(std::move(block));
  return true;
}

void reclaim(int device) {
  Memory& m = memory(device);
  if (m.leaving.empty()) return;
  check_guards(device, "");
  for (const auto& [p, b] : m.leaving) {
    std::byte* at = m.copy_address(p);
    if (b.whole < kLarge) {
      std::memset(at, 0xff, b.whole);
    } else {  // returns whole pages to the system
      const size_t skip = -reinterpret_cast<uintptr_t>(at) & (kPage - 1);
      madvise(at + skip, (b.whole - skip) & -kPage, MADV_REMOVE);
    }
    hide(p, b.whole);
    m.free.emplace(b.whole, p);
  }
  m.leaving.clear();
}

size_t device_bytes_in_use(int device) { return memory(device).in_use; }

int device_of(const void* p) {
  for (size_t d = 0; d < kDevicesMost; ++d)
    if (opened()[d] && opened()[d]->holds(p)) return static_cast<int>(d);
  return -1;
}

std::byte* reach(const void* p, size_t n) {
  const int device = device_of(p);
  if (device < 0) return nullptr;
  Memory& m = memory(device);
  auto* at = const_cast<std::byte*>(static_cast<const std::byte*>(p));
  for (const auto* blocks : {&m.living, &m.leaving}) {
    auto b = blocks->upper_bound(at);
    if (b == blocks->begin()) continue;
    --b;
    if (static_cast<size_t>(at - b->first) + n <= b->second.bytes) return m.copy_address(at);
  }
  return nullptr;
}

void check_guards(int device, const char* suspects) {
  if (kAddressChecks || runtime_settings().dry) return;
  Memory& m = memory(device);
  const auto complain = [&](const std::string& what) {
    throw Fault("device memory was written to " + what + (*suspects ? " by " : "") + suspects);
  };
  if (!m.ones(m.copies, kGap)) {
    std::memset(m.copies, 0xff, kGap);
    complain("before the first block");
  }
  for (const auto* blocks : {&m.living, &m.leaving})
    for (const auto& [p, b] : *blocks) {
      std::byte* end = m.copy_address(p) + b.bytes;
      if (m.ones(end, b.whole - b.bytes)) continue;
      std::memset(end, 0xff, b.whole - b.bytes);
      complain("past the end of a block of " + std::to_string(b.bytes) + " bytes");
    }
}

Exposure::Exposure(int device, const char* kernel) : outer_(exposed), outer_kernel_(running_kernel) {
  running_kernel = kernel;
  if (device == exposed) return;
  conceal();
  exposed = device;
  if (kAddressChecks || kRaceChecks)
    expose(device, nullptr);  // all at once: sanitizers handle SIGSEGV themselves
  else
    watch_accesses();
}

Exposure::~Exposure() {
  running_kernel = outer_kernel_;
  if (outer_ == exposed) return;
  conceal();
  exposed = outer_;
}

}  // namespace isonorm::gpu::emulated
