// The first statement of a module's operator(): a stack, per thread, of the modules that run.
#pragma once

#include <string>

#include "nn/module.h"

namespace isonorm::nn {

// During the lifetime of this object, `module` runs in this thread: errors name its path from the module that was
// called first. Throws if no running module has `module` in its tree or borrow()ed it although its parameters take
// gradients and ops are recorded, since no optimizer would train them. A frozen module, or one under NoGrad, may be run
// by any module.
class ModuleScope {
 public:
  [[nodiscard]] explicit ModuleScope(const Module& module);
  explicit ModuleScope(const Module&&) = delete;  // it keeps the reference
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  static const Module& checked(const Module& module);
  static bool belongs(const Module& module);
  static std::string between(const Module& module);
  static std::string_view name_of(const Module& module);

  const Module& module_;
  const ModuleScope* outer_;
  const std::string between_;  // "blocks.1" if the running module calls blocks[1].norm
  Scope between_scope_, scope_;
};

}  // namespace isonorm::nn
