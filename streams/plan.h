// Plan: a layout that was resolved against the tensors of a module or a checkpoint. It lists for each tensor whether it
// writes to the residual stream, reads from it through a norm, or does neither. A conversion needs to know no more
// about a model.
#pragma once

#include <string>
#include <vector>

#include "core/tensor_map.h"
#include "nn/module.h"
#include "streams/layout.h"
#include "streams/parametrize.h"
#include "streams/stream.h"

namespace isonorm::streams {

struct NormPlace {
  std::string name = {};
  double eps = 1e-5;
  std::string weight = {}, bias = {};  // names of gain and bias [width]; empty if there is none
  bool normalizes = true;              // false: its readers read the bare stream
  double factor = 1;                   // readers see the norm's result times this (LayerNorm Scaling)
  bool keeps_gain = false;             // has a gain that readers do not fold in: its tensors are neutral
  bool plus_one = false;               // its gain is stored as gain - 1
  bool folds = true;                   // readers fold in gain and bias; false: the norm keeps them
};

struct Place {
  std::string name = {};
  Role role = Role::neutral;
  int dim = 0;  // writers and readers: the stream's axis
  // Reader: the norm that it reads through; empty: it reads the bare stream. Embedding table: the LayerNorm between the
  // table and the stream; empty: none.
  std::string norm = {};
  int64_t parts = 1;       // reader: number of rows side by side in its input, [.., parts * width]
  std::string bias = {};   // reader: the name of its bias, whether or not there is such a tensor
  std::string scale = {};  // writer: the name of the layer scale [width] on its output; empty if there is none
  int64_t blind_begin = 0, blind_end = 0;  // rows in which the loss does not depend on it (nn::NamedParameter)
  bool said = true;  // false: neutral only because the layout does not say otherwise (convertible.h)
};

struct Plan {
  Form form = Form::layer_norm;  // the coordinates of the parameters
  int64_t width = 0;             // d, of the Pre-LN model
  std::vector<Place> places;     // all tensors except gains and biases of norms, and layer scales
  std::vector<NormPlace> norms;
  std::vector<Layout::Tied> tied;
  std::string recentred = {};  // the module whose input must be recentred (Layout::recentre); empty: none
  // Q [stored width, stored width] (rotation.h): the stored rows x^T are read in the coordinates x^T Q, and a
  // conversion to the same form writes them in these coordinates. Undefined: no rotation.
  Tensor rotation = {};
  double rotation_error = 0;  // error bound of an entry of x^T Q, in lengths of x, if Q was found and not given

  int64_t stored_width() const { return row_of(form).stored_width(width); }
  const NormPlace* find_norm(const std::string& name) const;  // null if there is none
  bool behind_table(const std::string& norm) const;           // whether it is the norm between a table and the stream
};

// The metadata entry that names the form of a checkpoint without a model description.
inline constexpr const char* kStreamForm = "stream.form";
// The metadata entry that lists the modules whose input must be recentred, as JSON.
inline constexpr const char* kStreamRecentred = "stream.recentred";

// The plan of a module that was put on a stream (streams/parametrize.h). Raw storage holds the Pre-LN model's
// parameters, so a LayerNorm model in raw storage counts as layer_norm whatever its form is. Throws if the module is on
// no stream, if a writer, reader or norm has a parametrisation of its own, or if a norm or table that a reader uses is
// not in the module.
Plan plan_of(const nn::Module& module);

// The plan of the tensors of a checkpoint in the coordinates of `form`. The gain and bias of a norm are
// "<norm>.weight" and "<norm>.bias" if `state` has them; the layout need not name the biases of readers. If `state` has
// the head of a tied table, the head becomes a reader of its own.
//
// check_convertible() refuses a tensor that the layout calls other and that has an axis of the stream's width, since it
// may be a forgotten writer, unless the layout says that it is off the stream.
//
// converted: `state` is the result of a conversion, so layer scales may be missing (gains may be missing in any state).
// Throws as Layout::entries_of(), if a writer or reader has no dimension, or if a norm of the layout has neither a
// tensor nor a reader.
Plan plan_in(const Layout& layout, const TensorMap& state, Form form, bool converted = false);

// One stream of a checkpoint and its tensors, in the order of the file.
struct FileStream {
  std::string name;  // empty if there is only one stream
  Plan plan;
  TensorMap outline;
};
// The streams that a description names. A tensor that no stream names goes to the first, where check_convertible()
// refuses it. Throws as plan_in(), naming the stream, and if a tensor is in two streams.
std::vector<FileStream> streams_in(const std::vector<std::pair<std::string, Layout>>& streams, const TensorMap& state,
                                   Form form, bool converted = false);

// The JSON that describes these places to `convert --spec`: from_json() and plan_in() give the same plan.
// Throws if a norm cannot be described: it does not normalize, has a factor, or keeps its gain.
std::string spec_of(const Plan& plan);

}  // namespace isonorm::streams
