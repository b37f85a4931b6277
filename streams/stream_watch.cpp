#include "streams/stream_watch.h"

#include <set>

#include "streams/parametrize.h"

namespace isonorm::streams {

StreamWatch::StreamWatch(nn::Module& model, See see) {
  std::set<std::string> norms;
  for (const auto& [path, _] : norms_of(model)) norms.insert(path);
  for (const auto& [path, module] : model.named_modules()) {
    if (!norms.contains(path)) continue;
    hooks_.push_back(
        module->on_forward([see, path = path](const nn::Module&, const Tensor& rows, const Tensor& normed) {
          see(path, rows);
          return normed;
        }));
  }
}

StreamWatch::~StreamWatch() {
  for (nn::ModuleHookHandle& hook : hooks_) hook.remove();
}

}  // namespace isonorm::streams
