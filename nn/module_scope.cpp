#include "nn/module_scope.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "nn/print.h"

namespace isonorm::nn {
namespace {

thread_local const ModuleScope* running = nullptr;  // the innermost one

}  // namespace

// True if a running module is in the same tree as `module`, or borrowed it.
bool ModuleScope::belongs(const Module& module) {
  const auto root_of = [](const Module* m) {
    while (m->parent_) m = m->parent_;
    return m;
  };
  const Module* root = &module;
  for (const Module* m = &module; m; root = m, m = m->parent_)
    if (m == &running->module_) return true;  // the usual case
  for (const ModuleScope* s = running; s; s = s->outer_) {
    if (root_of(&s->module_) == root) return true;
    for (const Module* m = &module; m; m = m->parent_)
      if (std::count(s->module_.borrowed_.begin(), s->module_.borrowed_.end(), m)) return true;
  }
  return false;
}

// The path from the running module to the parent of `module`: owners that are not run themselves, such as a list.
// Starts at the root if no module runs; empty if the running module does not own `module`.
std::string ModuleScope::between(const Module& module) {
  const Module* const from = running ? &running->module_ : nullptr;
  std::string path;
  const Module* owner = module.parent_;
  for (; owner && owner != from && owner->parent_; owner = owner->parent_)
    path = path.empty() ? owner->name() : owner->name() + '.' + path;
  return owner == from || !from ? path : "";
}

// The module's name; empty if the module already runs, because its operator() called another of its operators.
std::string_view ModuleScope::name_of(const Module& module) {
  if (running && &running->module_ == &module) return {};
  return module.name();
}

const Module& ModuleScope::checked(const Module& module) {
  module.check_assigned();
  if (!running || belongs(module) || !grad_enabled() || !module.trains()) return module;
  const Module* root = &module;
  while (root->parent_) root = root->parent_;
  const std::string kind = kind_of(*root);
  const NamedParameter first = root->named_parameters().front();
  check(false, kind_of(running->module_), " runs a ", kind, " (", first.name, ' ', first.tensor.shape(),
        ") that was not given to add(), so nothing would train it; declare the member as ", kind,
        "& layer = add(\"layer\", ", kind, "(...)); where another owner trains it, borrow() it");
  return module;
}

ModuleScope::ModuleScope(const Module& module)
    : module_(checked(module)),
      outer_(running),
      between_(between(module)),
      between_scope_(between_),
      scope_(name_of(module)) {
  running = this;
}

ModuleScope::~ModuleScope() { running = outer_; }

}  // namespace isonorm::nn
