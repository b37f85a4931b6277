#include "gpu/dynamic.h"

#include <dlfcn.h>

#include "core/error.h"

namespace isonorm::gpu {

Library::Library(const char* name) : name_(name), handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_) return;
  const char* said = dlerror();
  why_none_ = said ? said : text(name, ": cannot be opened");
}

void* Library::address(const char* name) const {
  check_io(handle_ != nullptr, why_none_);
  void* p = dlsym(handle_, name);
  check_io(p != nullptr, name_, ": it has no function ", name);
  return p;
}

const Library& cublas_lt() {
  static const auto& library = *new Library("libcublasLt.so.13");
  return library;
}
const Library& cudnn() {
  static const auto& library = *new Library("libcudnn.so.9");
  return library;
}

}  // namespace isonorm::gpu
