// Models on a residual stream in other coordinates: which layers write to it and which read from it, and what the
// coordinates make of their parameters and norms (the table of streams/stream.h). Layers know nothing of that.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nn/module.h"
#include "nn/norm.h"
#include "streams/layout.h"

namespace isonorm::streams {

// Has the model compute its function on `stream`: writers and readers are mapped, norms change their formula, gains go
// where they can. A model of raw storage may be put on another stream by the same layout. With mapped storage the parameters
// are mapped here, once. Throws where a pattern meets no layer, a layer meets two, is of another width or has a
// parametrisation of its own, where a norm is not that of the form's plain model (norm_of()) or there is none, and where the stream's storage cannot hold
// the function (docs/normalization.md).
void parametrize(nn::Module& model, const Layout& layout, const Stream& stream);

// Stores what the forward of a model on a stream of raw storage sees, by the layout that put it there: a converted model, of
// the same form. Make its optimizer after this. Throws as parametrize() with mapped storage (dropout, layer scales and gains
// that readers take up have no place in it), and where the model was not put on a stream as a whole.
void bake(nn::Module& model);

// A parameter and how it touches the stream that its model was put on: neutral, where that is none.
struct NamedParameter : nn::NamedParameter {
  Role role = Role::neutral;
  int stream_dim = 0;  // of writers and readers, the dimension that is the stream's axis
};
// module.named_parameters() with their roles.
std::vector<NamedParameter> named_parameters(const nn::Module& module);

// The parameters on the stream that no forward has asked for since they were put there: it computes with what is stored, not
// with what is seen (weight in the place of weight()), or not with them at all.
std::vector<std::string> unasked(nn::Module& model);

// The norm whose rows a parameter reads; null where it reads none.
const nn::Norm* read_through(const nn::Parameter& parameter);
// The stream that a model was put on; null where it was put on none. Throws where its parts are on different ones.
const Stream* stream_of(const nn::Module& model);

}  // namespace isonorm::streams
