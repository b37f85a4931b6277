// Libraries that are opened when they are first needed: a program runs without them. Where one is missing, own kernels
// do its work.
#pragma once

#include <string>

namespace isonorm::gpu {

class Library {
 public:
  explicit Library(const char* name);  // "libcublasLt.so.13"; never throws
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  explicit operator bool() const { return handle_ != nullptr; }
  // Why it is not there, in one line.
  const std::string& why_none() const { return why_none_; }
  // Function is the type of the declaration: lib.function<decltype(cublasLtCreate)>("cublasLtCreate").
  // Throws "libcublasLt.so.13: it has no function cublasLtCreate".
  template <class Function> Function* function(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const char* name) const;

  std::string name_, why_none_;
  void* handle_ = nullptr;
};

// Opened by the first call; closed by the end of the process.
const Library& cublas_lt();
const Library& cudnn();

}  // namespace isonorm::gpu
