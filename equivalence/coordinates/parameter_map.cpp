#include "equivalence/coordinates/parameter_map.h"

#include <algorithm>
#include <set>

#include "autograd/ops/shape.h"
#include "core/system/name_pattern.h"
#include "io/json.h"
#include "streams/map.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {

using streams::Map;

namespace {

constexpr const char* kTranspose = "transpose";
constexpr const char* kReshape = "reshape";

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
  std::string names = text(kTranspose, ", ", kReshape);
  for (const auto& [known, make] : kMaps) {
    if (name == known) return make;
    names += text(", ", known);
  }
  check(false, "parameter map: no map is called '", name, "'; there are ", names);
  return nullptr;
}

// "q + k + v"
std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : " + ") + name;
  return all;
}

std::string spoken(const std::vector<std::string>& from, const std::vector<std::string>& to) {
  return text('\'', joined(from), "' -> '", joined(to), '\'');
}

void check_known(const Leg& leg) {
  if (!leg.made && leg.map != kTranspose && leg.map != kReshape) maker(leg.map);
}

// The map of a leg along a dimension of this size.
Map map_of(const Leg& leg, int64_t size) { return leg.made ? *leg.made : maker(leg.map)(size); }

Dims transposed(Dims shape) {
  check(shape.rank == 2, "parameter map: transpose needs a matrix, the shape is ", shape);
  std::swap(shape.v[0], shape.v[1]);
  return shape;
}

void check_fits(const std::string& map, int dim, const Dims& shape) {
  check(dim >= 0 && dim < shape.rank, "parameter map: ", map, " along dimension ", dim, " does not fit shape ", shape);
}

Dims shape_behind(const Leg& leg, Dims shape) {
  if (leg.map == kTranspose) return transposed(shape);
  if (leg.map == kReshape) {
    const int64_t entries = numel(leg.shape, "parameter map");
    check(entries == numel(shape), "parameter map: reshape of ", shape, " to ", leg.shape, ", which has ", entries,
          " entries instead of ", numel(shape));
    return leg.shape;
  }
  check_fits(leg.map, leg.dim, shape);
  shape[leg.dim] = map_of(leg, shape[leg.dim]).outputs();
  return shape;
}

}  // namespace

Dims Route::forward(const Dims& shape) const {
  Dims behind = shape;
  for (const Leg& leg : legs) behind = shape_behind(leg, behind);
  return behind;
}

Tensor Route::forward(const Tensor& w) const {
  Tensor x = w;
  for (const Leg& leg : legs) {
    const Dims behind = shape_behind(leg, x.shape());
    if (leg.map == kTranspose)
      x = contiguous(transpose(x, 0, 1));
    else if (leg.map == kReshape)
      x = reshape(x, behind);
    else
      x = map_of(leg, x.size(leg.dim))(x, leg.dim);
  }
  return x;
}

Tensor Route::adjoint(const Tensor& g, const Dims& shape) const {
  std::vector<Dims> shapes = {shape};  // before each leg
  for (const Leg& leg : legs) shapes.push_back(shape_behind(leg, shapes.back()));
  check(g.shape() == shapes.back(), name, ": has shape ", g.shape(), ", its partner becomes ", shapes.back());
  Tensor x = g;
  for (size_t i = legs.size(); i-- > 0;)
    if (legs[i].map == kTranspose)
      x = contiguous(transpose(x, 0, 1));
    else if (legs[i].map == kReshape)
      x = reshape(x, shapes[i]);
    else
      x = map_of(legs[i], shapes[i][legs[i].dim]).adjoint()(x, legs[i].dim);
  return x;
}

