// Libraries that are opened when they are first needed: a program runs without them. Where one is missing or refuses, own
// kernels do its work.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "gpu/device.h"

namespace isonorm::gpu {

struct LibraryName {
  const char *title, *file, *version;  // "cuBLASLt", "libcublasLt.so.13", "cublasLtGetVersion"
  int64_t oldest = 0;                  // that will do: 90800 is 9.8.0
  int64_t (*ask)(void* version) = [](void* f) { return static_cast<int64_t>(reinterpret_cast<size_t (*)()>(f)()); };
};

class Library {
 public:
  // folders: where it is looked for, with colons between them, before the places that the system knows; "0": nowhere.
  Library(const LibraryName& name, std::string_view folders);
  // What has its functions, or nothing and why.
  Library(const LibraryName& name, std::function<void*(const char*)> functions, std::string why_none);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  explicit operator bool() const { return facts_.why_none.empty(); }
  LibraryFacts facts() const;
  int64_t version() const { return version_; }  // 90800 for 9.8.0

  // Function is the type of the declaration: lib.function<decltype(cublasLtCreate)>("cublasLtCreate").
  // Throws "libcublasLt.so.13: it has no function cublasLtCreate".
  template <class Function> Function* function(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }
  // Own kernels do the work of a plan from now on, for this reason.
  void refused(std::string why) const;
  // Counts an epilogue for which the library has no algorithm. The library computes the product without it.
  void left_epilogue() const;

 private:
  void* address(const char* name) const;
  void take();  // functions_ are there: its version, which may be too old

  LibraryName name_;
  std::function<void*(const char*)> functions_;
  int64_t version_ = 0;
  mutable std::mutex mutex_;
  mutable LibraryFacts facts_;
};

// Opened by the first call, as ISONORM_GPU_LIBRARIES says; closed by the end of the process. On emulated devices stand-ins
// where runtime_settings().libraries says so.
const Library& cublas_lt();
const Library& cudnn();
const Library& nccl_library();

}  // namespace isonorm::gpu
