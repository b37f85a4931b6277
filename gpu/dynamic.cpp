#include "gpu/dynamic.h"

#include <dlfcn.h>

#include <cstdlib>

#include "core/error.h"
#include "gpu/cuda.h"
#ifdef ISONORM_GPU_EMULATED
#include "tests/emulated_gpu/libraries/cublas_lt.h"
#include "tests/emulated_gpu/libraries/cudnn.h"
#include "tests/emulated_gpu/libraries/nccl.h"
#endif

namespace isonorm::gpu {
namespace {

std::string dotted(int64_t version) { return text(version / 10000, '.', version / 100 % 100, '.', version % 100); }

// The file that contains a function.
std::string path_of(void* function) {
  Dl_info info{};
  return dladdr(function, &info) && info.dli_fname ? info.dli_fname : std::string();
}

constexpr LibraryName kCublasLt{"cuBLASLt", "libcublasLt.so.13", "cublasLtGetVersion"};
constexpr LibraryName kCudnn{"cuDNN", "libcudnn.so.9", "cudnnGetVersion", 90800};
constexpr LibraryName kNccl{"NCCL", "libnccl.so.2", "ncclGetVersion", 21400, [](void* f) {
                              int version = 0;
                              (void)reinterpret_cast<int (*)(int*)>(f)(&version);
                              return static_cast<int64_t>(version);
                            }};

#ifdef ISONORM_GPU_EMULATED

const Library& chosen(const Library& stand_in, const Library& none) {
  return emulated::runtime_settings().libraries ? stand_in : none;
}

#else

// headers: whether the library's headers were found when isonorm was built.
const Library* opened(const LibraryName& name, bool headers) {
  if (!headers) return new Library(name, nullptr, "built without its headers");
  const char* folders = std::getenv("ISONORM_GPU_LIBRARIES");
  return new Library(name, folders ? folders : "");
}

#endif

}  // namespace

Library::Library(const LibraryName& name, std::function<void*(const char*)> functions, std::string why_none)
    : name_(name), functions_(std::move(functions)) {
  facts_.name = name.title;
  facts_.why_none = std::move(why_none);
  if (functions_) take();
}

Library::Library(const LibraryName& name, std::string_view folders) : name_(name) {
  facts_.name = name.title;
  if (folders == "0") {
    facts_.why_none = text(name.file, ": ISONORM_GPU_LIBRARIES is 0");
    return;
  }
  std::string said;
  const auto open = [&](const std::string& file) {
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle) return handle;
    const char* why = dlerror();
    said += (said.empty() ? "" : "; ") + (why ? std::string(why) : file + ": cannot be opened");
    return handle;
  };
  void* handle = nullptr;
  while (!handle && !folders.empty()) {
    const size_t end = std::min(folders.find(':'), folders.size());
    if (end > 0) handle = open(std::string(folders.substr(0, end)) + '/' + name.file);
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  if (!handle) handle = open(name.file);
  if (!handle) {
    facts_.why_none = said;
    return;
  }
  functions_ = [handle](const char* function) { return dlsym(handle, function); };
  take();
}

void Library::take() {
  void* const version = functions_(name_.version);
  if (!version) {
    facts_.why_none = text(name_.file, ": it has no function ", name_.version);
    return;
  }
  version_ = name_.ask(version);
  facts_.path = path_of(version);
  facts_.version = dotted(version_);
  if (version_ < name_.oldest)
    facts_.why_none = text(facts_.path, ": version ", facts_.version, " is older than ", dotted(name_.oldest));
}

LibraryFacts Library::facts() const {
  const std::lock_guard lock(mutex_);
  return facts_;
}

void Library::refused(std::string why) const {
  const std::lock_guard lock(mutex_);
  ++facts_.refusals;
  facts_.refusal = std::move(why);
}

void Library::left_epilogue() const {
  const std::lock_guard lock(mutex_);
  ++facts_.epilogues_left;
}

void* Library::address(const char* name) const {
  check_io(static_cast<bool>(*this), facts_.why_none);
  void* p = functions_(name);
  check_io(p != nullptr, name_.file, ": it has no function ", name);
  return p;
}

#ifdef ISONORM_GPU_EMULATED

const Library& cublas_lt() {
  static const auto& stand_in = *new Library(kCublasLt, &emulated::cublas_lt_function, "");
  static const auto& none = *new Library(kCublasLt, nullptr, "the device is emulated");
  return chosen(stand_in, none);
}
const Library& cudnn() {
  static const auto& stand_in = *new Library(kCudnn, &emulated::cudnn_function, "");
  static const auto& none = *new Library(kCudnn, nullptr, "the device is emulated");
  return chosen(stand_in, none);
}
const Library& nccl_library() {
  static const auto& stand_in = *new Library(kNccl, &emulated::nccl_function, "");
  static const auto& none = *new Library(kNccl, nullptr, "the device is emulated");
  return chosen(stand_in, none);
}

#else

const Library& cublas_lt() {
#ifdef ISONORM_CUBLASLT
  constexpr bool kHeaders = true;
#else
  constexpr bool kHeaders = false;
#endif
  static const auto& library = *opened(kCublasLt, kHeaders);
  return library;
}
const Library& cudnn() {
#ifdef ISONORM_CUDNN
  constexpr bool kHeaders = true;
#else
  constexpr bool kHeaders = false;
#endif
  static const auto& library = *opened(kCudnn, kHeaders);
  return library;
}
const Library& nccl_library() {
  static const auto& library = *opened(kNccl, true);
  return library;
}

#endif

std::vector<LibraryFacts> libraries() { return {cublas_lt().facts(), cudnn().facts()}; }

}  // namespace isonorm::gpu
