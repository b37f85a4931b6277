// Weights as rows meet them: the parameters of a linear map, given the stream's coordinates.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace isonorm::nn {

// x weight^T + bias: [out, in] and [out], the bias undefined where there is none.
struct Mapped {
  Tensor weight, bias;
};

// Keeps what parameters are mapped to, its weight packed (core/packing.h), for forward passes without a graph.
class KeptMapping {
 public:
  // `parameters` are all that `mapped` was made from. A parameter that is not mapped may be its own mapping.
  void keep(Mapped mapped, const std::vector<Tensor>& parameters);
  void let_go();
  // What is kept; null where there is nothing, where ops are recorded now, and where a parameter was written to or
  // replaced since.
  const Mapped* find() const;

 private:
  struct Source {
    Tensor parameter;
    std::weak_ptr<Storage> storage;
    uint32_t version;
  };
  Mapped mapped_;
  std::vector<Source> sources_;
};

}  // namespace isonorm::nn
