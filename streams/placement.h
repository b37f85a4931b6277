// What each tensor of a checkpoint is to the residual stream: a writer, a reader through a norm, or nothing to it. All
// that a conversion needs to know of a model; it comes from a module that was put on a stream, or from a layout and a file.
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
  std::string weight = {}, bias = {};  // names of gain and bias [width]; empty where it has none
  bool normalizes = true;              // false: its readers read the bare stream
  double factor = 1;                   // readers multiply what they read by it (LayerNorm Scaling)
  bool keeps_gain = false;             // it has a gain that no reader takes up: neutral tensors
  bool plus_one = false;               // its gain is stored as gain - 1
  bool folds = true;                   // its readers take up gain and bias; false: these stay where they are
};

struct Place {
  std::string name = {};
  Role role = Role::neutral;
  int dim = 0;            // of writers and readers: the stream's axis
  std::string norm = {};  // of a reader: the name of the norm whose rows it reads; empty: it reads the bare stream.
      // Of a table: of the LayerNorm that its rows go through to the stream; empty: they go as they are
  int64_t parts = 1;       // of a reader: rows that it reads side by side, [.., parts * width] along the last dimension
  std::string bias = {};   // of a reader: the name of the bias of what it computes; no such tensor where there is none
  std::string scale = {};  // of a writer: the name of the layer scale [width] on its output; empty where there is none
  int64_t blind_begin = 0,
          blind_end = 0;  // of a neutral place: NamedParameter's rows that the function does not see
  bool said = true;  // false: neutral by silence, which an axis of the stream's width makes a question (convertible.h)
};

struct Placement {
  Form form = Form::layer_norm;  // the coordinates that the parameters are in
  int64_t width = 0;             // d, of the Pre-LN model
  std::vector<Place> places;     // every tensor but gains, biases of norms and layer scales
  std::vector<NormPlace> norms;
  std::vector<Layout::Tied> tied;
  std::string recentred = {};  // the module that the stream enters with a mean, where it begins so (Layout::recentre)
  // Q [stored width, stored width] (rotation.h): what is stored is looked at in the coordinates x^T Q of its rows x^T. Conversion
  // to the form that it has writes it so. Undefined: as it is stored.
  Tensor rotation = {};
  double rotation_error =
      0;  // what an entry of x^T Q may be off by, in lengths of x, where Q itself was found and not given

  int64_t stored_width() const { return Stream(form, width).stored_width(); }
  const NormPlace* find_norm(const std::string& name) const;  // null where there is none
  bool behind_table(const std::string& norm) const;           // whether a table's rows go through it to the stream
};

// The entry of a file's metadata that names its form where it has no description of a model.
inline constexpr const char* kStreamForm = "stream.form";
// And where its streams are recentred once, a list of modules as JSON.
inline constexpr const char* kStreamRecentred = "stream.recentred";

// That of a module which was put on a stream (streams/parametrize.h). Raw parameters are those of the Pre-LN model, so raw
// storage counts as layer_norm, whatever the form that the model maps them to. Throws where it was put on none, and where
// something of it reads through a norm, or with a table, that is not in it.
Placement placement_of(const nn::Module& module);

// That of a state in the coordinates of `form`. A norm's gain and bias are "<norm>.weight" and "<norm>.bias" where the state
// has them; a reader's bias need not be in the layout. A tied table's head that is there is a reader of its own. What the
// layout calls other, and has an axis of the stream's width, is refused by check_convertible(), as it may be a forgotten
// writer, but where it is said to be off the stream. converted: whether the state is a conversion's result, in which scales
// may be gone, as gains may be in any. Throws as Layout::entries_of(), where a writer or a reader has no dimension, and where
// a norm of the layout has neither a tensor nor a reader.
Placement placement_in(const Layout& layout, const TensorMap& state, Form form, bool converted = false);

// One stream of a file, and the tensors that it has: its own, in the order of the file.
struct FileStream {
  std::string name;  // empty where there is only one
  Placement placement;
  TensorMap outline;
};
// Those that a description names. A tensor that none of them names is the first's, where check_convertible() refuses it.
// Throws as placement_in(), naming the stream, and where a tensor is in two of them.
std::vector<FileStream> streams_in(const std::vector<std::pair<std::string, Layout>>& streams, const TensorMap& state,
                                   Form form, bool converted = false);

// The JSON by which `convert --spec` finds these places in a file: Layout::from_json() and placement_in() give them back.
// Throws where a norm has no place in such a description: one that does not normalize, has a factor, or keeps its gain.
std::string spec_of(const Placement& placement);

}  // namespace isonorm::streams
