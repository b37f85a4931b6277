// Parameter maps from JSON.
#include <set>

#include "core/system/name_pattern.h"
#include "equivalence/coordinates/parameter_map.h"
#include "io/json.h"

namespace isonorm::equivalence {
namespace {

struct WrittenRule {
  std::vector<std::string> from = {}, to = {};
  std::vector<std::string> maps = {};
  int64_t dim = 0;
  Dims shape = {};
  std::set<std::string> keys = {};
};

io::JsonValue field_value(WrittenRule& rule, const std::string& key) {
  check(rule.keys.insert(key).second, "parameter map: a rule has the key '", key, "' twice");
  const auto names_into = [](std::vector<std::string>& names) -> io::JsonValue {
    const auto add = [&names](const std::string& name) { names.push_back((check_name(name, "parameter map"), name)); };
    return {.string = add, .element = [add]() -> io::JsonValue { return {.string = add}; }};
  };
  if (key == "a") return names_into(rule.from);
  if (key == "b") return names_into(rule.to);
  if (key == "map") return names_into(rule.maps);
  if (key == "dim") return {.integer = [&rule](int64_t dim) { rule.dim = dim; }};
  check(key == "shape", "parameter map: a rule has no key '", key, "', only a, b, map, dim and shape");
  return {.element = [&rule]() -> io::JsonValue {
    return {.integer = [&rule](int64_t size) { rule.shape.push_back(size); }};
  }};
}

}  // namespace

ParameterMap ParameterMap::from_json(std::string_view json) {
  ParameterMap map;
  WrittenRule rule;
  const auto add_rule = [&] {
    check(!rule.from.empty(), "parameter map: a rule has no \"a\"");
    check(rule.keys.contains("b") ? !rule.to.empty() : rule.from.size() == 1, "parameter map: the rule for '",
          rule.from[0], "' has no new name");
    check(rule.dim < kMaxRank, "parameter map: dimension ", rule.dim, " is not in 0 to ", kMaxRank - 1);
    std::vector<Leg> legs;
    const int dim = static_cast<int>(rule.dim);
    for (const std::string& name : rule.maps) legs.push_back({name, dim, rule.shape});
    if (!rule.keys.contains("b"))
      map.add_rule({rule.from, rule.from, legs, dim});
    else if (rule.to == std::vector<std::string>{""})
      for (const std::string& from : rule.from) map.leave_out(from);
    else
      map.add_rule({rule.from, rule.to, legs, dim});
    rule = {};
  };
  io::read_json(json, {.element = [&]() -> io::JsonValue {
                  return {.member = [&](const std::string& key) { return field_value(rule, key); }, .end = add_rule};
                }});
  return map;
}

}  // namespace isonorm::equivalence
