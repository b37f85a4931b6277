#include "nn/container.h"

namespace isonorm::nn {

Tensor Sequential::forward(const Tensor& x) {
  Tensor y = x;
  for (const auto& child : children()) y = (*child)(y);
  return y;
}

}  // namespace isonorm::nn
