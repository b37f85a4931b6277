// Observes a residual stream while a model runs: each norm of the stream shows the rows that it is about to normalize.
//
//   std::vector<Tensor> streams;
//   {
//     nn::StreamWatch watch([&](const std::string&, const nn::Norm&, const Tensor& x) { streams.push_back(x); });
//     model(x);
//   }
#pragma once

#include <functional>
#include <string>

#include "core/tensor.h"

namespace isonorm::nn {

class Norm;

class StreamWatch {
 public:
  // norm: its path ("blocks.0.norm1"); rows: [..., stored width], the tensor in the graph.
  using See = std::function<void(const std::string& path, const Norm& norm, const Tensor& rows)>;

  // While it lives, each norm of a stream that runs in this thread calls `see`. An inner watch replaces the outer one.
  [[nodiscard]] explicit StreamWatch(See see);
  ~StreamWatch();
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;

  // Called by Norm: shows the rows to this thread's watch, if there is one.
  static void show(const Norm& norm, const Tensor& rows);

 private:
  See see_;
  StreamWatch* outer_;
};

}  // namespace isonorm::nn
