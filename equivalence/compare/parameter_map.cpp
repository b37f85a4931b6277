#include "equivalence/compare/parameter_map.h"

#include <set>

#include "autograd/ops/shape.h"
#include "core/system/foreign_name.h"
#include "core/system/name_pattern.h"
#include "io/json.h"
#include "streams/map.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {

using streams::Map;

namespace {

constexpr const char* kTranspose = "transpose";

using Make = Map (*)(int64_t inputs);
constexpr std::pair<const char*, Make> kMaps[] = {
    {"identity", [](int64_t n) { return Map::identity(n); }},
    {"recentre", [](int64_t n) { return Map::recentre(n); }},
    {"compress", [](int64_t n) { return Map::compress(n); }},
    {"expand", [](int64_t n) { return Map::expand(n + 1); }},
    {"compress_reader", [](int64_t n) { return Map::compress_reader(n); }},
    {"expand_reader", [](int64_t n) { return Map::expand_reader(n + 1); }},
    {"isometric", [](int64_t n) { return Map::isometric(n); }},
};

Make maker(const std::string& name) {
  std::string names = kTranspose;
  for (const auto& [known, make] : kMaps) {
    if (name == known) return make;
    names += text(", ", known);
  }
  check(false, "parameter map: no map is called '", name, "'; there are ", names);
  return nullptr;
}

void check_known(const std::string& map) {
  if (map != kTranspose) maker(map);
}

Dims transposed(Dims shape) {
  check(shape.rank == 2, "parameter map: shape ", shape, " is not that of a matrix, which transpose needs");
  std::swap(shape.v[0], shape.v[1]);
  return shape;
}

int64_t size_along(const Leg& leg, const Dims& shape) {
  check(leg.dim >= 0 && leg.dim < shape.rank, "parameter map: ", leg.map, " along dimension ", leg.dim,
        " does not fit shape ", shape);
  return shape[leg.dim];
}

struct WrittenRule {
  std::string from = {};
  std::optional<std::string> to = {};
  std::vector<std::string> maps = {};
  int64_t dim = 0;
  std::set<std::string> keys = {};
};

io::JsonValue field_value(WrittenRule& rule, const std::string& key) {
  check(rule.keys.insert(key).second, "parameter map: a rule has the key '", key, "' twice");
  const auto add_map = [&rule](const std::string& map) { rule.maps.push_back(map); };
  const auto checked = [](const std::string& pattern) { return check_name(pattern, "parameter map"), pattern; };
  if (key == "a") return {.string = [&rule, checked](const std::string& from) { rule.from = checked(from); }};
  if (key == "b") return {.string = [&rule, checked](const std::string& to) { rule.to = checked(to); }};
  if (key == "dim") return {.integer = [&rule](int64_t dim) { rule.dim = dim; }};
  check(key == "map", "parameter map: a rule has no key '", key, "', only a, b, map and dim");
  return {.string = add_map, .element = [add_map]() -> io::JsonValue { return {.string = add_map}; }};
}

}  // namespace

Tensor Route::forward(const Tensor& w) const {
  Tensor x = w;
  for (const Leg& leg : legs)
    if (leg.map == kTranspose)
      transposed(x.shape()), x = contiguous(transpose(x, 0, 1));
    else
      x = maker(leg.map)(size_along(leg, x.shape()))(x, leg.dim);
  return x;
}

Tensor Route::adjoint(const Tensor& g, const Dims& shape) const {
  std::vector<Dims> shapes = {shape};  // before each leg
  for (const Leg& leg : legs) {
    Dims after = shapes.back();
    if (leg.map == kTranspose)
      after = transposed(after);
    else
      after[leg.dim] = maker(leg.map)(size_along(leg, after)).outputs();
    shapes.push_back(after);
  }
  check(g.shape() == shapes.back(), name, ": has shape ", g.shape(), ", its partner becomes ", shapes.back());
  Tensor x = g;
  for (size_t i = legs.size(); i-- > 0;)
    if (legs[i].map == kTranspose)
      x = contiguous(transpose(x, 0, 1));
    else
      x = maker(legs[i].map)(shapes[i][legs[i].dim]).adjoint()(x, legs[i].dim);
  return x;
}

ParameterMap& ParameterMap::add(const std::string& from, const std::string& to, std::vector<Leg> legs) {
  check(!from.empty() && !to.empty(), "parameter map: a name is empty in '", from, "' -> '", to, "'");
  check(names::count_stars(to) <= names::count_stars(from), "parameter map: '", to, "' has more * than '", from, "'");
  for (const Leg& leg : legs) check_known(leg.map);
  rules_.push_back({from, to, std::move(legs), false});
  return *this;
}

ParameterMap& ParameterMap::leave_out(const std::string& pattern) {
  add(pattern, pattern);
  rules_.back().ignore = true;
  return *this;
}

std::optional<Route> ParameterMap::route(const std::string& name) const {
  for (const Rule& r : rules_) {
    std::vector<std::string> stars;
    if (!names::matches(r.from, name, stars)) continue;
    if (r.ignore) return {};
    return Route{names::filled(r.to, stars), r.legs};
  }
  return Route{name};
}

ParameterMap ParameterMap::mapped_storage(const nn::Module& raw, const streams::Stream& stream) {
  ParameterMap map;
  const auto named = [](streams::Role role, streams::Form form) -> const char* {
    const bool writer = role == streams::Role::writer;
    switch (form) {
      case streams::Form::rms_norm:
        return writer ? "recentre" : nullptr;
      case streams::Form::crms_norm:
        return writer ? "compress" : "compress_reader";
      case streams::Form::crms_isometric:
        return "isometric";
      default:
        return nullptr;
    }
  };
  for (const streams::NamedParameter& p : streams::named_parameters(raw))
    if (const char* name = named(p.role, stream.form()); p.role != streams::Role::neutral && name)
      map.add(p.name, p.name, {{name, p.stream_dim}});
  return map;
}

ParameterMap ParameterMap::from_json(std::string_view json) {
  ParameterMap map;
  WrittenRule rule;
  const auto add_rule = [&] {
    check(!rule.from.empty(), "parameter map: a rule has no \"a\"");
    check(rule.dim < kMaxRank, "parameter map: dimension ", rule.dim, " is over the limit of ", kMaxRank - 1);
    std::vector<Leg> legs;
    for (const std::string& name : rule.maps) legs.push_back({name, static_cast<int>(rule.dim)});
    if (rule.to && rule.to->empty())
      map.leave_out(rule.from);
    else
      map.add(rule.from, rule.to.value_or(rule.from), legs);
    rule = {};
  };
  io::read_json(json, {.element = [&]() -> io::JsonValue {
                  return {.member = [&](const std::string& key) { return field_value(rule, key); }, .end = add_rule};
                }});
  return map;
}

}  // namespace isonorm::equivalence
