// Results that a program can read. A result is described once: Fields<T> lists the name, the value and the meaning of
// each field of a T. The JSON of --json and docs/results.md follow from the description.
//
//   const Schema<Horizon> schema{"horizon", "How far a proof can see.", Fields<Horizon>()
//       .add("steps", &Horizon::steps, "steps that count")
//       .add("share", [](const Horizon& h) { return h.steps / 100.0; }, "of the training")};
//   to_json(schema(horizon), "up to step 30");  // {"schema": "isonorm.horizon/1", "steps": 30, "share": 0.3, ...}
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "reports/document.h"

namespace isonorm::reports {

// A field without its value.
struct FieldDescription {
  std::string name;  // snake_case
  std::string kind;  // "number", "list of strings", "object or null", ...
  std::string meaning;
  std::vector<FieldDescription> members = {};  // of an object, or of each object in a list
};

struct Description {
  std::string name;     // "prove": the schema is "isonorm.prove/1"
  std::string meaning;  // of the result, a sentence
  std::vector<FieldDescription> fields = {};
};

namespace detail {

template <class V> constexpr bool is_optional = false;
template <class V> constexpr bool is_optional<std::optional<V>> = true;

// The kind of a V in JSON; "value": a string, a number, a boolean or null.
template <class V> std::string kind_of() {
  if constexpr (is_optional<V>)
    return kind_of<typename V::value_type>() + " or null";
  else if constexpr (std::is_same_v<V, Value>)
    return "value";
  else if constexpr (std::is_same_v<V, std::vector<Named>>)
    return "object";
  else if constexpr (std::is_same_v<V, bool>)
    return "boolean";
  else if constexpr (std::is_integral_v<V>)
    return "integer";
  else if constexpr (std::is_floating_point_v<V>)
    return "number";
  else if constexpr (std::is_convertible_v<V, std::string_view>)
    return "string";
  else if constexpr (requires(V v) { v.begin(); }) {
    const std::string one = kind_of<std::decay_t<decltype(*std::declval<V>().begin())>>();
    const size_t word = one.find(' ');
    return "list of " + one.substr(0, word) + "s" + (word == one.npos ? "" : one.substr(word));
  } else
    return "object";
}

}  // namespace detail

template <class T> class Fields {
 public:
  // value: a member of T, or a function of a T. It gives a bool, a number, a string, a Value, a list of these, or an
  // optional of these (null if it is empty). With `members` it gives an object, a list of objects or an optional object
  // that has these fields.
  template <class Get, class... Members>
  Fields&& add(const char* name, Get value, const char* meaning, Members... members) && {
    using V = std::decay_t<std::invoke_result_t<const Get&, const T&>>;
    FieldDescription field{name, detail::kind_of<V>(), meaning};
    ((field.members = members.descriptions()), ...);
    descriptions_.push_back(std::move(field));
    values_.push_back([=](const T& t) { return value_of(std::invoke(value, t), members...); });
    return std::move(*this);
  }

  const std::vector<FieldDescription>& descriptions() const { return descriptions_; }

  std::vector<Named> operator()(const T& t) const {
    std::vector<Named> object;
    for (size_t i = 0; i < values_.size(); ++i) object.push_back({descriptions_[i].name, values_[i](t)});
    return object;
  }

 private:
  template <class V, class... Members> static Value value_of(const V& v, const Members&... members) {
    if constexpr (detail::is_optional<V>)
      return v ? value_of(*v, members...) : Value();
    else if constexpr (requires { (members(v), ...); } && sizeof...(members) > 0)
      return (Value(members(v)), ...);
    else if constexpr (std::is_same_v<V, bool> || std::is_same_v<V, Value> || std::is_same_v<V, std::vector<Named>>)
      return v;
    else if constexpr (std::is_integral_v<V>)
      return static_cast<int64_t>(v);
    else if constexpr (std::is_floating_point_v<V>)
      return static_cast<double>(v);
    else if constexpr (std::is_convertible_v<V, std::string_view>)
      return std::string(std::string_view(v));
    else {
      std::vector<Value> list;
      for (const auto& entry : v) list.push_back(value_of(entry, members...));
      return list;
    }
  }

  std::vector<FieldDescription> descriptions_;
  std::vector<std::function<Value(const T&)>> values_;
};

// A description that makes results: objects whose first member is "schema".
template <class T> class Schema : public Description {
 public:
  Schema(const char* name, const char* meaning, Fields<T> fields)
      : Description{name, meaning, fields.descriptions()}, fields_(std::move(fields)) {}

  std::vector<Named> operator()(const T& t) const {
    std::vector<Named> object = fields_(t);
    object.insert(object.begin(), {"schema", "isonorm." + name + "/1"});
    return object;
  }

 private:
  Fields<T> fields_;
};

// Tables and figures of a document. A column whose cells have two numbers becomes two.
Fields<TextTable> table_fields();
Fields<Figure> figure_fields();

// docs/results.md: the fields of each result.
std::string to_markdown(const std::vector<const Description*>& results);

}  // namespace isonorm::reports
