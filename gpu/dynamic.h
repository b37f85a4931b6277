// Libraries that are opened when they are first needed, so that a program runs without them. If one is missing or
// refuses a plan, our own kernels do its work.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "gpu/device.h"

namespace isonorm::gpu {

struct LibraryName {
  const char *title, *file, *version;  // "cuBLASLt", "libcublasLt.so.13", "cublasLtGetVersion"
  int64_t oldest = 0;                  // the oldest usable version; 90800 is 9.8.0
  int64_t (*ask)(void* version) = [](void* f) { return static_cast<int64_t>(reinterpret_cast<size_t (*)()>(f)()); };
};

class Library {
 public:
  // folders: searched before the places that the system knows, separated by colons; "0": the library is not opened.
  Library(const LibraryName& name, std::string_view folders);
  // Finds functions by `functions`; if this is null, why_none says why there are none.
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
  // Records that the library refused a plan and why. Our own kernels compute the plan from now on.
  void refused(std::string why) const;
  // Counts an epilogue for which the library has no algorithm. The library computes the product without it.
  void left_epilogue() const;

 private:
  void* address(const char* name) const;
  void take();  // reads the version by functions_; it may be too old

  LibraryName name_;
  std::function<void*(const char*)> functions_;
  int64_t version_ = 0;
  mutable std::mutex mutex_;
  mutable LibraryFacts facts_;
};

// Opened at the first call, following ISONORM_GPU_LIBRARIES, and open until the process ends. On emulated devices they
// are substitutes if runtime_settings().libraries is set.
const Library& cublas_lt();
const Library& cudnn();
const Library& nccl_library();

}  // namespace isonorm::gpu
