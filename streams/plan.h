// Plan: a layout that was resolved against the tensors of a module or a checkpoint: every tensor is a writer of the
// residual stream, a reader, part of a norm, or none of these. Conversion, comparison and references work on it and ask
// nothing else about a model.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/dims.h"
#include "core/tensor_map.h"
#include "nn/module.h"
#include "streams/layout.h"
#include "streams/parametrize.h"
#include "streams/stream.h"

namespace isonorm::streams {

struct Plan {
  struct Norm {
    std::string name = {};
    double eps = 1e-5;
    std::string weight = {}, bias = {};  // names of gain and bias [width]; empty if there is none
    bool normalizes = true;              // false: its readers read the bare stream
    double factor = 1;                   // readers see the norm's result times this (LayerNorm Scaling)
    bool keeps_gain = false;             // has a gain that readers do not fold in: its tensors are in `others`
    bool plus_one = false;               // its gain is stored as gain - 1
    bool folds = true;                   // readers fold in gain and bias; false: the norm keeps them
  };
  struct Writer {
    std::string name = {};
    int dim = 0;             // the stream's axis
    int norm = -1;           // embedding table: the LayerNorm between it and the stream, an index of `norms`; -1: none
    std::string scale = {};  // the layer scale [width] on its output; empty: none
  };
  struct Reader {
    std::string name = {};   // its weight; of a tied head: the name that its weight gets when it is untied
    int dim = 0;             // the stream's axis
    int norm = -1;           // the norm that it reads through, an index of `norms`; -1: it reads the bare stream
    std::string bias = {};   // the name of its bias, whether or not there is such a tensor
    int64_t parts = 1;       // number of rows side by side in its input, [.., parts * width]
    std::string table = {};  // tied head: the embedding table that is its weight; empty: it has a tensor of its own

    bool tied() const { return !table.empty(); }
    const std::string& tensor() const { return tied() ? table : name; }  // the stored tensor
  };
  struct Other {
    std::string name = {};
    bool off_stream = true;  // false: no layout says so, and check_plan() refuses it if its shape may be a writer's
  };

  Form form = Form::layer_norm;  // the coordinates of the parameters
  int64_t width = 0;             // d, of the Pre-LN model
  std::vector<Writer> writers;
  std::vector<Reader> readers;  // tied heads, too
  std::vector<Norm> norms;
  std::vector<Other> others;               // tensors that are none of these, nor a reader's bias
  std::map<std::string, Dims> blind = {};  // rows [begin, end) on which the loss does not depend (nn::NamedParameter)
  std::string recentred = {};              // the module whose input must be recentred (Layout::recentre); empty: none
  // Q [stored width, stored width] (rotation.h): the stored rows x^T are read in the coordinates x^T Q, and a
  // conversion to the same form writes them in these coordinates. Undefined: no rotation.
  Tensor rotation = {};
  double rotation_error = 0;  // error bound of an entry of x^T Q, in lengths of x, if Q was found and not given

  int64_t stored_width() const { return row_of(form).stored_width(width); }
  // Finds the writer or reader with this name; null if there is none.
  const Writer* writer(const std::string& name) const;
  const Reader* reader(const std::string& name) const;
  int dim_of(const std::string& tensor) const;  // the stream's axis of a writer or reader; -1: the tensor is neither
  // A reader reads through the norm; it is between a table and the stream. norm: an element of `norms`.
  bool is_read(const Norm& norm) const;
  bool is_behind_table(const Norm& norm) const;
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
// converted: `state` is the result of a conversion, so layer scales may be missing (gains may be missing in any state).
// folds: false: all norms keep their gains and biases, except norms between a table and the stream.
//
// Throws as Layout::entries_of() and check_plan(), if a writer or reader has no dimension, or if a norm of the layout
// has neither a tensor nor a reader.
Plan plan_in(const Layout& layout, const TensorMap& state, Form form, bool converted = false, bool folds = true);

// Throws, naming tensor and reason, if the plan does not fit the names, dtypes and shapes of the tensors, or if it
// cannot be converted exactly: a tensor is missing or unexpected, a size does not fit, a reader reads the bare stream, a
// gain or a layer scale acts on compressed coordinates, no reader can take a norm's gain, or two things have one name.
// A tensor that the layout does not name and that has an axis of the stream's width may be a forgotten writer: it is
// refused, too.
void check_plan(const Plan& plan, const TensorMap& outline);

// Throws if no other form computes the same function: the form has norms of rows that keep their mean. With a rotation,
// throws as check_rotatable().
void check_form(const Plan& plan);
// Throws, with the reason, if a rotation of the stored rows would change the function: norms must divide a row by its
// length and act on no single coordinate, and all rows must come from weights.
void check_rotatable(const Plan& plan);

// Throws if a tensor that a conversion maps has a dtype that is only held as bytes. foreign: names and dtypes of such
// tensors (training::ModelFile).
void check_dtypes(const Plan& plan, const std::map<std::string, std::string>& foreign);

// One stream of a checkpoint and its tensors, in the order of the file.
struct FileStream {
  std::string name;  // empty if there is only one stream
  Plan plan;
  TensorMap outline;
};
// The streams that a description names. A tensor that no stream names goes to the first, where it is refused. Throws as
// plan_in() and check_dtypes(), naming the stream, and if a tensor is in two streams.
std::vector<FileStream> streams_in(const std::vector<std::pair<std::string, Layout>>& streams, const TensorMap& state,
                                   Form form, bool converted = false, bool folds = true,
                                   const std::map<std::string, std::string>& foreign = {});

// The JSON that describes these tensors to `convert --spec`: from_json() and plan_in() give the same plan.
// Throws if a norm cannot be described: it does not normalize, has a factor, or keeps its gain.
std::string spec_of(const Plan& plan);

}  // namespace isonorm::streams
