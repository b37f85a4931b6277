// Observes the residual stream of a model while it runs: the rows that each norm of the stream normalizes.
//
//   std::vector<Tensor> rows_of_norms;
//   {
//     streams::StreamWatch watch(model, [&](const std::string&, const Tensor& rows) { rows_of_norms.push_back(rows);
//     }); model(x);
//   }
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nn/module.h"

namespace isonorm::streams {

class StreamWatch {
 public:
  // norm: its path ("blocks.0.norm1"); rows: [..., stored width], the tensor in the graph.
  using See = std::function<void(const std::string& norm, const Tensor& rows)>;

  // Adds a forward hook that calls `see` to each norm on the model's stream (norms_of()). The destructor removes the
  // hooks.
  [[nodiscard]] StreamWatch(nn::Module& model, See see);
  ~StreamWatch();
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;

 private:
  std::vector<nn::ModuleHookHandle> hooks_;
};

}  // namespace isonorm::streams
