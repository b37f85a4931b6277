// Internal: published models as models of this library, a row of data each: which key of config.json is which of our
// options, which tensor is which of ours. Read forwards a row is `isonorm import`, backwards `isonorm export`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exchange/hub/folder.h"

namespace isonorm::hub {

// A name of theirs that begins with a dot stands behind the stem; a * is the number of a block.
struct Port {
  struct Value {
    std::string_view theirs, ours;
  };
  struct Key {
    std::string_view option;             // ours; empty: none, and the value has to be one of `values`
    std::vector<std::string_view> keys;  // of config.json: the first that is there counts, "a.b" is in an object; the
                                         // last is the one to write
    std::string_view otherwise = {};     // what the program takes where none is there, or null; empty: one has to be
    std::vector<Value> values = {};      // empty: a number, the same for both
  };
  struct Fixed {
    std::string_view option, value;  // of every model of the family
  };
  enum class Change {
    none,
    transposed,  // [in, out]
    patches,     // a convolution [width, channels, side, side]; ours: [width, side side channels]
    row,         // [1, 1, width]; ours: [width]
    rows,        // [1, n, width]; ours: [n, width]
    turned,      // of three, queries and keys: the two halves of a head's rows; theirs: one and one of the other
    by_head,     // query, key and value of each head side by side; ours: all queries, all keys, all values
  };
  struct Part {
    std::string_view ours;
    std::vector<std::string_view> theirs;     // three: queries, keys and values, which ours has one behind the other
    std::vector<std::string_view> ends = {};  // of both names, such as .weight and .bias; empty: the names are whole
    Change change = Change::none;
    Fixed when = {};  // only where the option is that
  };

  std::string_view type, architecture;  // of config.json
  std::string_view model;               // our row
  std::vector<std::string_view> stems;  // what files have before the names: the first that fits counts
  std::vector<Key> keys;
  std::vector<Fixed> fixed;
  std::vector<Part> parts;                         // the first tells the stem
  std::vector<std::string_view> passed_over = {};  // patterns of tensors that hold no weights
  std::string_view tied_head = {};                 // of a tied model: it may be there once more
};

std::span<const Port> ports();

// The row of that "model_type". Throws, listing those that there are.
const Port& port_named(std::string_view type);

// An option of ours with its value, and where config.json says it; `key` is empty where it is so of every model.
struct PortOption {
  std::string option, value, key;
};
// Throws, naming the key and its value, where one is missing or has no counterpart, and where architecture or weights are
// not those of the row; where the folder is one that isonorm rotate made, or names code of its own.
std::vector<PortOption> port_options(const Port& port, const Config& config);

// The tensors of the folder as those of our model, in its dtypes; read one at a time. options: "model.width" "64", ... of the
// model (training::ModelOptions::description). Throws where a tensor is missing, is not of a form that can be changed, or has
// no place in our model.
LazyState imported(const Port& port, const Folder& folder, const Metadata& options);

// Converts our tensors to the tensors of a folder. Throws if a tensor is missing or has no place in a model of that family.
LazyState exported(const Port& port, const LazyState& ours, const Metadata& options);

// `base` with what the options say; keys that say it already stay as they are. Throws where a value has no counterpart.
json exported_config(const Port& port, json base, const Metadata& options);

// "id2label" of config.json: the class names in the order of the logits. Empty if there is none, or if the names are transformers'
// own LABEL_0, LABEL_1, ... Throws if its keys are not 0, 1, ... or a name is no text.
std::vector<std::string> class_names(const Config& config);
// Sets "id2label" and "label2id".
void set_class_names(json& config, const std::vector<std::string>& names);

}  // namespace isonorm::hub