std::vector<std::string> Route::partners() const {
  std::vector<std::string> all = {name};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string Route::partner_name() const { return joined(partners()); }

Partner::Partner(const Route& route, const std::string& name, const Shapes& a)
    : what_(route.partner_name()), dim_(route.dim) {
  if (!route.is_concatenation()) return;
  const auto add = [&](const std::string& joined) {
    const auto shape = a(joined);
    check(shape.has_value(), "parameter map: ", name, " is joined with ", joined, ", which the first does not have");
    const Dims behind = route.forward(*shape);
    check_fits("concatenation", dim_, behind);
    joined_ += (joined_.empty() ? "" : " + ") + joined;
    total_ += behind[dim_];
    return behind[dim_];
  };
  for (const std::string& before : route.before) begin_ += add(before);
  size_ = add(name);
  for (const std::string& after : route.after) add(after);
}

Tensor Partner::read(const std::vector<Tensor>& stored) const {
  if (!joined_.empty()) {
    const Tensor& whole = stored[0];
    check(dim_ < whole.rank() && whole.size(dim_) == total_, "parameter map: ", joined_, " together have size ", total_,
          " along dimension ", dim_, ", ", what_, " has shape ", whole.shape());
    return narrow(whole, dim_, begin_, size_);
  }
  if (stored.size() == 1) return stored[0];
  for (const Tensor& part : stored) {
    Dims expected = stored[0].shape();
    const bool fits = dim_ < expected.rank && part.rank() == expected.rank;
    if (fits) expected[dim_] = part.size(dim_);
    check(fits && part.shape() == expected && part.dtype() == stored[0].dtype(), "parameter map: the parts of ", what_,
          " cannot be joined along dimension ", dim_, ": one is ", stored[0].dtype(), ' ', stored[0].shape(), ", one ",
          part.dtype(), ' ', part.shape());
  }
  return cat(stored, dim_);
}

void Partner::write(const Tensor& value, const std::vector<Tensor>& stored) const {
  if (!joined_.empty()) return copy_into(narrow(stored[0], dim_, begin_, size_), value);
  int64_t begin = 0;
  for (const Tensor& part : stored) {
    const int64_t size = stored.size() == 1 ? 0 : part.size(dim_);
    copy_into(part, stored.size() == 1 ? value : narrow(value, dim_, begin, size));
    begin += size;
  }
}

ParameterMap& ParameterMap::add_rule(Rule rule) {
  const std::string both = spoken(rule.from, rule.to);
  for (const std::vector<std::string>* names : {&rule.from, &rule.to})
    for (const std::string& name : *names) check(!name.empty(), "parameter map: a name is empty in ", both);
  check(rule.from.size() == 1 || rule.to.size() == 1, "parameter map: ", rule.from.size(), " names become ",
        rule.to.size(), " in ", both);
  const auto stars = names::count_stars(rule.from[0]);
  for (const std::string& from : rule.from)
    check(names::count_stars(from) == stars, "parameter map: the names have different numbers of * in ", both);
  for (const std::string& to : rule.to)
    check(names::count_stars(to) <= stars, "parameter map: '", to, "' has more * than '", rule.from[0], "'");
  check(rule.dim >= 0 && rule.dim < kMaxRank, "parameter map: dimension ", rule.dim, " is not in 0 to ", kMaxRank - 1,
        " in ", both);
  for (const Leg& leg : rule.legs) check_known(leg);
  rules_.push_back(std::move(rule));
  return *this;
}

ParameterMap& ParameterMap::add(const std::string& from, const std::string& to, std::vector<Leg> legs) {
  return add_rule({{from}, {to}, std::move(legs), 0});
}

ParameterMap& ParameterMap::split(const std::string& from, const std::vector<std::string>& to, int dim,
                                  std::vector<Leg> legs) {
  check(!to.empty(), "parameter map: '", from, "' is split into nothing");
  return add_rule({{from}, to, std::move(legs), dim});
}

ParameterMap& ParameterMap::concat(const std::vector<std::string>& from, const std::string& to, int dim,
                                   std::vector<Leg> legs) {
  check(!from.empty(), "parameter map: nothing is joined to '", to, "'");
  return add_rule({from, {to}, std::move(legs), dim});
}

ParameterMap& ParameterMap::leave_out(const std::string& pattern) { return add_rule({{pattern}, {}, {}, 0}); }

std::optional<ParameterMap::Match> ParameterMap::first_match(const std::string& name) const {
  for (const Rule& r : rules_)
    for (size_t i = 0; i < r.from.size(); ++i) {
      std::vector<std::string> stars;
      if (names::matches(r.from[i], name, stars)) return Match{&r, i, std::move(stars)};
    }
  return {};
}

std::optional<Route> ParameterMap::route(const std::string& name) const {
  const std::optional<Match> match = first_match(name);
  if (!match) return Route{name};
  const auto& [rule, i, stars] = *match;
  if (rule->to.empty()) return {};
  Route route{.name = names::filled(rule->to[0], stars), .legs = rule->legs, .dim = rule->dim};
  for (size_t k = 1; k < rule->to.size(); ++k) route.more.push_back(names::filled(rule->to[k], stars));
  for (size_t k = 0; k < rule->from.size(); ++k)
    if (k != i) (k < i ? route.before : route.after).push_back(names::filled(rule->from[k], stars));
  return route;
}

std::string ParameterMap::unused(const std::vector<std::string>& all) const {
  std::set<const Rule*> decide;
  for (const std::string& name : all)
    if (const std::optional<Match> match = first_match(name)) decide.insert(match->rule);
  for (const Rule& r : rules_)
    if (!decide.contains(&r) && !r.to.empty()) return spoken(r.from, r.to);
  return "";
}

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

ParameterMap ParameterMap::mapped_storage(const nn::Module& raw, const streams::Stream& stream) {
  ParameterMap map;
  for (const streams::NamedParameter& p : streams::named_parameters(raw)) {
    if (p.role == streams::Role::neutral) continue;
    const Map to = row_of(stream.form()).map(p.role, stream.width());
    if (!to.is_identity()) map.add(p.name, p.name, {{to.name(), p.stream_dim, {}, to}});
  }
  return map;
}

}  // namespace isonorm::equivalence
