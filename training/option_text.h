// Options by name, and their values as text: what writes them into files and reads them back.
#pragma once

#include <charconv>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/printed.h"
#include "nn/residual/all.h"
#include "streams/transformer.h"

namespace isonorm::training {

// Calls f(name, member) for every option. The bindings must name every member: one more option does not compile until
// it stands here too.
template <class F> void visit_options(nn::TransformerOptions& o, F&& f) {
  auto& [width, depth, heads, head_width, kv_heads, mlp_width, activation, positions, rotary_base, causal, affine,
         norm_bias, folded, scaled_gains, bias, norm, eps, final_norm, branch, connection, precision, initialisation] =
      o;
  f("width", width), f("depth", depth), f("heads", heads), f("head_width", head_width), f("kv_heads", kv_heads);
  f("mlp_width", mlp_width);
  f("activation", activation), f("positions", positions), f("rotary_base", rotary_base), f("causal", causal);
  f("affine", affine), f("norm_bias", norm_bias), f("folded", folded), f("scaled_gains", scaled_gains), f("bias", bias),
      f("eps", eps);
  f("final_norm", final_norm);
  f("connection", connection);
  auto& [dropout, stochastic_depth, layer_scale, recentring] = branch;
  f("dropout", dropout), f("stochastic_depth", stochastic_depth), f("layer_scale", layer_scale);
  f("recentring", recentring);
  f("precision", precision.products), f("stream_precision", precision.stream);
  f("initialisation", initialisation);
}
// The form says which norm is the Transformer's.
template <class F> void visit_options(streams::StreamOptions& o, F&& f) {
  auto& [form, storage, centre_readers] = o;
  f("stream", form), f("storage", storage), f("centre_readers", centre_readers);
}

// Options that came after files were written: a file without the entry means the default.
inline constexpr std::string_view kLaterOptions[] = {"connection", "precision",      "stream_precision", "kv_heads",
                                                     "norm_bias",  "initialisation", "scaled_gains",     "folded"};

// The names of an enumeration's values, in the order of the values.
template <class E> struct ValueNames;
template <> struct ValueNames<nn::Activation> { static constexpr const auto& names = nn::kActivationNames; };
template <> struct ValueNames<nn::Initialisation> { static constexpr const auto& names = nn::kInitialisationNames; };
template <> struct ValueNames<nn::Positions> { static constexpr const auto& names = nn::kPositionsNames; };
template <> struct ValueNames<nn::Precision> { static constexpr const auto& names = nn::kPrecisionNames; };
template <> struct ValueNames<nn::Recentring> {
  static constexpr const char* names[] = {"last", "first", "first_and_last"};
};
template <> struct ValueNames<streams::Form> {
  static inline const std::vector<std::string> names = streams::names_of(streams::kForms);
};
template <> struct ValueNames<streams::Stored> { static constexpr const char* names[] = {"raw", "mapped"}; };

// A value as a file holds it.
template <class T> std::string written(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return ValueNames<T>::names[static_cast<size_t>(value)];
  } else if constexpr (std::is_same_v<T, nn::Arrangement>) {
    return std::string(value.name);
  } else if constexpr (std::is_same_v<T, double>) {
    return shortest(value);
  } else {
    return text(value);
  }
}

// Reads back what written() wrote; false where `word` is no such value.
template <class T> bool read(const std::string& word, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = word == "true";
    return value || word == "false";
  } else if constexpr (std::is_enum_v<T>) {
    int i = 0;
    for (const auto& name : ValueNames<T>::names) {
      if (word == name) {
        value = static_cast<T>(i);
        return true;
      }
      ++i;
    }
    return false;
  } else if constexpr (std::is_same_v<T, nn::Arrangement>) {
    for (const nn::Arrangement& a : nn::kArrangements)
      if (word == a.name) value = a;
    return word == value.name;
  } else {
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && stop == word.data() + word.size();
  }
}

// An option of a model, and what a training or its data say about it.
struct NamedOption {
  std::string name;
  std::function<std::string()> text;            // its value
  std::function<bool(const std::string&)> set;  // false where it cannot have that value
  std::function<void()> take = {}, give = {};   // from the training or the data, and to them; empty: not theirs
};

// Collects the options that it is shown; they must stay where they are.
class OptionVisitor {
 public:
  template <class T> void operator()(const char* name, T& value) {
    options.push_back(
        {name, [&value] { return written(value); }, [&value](const std::string& word) { return read(word, value); }});
  }
  template <class T> void operator()(const char* name, T& value, T& same) {
    (*this)(name, value);
    options.back().take = [&value, &same] { value = same; };
    options.back().give = [&value, &same] { same = value; };
  }

  std::vector<NamedOption> options;
};

}  // namespace isonorm::training
