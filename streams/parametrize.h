// Puts models on a residual stream in other coordinates. A layout names the layers that write to the stream and read
// from it; the coordinates decide how their parameters and norms change (the table of streams/stream.h). The layers
// know nothing about streams.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "nn/module.h"
#include "nn/norm.h"
#include "streams/layout.h"

namespace isonorm::streams {

// Makes the model compute its function on `stream`: writers and readers are mapped, norms change their formula, and
// readers fold in gains that the norms cannot apply. With raw storage the maps run in every forward, and the model may
// be put on another stream later by the same layout. With mapped storage the parameters are mapped once, here.
//
// A parametrisation that a parameter has already is applied before the stream's. Throws if a pattern matches no layer,
// if a layer matches two patterns or has another width; if a parameter has a parametrisation of its own though its
// stored values are mapped (mapped storage) or folded with a gain; if a norm differs from the norm of the form's plain
// model (norm_of()), or no norm normalizes; if the stream's storage cannot hold the function (docs/normalization.md).
void parametrize(nn::Module& model, const Layout& layout, const Stream& stream);

// Replaces the stored parameters of a model with raw storage by the mapped parameters that its forward sees, by the
// layout that put it on the stream: the result is a converted model of the same form. Make its optimizer after this.
// Throws if the model was not put on a stream as a whole, and like parametrize() with mapped storage: mapped storage
// has no place for dropout, layer scales and gains that readers fold in.
void bake(nn::Module& model);

// A parameter and its role on the stream of its model; neutral if the model is on no stream.
struct NamedParameter : nn::NamedParameter {
  Role role = Role::neutral;
  int stream_dim = 0;  // writers and readers: the dimension that is the stream's axis
};
// module.named_parameters() with the roles.
std::vector<NamedParameter> named_parameters(const nn::Module& module);

// Lists the parameters on the stream whose mapped value no forward has read since parametrize(). The model either
// computes with the stored value (weight instead of weight()) or does not use these parameters.
std::vector<std::string> unasked(nn::Module& model);

// Returns the norm that a parameter reads through; null if the parameter is not a reader.
const nn::Norm* read_through(const nn::Parameter& parameter);
// The norms of a model that are on its stream, with their paths, in the order of its modules: readers read through
// them, or the layout names them.
std::vector<std::pair<std::string, const nn::Norm*>> norms_of(const nn::Module& model);
// Returns the stream that a model was put on; null if there is none. Throws if parts of the model are on different
// streams.
const Stream* stream_of(const nn::Module& model);

// Observes the residual stream of a model while it runs: the rows that each norm of the stream normalizes.
//
//   std::vector<Tensor> rows_of_norms;
//   {
//     streams::StreamWatch watch(model, [&](const std::string&, const Tensor& rows) { rows_of_norms.push_back(rows); });
//     model(x);
//   }
class StreamWatch {
 public:
  // norm: its path ("blocks.0.norm1"); rows: [..., stored width], the tensor in the graph.
  using See = std::function<void(const std::string& norm, const Tensor& rows)>;

  // While it lives, each norm on the model's stream (norms_of()) calls `see` by a forward hook.
  [[nodiscard]] StreamWatch(nn::Module& model, See see);
  ~StreamWatch();
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;

 private:
  std::vector<nn::ModuleHookHandle> hooks_;
};

}  // namespace isonorm::streams
