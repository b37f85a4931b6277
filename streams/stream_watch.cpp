#include "streams/stream_watch.h"

#include "streams/parametrize.h"

namespace isonorm::streams {

StreamWatch::StreamWatch(nn::Module& model, See see) {
  for (const auto& [path, norm] : norms_of(model))
    hooks_.push_back(const_cast<nn::Norm*>(norm)->on_forward(
        [see, path = path](const nn::Module&, const Tensor& rows, const Tensor& normed) {
          see(path, rows);
          return normed;
        }));
}

StreamWatch::~StreamWatch() {
  for (nn::ModuleHookHandle& hook : hooks_) hook.remove();
}

}  // namespace isonorm::streams
