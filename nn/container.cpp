#include "nn/container.h"

#include "nn/print.h"

namespace isonorm::nn {

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& child : children()) y = (*child)(y);
  return y;
}

void Sequential::check_class(bool is_wanted, const Module& layer, const std::type_info& wanted) {
  check(is_wanted, "sequential: layer ", layer.name(), " is a ", kind_of(layer), ", not a ", kind_of(wanted));
}

Sequential Sequential::rebuild() const {
  Sequential made;
  for (size_t i = 0; i < rebuilders_.size(); ++i) {
    const Module& child = *children()[i];
    check(rebuilders_[i], "clone: child '", child.name(), "' is a ", kind_of(child),
          ", whose constructor takes arguments; keep them in a member `options`, or write a member function `",
          kind_of(child), " rebuild() const`");
    made.add(child.name(), rebuilders_[i](child));
  }
  made.rebuilders_ = rebuilders_;
  return made;
}

}  // namespace isonorm::nn
