// Options by name. An options struct lists its members once (training/fields.h, training/models/). The command line and
// its help, the metadata of files, manifests, the comparison of two runs, and every error about an option come from
// this list.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/dtype.h"
#include "core/error.h"
#include "core/printed.h"

namespace isonorm::training {

// The allowed values of a number; by default all finite values from 0 on.
struct Limits {
  double least = 0, most = std::numeric_limits<double>::infinity();
  bool above = false, below = false;  // whether least and most themselves are excluded

  bool allow(double x) const {
    return std::isfinite(x) && (above ? x > least : x >= least) && (below ? x < most : x <= most);
  }
  std::string expected() const;  // "from 2 on", "above 0", "from 0 to below 1", "above 0, at most 1"
};
constexpr Limits from(double least) { return {.least = least}; }
constexpr Limits above(double least) { return {.least = least, .above = true}; }
inline constexpr Limits kProbability = {.most = 1, .below = true}, kShare = {.most = 1};

// Marks of an option of a model.
//   kTrainingOnly  it acts in training alone, or chooses dtypes: models that differ in it are the same function
//   kInOnnx        exchange/onnx computes every value of it
//   kInRounding    lab/probes/rounding_model.h computes or refuses every value
// Without its mark, ONNX files and the rounding model take only the default value.
inline constexpr unsigned kTrainingOnly = 1, kInOnnx = 2, kInRounding = 4, kInBoth = kInOnnx | kInRounding;

struct Option {
  std::string name;                                  // in files and manifests: "mlp_width"
  std::string help;                                  // empty: not an option of the command line
  std::string values;                                // as shown in help, "INT" or "gelu|relu"; empty: a flag
  std::string expected;                              // "a whole number from 2 to 100", "one of gelu|relu"
  std::string group = {};                            // the heading in help
  unsigned marks = 0;                                // kTrainingOnly, ...
  std::function<std::string()> text = {};            // the present value
  std::function<bool(const std::string&)> set = {};  // false, and sets nothing, if the word is not as expected

  bool flag() const { return values.empty(); }
};

// The option's name on the command line: "--mlp-width".
std::string word_of(std::string_view name);

// The names of an enumeration's values, in the order of the values.
template <class E> struct ValueNames;

// Writes and reads the value of an option of type T.
template <class T> struct Word {
  static constexpr bool whole = std::is_integral_v<T>;
  static_assert(whole || std::is_same_v<T, double>);

  static std::string values() { return whole ? "INT" : "FLOAT"; }
  static std::string expected(Limits l) {
    if (!whole) return "a number " + l.expected();
    return std::isinf(l.most) ? text("a whole number from ", l.least, " to ", std::numeric_limits<T>::max())
                              : "a whole number " + l.expected();
  }
  static std::string written(T value) {
    if constexpr (whole) return text(value);
    return shortest(static_cast<double>(value));
  }
  static bool read(const std::string& word, T& value) { return read_number(word, value); }
  static bool allowed(T value, Limits l) { return l.allow(static_cast<double>(value)); }
};

// Reads one name from an array: Derived::names(), with the value Derived::at(i) for name i.
template <class T, class Derived> struct OneOf {
  static std::string values() {
    std::string all;
    for (const auto& name : Derived::names()) all += text(all.empty() ? "" : "|", name);
    return all;
  }
  static std::string expected(Limits) { return "one of " + values(); }
  static bool read(const std::string& word, T& value) {
    size_t i = 0;
    for (const auto& name : Derived::names()) {
      if (word == name) return value = Derived::at(i), true;
      ++i;
    }
    return false;
  }
  static bool allowed(const T&, Limits) { return true; }
};

template <class E>
requires std::is_enum_v<E>
struct Word<E> : OneOf<E, Word<E>> {
  static const auto& names() { return ValueNames<E>::names; }
  static E at(size_t i) { return static_cast<E>(i); }
  static std::string written(E value) { return std::string(names()[static_cast<size_t>(value)]); }
};

template <> struct Word<bool> {
  static std::string values() { return ""; }
  static std::string expected(Limits) { return "true or false"; }
  static std::string written(bool value) { return value ? "true" : "false"; }
  static bool read(const std::string& word, bool& value) {
    value = word == "true";
    return value || word == "false";
  }
  static bool allowed(bool, Limits) { return true; }
};

template <> struct Word<std::string> {
  static std::string values() { return "TEXT"; }
  static std::string expected(Limits) { return "a text"; }
  static std::string written(const std::string& value) { return value; }
  static bool read(const std::string& word, std::string& value) { return value = word, true; }
  static bool allowed(const std::string&, Limits) { return true; }
};

template <> struct Word<DType> : OneOf<DType, Word<DType>> {
  static std::vector<std::string> names() { return {"f32", "f64"}; }
  static DType at(size_t i) { return i == 0 ? DType::f32 : DType::f64; }
  static std::string written(DType dtype) { return name_of(dtype); }
};

// An unset value is written "".
template <class T> struct Word<std::optional<T>> : Word<T> {
  static std::string written(const std::optional<T>& value) { return value ? Word<T>::written(*value) : ""; }
  static bool read(const std::string& word, std::optional<T>& value) {
    return word.empty() || Word<T>::read(word, value.emplace());
  }
  static bool allowed(const std::optional<T>& value, Limits l) { return !value || Word<T>::allowed(*value, l); }
};

// Makes an Option for each member that is passed to it, or only for the member called `only`. Options refer to the
// members.
class Fields {
 public:
  template <class T>
  void operator()(const char* name, T& value, std::string_view help = {}, std::type_identity_t<Limits> limits = {},
                  unsigned marks = 0) {
    if (!only.empty() && only != name) return;
    options.push_back({.name = name,
                       .help = std::string(help),
                       .values = Word<T>::values(),
                       .expected = Word<T>::expected(limits),
                       .group = group,
                       .marks = marks,
                       .text = [&value] { return Word<T>::written(value); },
                       .set =
                           [&value, limits](const std::string& word) {
                             T read{};
                             if (!Word<T>::read(word, read) || !Word<T>::allowed(read, limits)) return false;
                             value = read;
                             return true;
                           }});
  }

  std::vector<Option> options = {};
  std::string_view only = {};     // empty: all
  std::string group = "Options";  // of the options that are shown next
};

}  // namespace isonorm::training
