// Internal: published models as models of this library, one row of data each: how keys of config.json correspond to our
// options, and tensors of the folder to our tensors. `isonorm import` reads a row forwards, `isonorm export` backwards.
// "theirs" is the folder's side, "ours" this library's.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exchange/hub/folder.h"

namespace isonorm::hub {

// A name of theirs that begins with a dot follows the stem; * is the number of a block.
struct Port {
  struct Value {
    std::string_view theirs, ours;
  };
  struct Key {
    std::string_view option;  // ours; empty: none, and the value must be in `values`
    // Alternative keys of config.json. Import reads the first that exists, export writes the last. "a.b" is the key b
    // of the object a.
    std::vector<std::string_view> keys;
    std::string_view otherwise = {};  // their program's default if no key exists, or null; empty: a key is required
    std::vector<Value> values = {};   // empty: a number that is the same on both sides
  };
  struct Fixed {
    std::string_view option, value;  // an option with this value in every model of the family
  };
  enum class Change {
    none,
    transposed,  // theirs [in, out]
    patches,     // theirs a convolution [width, channels, side, side]; ours [width, side side channels]
    row,         // theirs [1, 1, width]; ours [width]
    rows,        // theirs [1, n, width]; ours [n, width]
    turned,      // export only; queries and keys: theirs has the two halves of a head's rows interleaved
    by_head,     // theirs: query, key and value rows of each head together; ours: all queries, all keys, all values
  };
  struct Part {
    std::string_view ours;
    std::vector<std::string_view> theirs;     // three: queries, keys, values; ours has them in one tensor
    std::vector<std::string_view> ends = {};  // suffixes of both names (.weight, .bias); empty: none
    Change change = Change::none;
    Fixed when = {};  // only if the option has this value
  };

  std::string_view type, architecture;  // values of config.json
  std::string_view model;               // the name of our model
  std::vector<std::string_view> stems;  // possible prefixes of the names in a file; the first that fits is used
  std::vector<Key> keys;
  std::vector<Fixed> fixed;
  std::vector<Part> parts;                     // the first one determines the stem
  std::vector<std::string_view> ignored = {};  // patterns of tensors that are ignored: not weights
  std::string_view tied_head = {};             // tied models: the head's name, if the folder stores it once more
};

std::span<const Port> ports();

// Finds the row with this "model_type". If there is none, throws an error that lists the known types.
const Port& port_named(std::string_view type);

// An option of ours with its value. key: the key of config.json that determines it; empty: every model of the family
// has this value.
struct PortOption {
  std::string option, value, key;
};
// Translates config.json to our options. Throws if a key is missing or its value has no counterpart (the message names
// both), if the architecture is not the row's, if the weights are quantized, if `isonorm rotate` made the folder, or if
// config.json refers to model code in the folder.
std::vector<PortOption> port_options(const Port& port, const Config& config);

// Converts the tensors of a folder to our tensors, in the folder's dtypes; they are read one at a time. options: the
// model's, "model.width" "64", ... (training::ModelOptions::description). Throws if a tensor is missing, has a shape
// that cannot be converted, or has no counterpart in our model.
LazyState imported(const Port& port, const Folder& folder, const Metadata& options);

// Converts our tensors to the tensors of a folder. Throws if a tensor is missing, or has no counterpart in a model of
// the family.
LazyState exported(const Port& port, const LazyState& ours, const Metadata& options);

// Writes the options into `base`, a config.json. Keys that already have the right value stay unchanged. Throws if a
// value has no counterpart.
json exported_config(const Port& port, json base, const Metadata& options);

// The class names in the order of the logits: "id2label" of config.json. Empty if there are none, or only transformers'
// own LABEL_0, LABEL_1, ... Throws if the keys are not 0, 1, ... or a name is not a string.
std::vector<std::string> class_names(const Config& config);
// Sets "id2label" and "label2id".
void set_class_names(json& config, const std::vector<std::string>& names);

// Shorthands for rows.
inline const std::vector<std::string_view> kWeight = {".weight"}, kBoth = {".weight", ".bias"};
inline const std::vector<Port::Value> kFlag = {{"false", "false"}, {"true", "true"}};

template <class T> std::vector<T> operator+(std::vector<T> a, const std::vector<T>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace isonorm::hub
