// ParameterMap maps the parameters of a model to the parameters of another, by name and through linear maps. With w a
// parameter of A, M w its partner in B, and one loss, L_A(w) = L_B(M w), the gradients are related by dL/dw = M*
// dL/d(Mw).
//
//   ParameterMap map;                                              // same names, same values: the identity
//   map.add("blocks.*.attn.proj.*", "h.*.attn.c_proj.*", {{"recentre", 0}});
//   map.add("conv.weight", "patches.weight", {{.map = "reshape", .shape = {6, 12}}});
//   map.split("attn.qkv.*", {"attn.q.*", "attn.k.*", "attn.v.*"});   // one in A, three in B
//   map.concat({"mlp.gate.*", "mlp.up.*"}, "mlp.gate_up.*");         // two in A, one in B
//   map.leave_out("h.*.attn.bias");                                // a mask that is no parameter
//
// The same from a file (JSON; only "a" must be there; "map" is a name or a list of names, in order; a list as "b" is a
// split, a list as "a" a concatenation; an empty "b" leaves the parameter out):
//
//   [{"a": "blocks.*.attn.proj.*", "b": "h.*.attn.c_proj.*", "map": "recentre", "dim": 0},
//    {"a": "conv.weight", "b": "patches.weight", "map": "reshape", "shape": [6, 12]},
//    {"a": "attn.qkv.*", "b": ["attn.q.*", "attn.k.*", "attn.v.*"], "dim": 0},
//    {"a": "h.*.attn.bias", "b": ""}]
//
// The first rule whose pattern fits a name decides; a name without a rule stays the same. Patterns: io/name_pattern.h;
// the i-th star of the new name takes the text that the i-th star of the pattern matched.
//
// Splits, concatenations, reshapes and transposes rearrange entries. An optimizer that updates each entry by itself
// (SGD, Adam) therefore commutes with them. An optimizer that uses a matrix or a norm of each parameter (Muon, LAMB)
// does not.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// A linear map. Along dimension `dim`: identity, recentre, compress, expand, compress_reader, expand_reader, isometric
// (streams/map.h). transpose exchanges the two dimensions of a matrix. reshape gives a tensor of shape `shape`, its
// entries in row-major order.
struct Leg {
  std::string map;
  int dim = 0;
  Dims shape = {};
  std::optional<streams::Map> made = {};  // the map itself, if it has no name here
};

// The partner of a parameter of A: its name in B, and the maps that lead there, first map first.
struct Route {
  std::string name;
  std::vector<Leg> legs = {};
  int dim = 0;  // the axis of a split or a concatenation
  // Splits: the tensors of B that are joined to `name` along `dim`.
  std::vector<std::string> more = {};
  // Concatenations: the parameters of A before and after this one in B's tensor, along `dim`.
  std::vector<std::string> before = {}, after = {};

  // M w, and its shape. Throws if a map does not fit the shape.
  Tensor forward(const Tensor& w) const;
  Dims forward(const Dims& shape) const;
  // M* g, for a g of the shape that M gives; `shape` is w's. Throws if g has another shape.
  Tensor adjoint(const Tensor& g, const Dims& shape) const;

  // The names of B's tensors, `name` and `more`; and as one text, "q + k + v".
  std::vector<std::string> partners() const;
  std::string partner_name() const;
  // True if B's tensor differs from A's parameter by a map, a split or a concatenation.
  bool acts() const { return !legs.empty() || !more.empty() || is_concatenation(); }
  bool is_concatenation() const { return !before.empty() || !after.empty(); }
};

// The counterpart in B of a parameter of A: a whole tensor, several joined tensors, or a part of a tensor.
class Partner {
 public:
  using Shapes = std::function<std::optional<Dims>(const std::string& name)>;

  Partner() = default;  // a whole tensor
  // The partner of A's parameter `name`; `a` gives the shapes of A's parameters. Throws if a parameter that is joined
  // with it is missing or does not fit.
  Partner(const Route& route, const std::string& name, const Shapes& a);
  // The counterpart of A's parameter, read from B's tensors `stored` (route.partners()). Throws if they cannot be
  // joined, or if their size is not the total size of A's parameters.
  Tensor read(const std::vector<Tensor>& stored) const;
  // Puts `value` there. It has the shape that read() gives.
  void write(const Tensor& value, const std::vector<Tensor>& stored) const;

 private:
  std::string what_ = {};    // in B
  std::string joined_ = {};  // the parameters of A that are joined; empty: no concatenation
  int dim_ = 0;
  int64_t begin_ = 0, size_ = 0, total_ = 0;  // of a concatenation, along dim_
};

class ParameterMap {
 public:
  // The parameters of `raw` (a model with raw storage) as a model on `stream` stores them: writers and readers by their
  // roles (streams/stream.h).
  static ParameterMap mapped_storage(const nn::Module& raw, const streams::Stream& stream);
  // Rules from JSON. Throws if the text has another form, a rule has a key twice, a map is unknown, or a new name has a
  // * without a counterpart in the pattern.
  static ParameterMap from_json(std::string_view json);

  // All of these throw if a name is empty, a map is unknown, or a new name has a * without a counterpart in the
  // pattern.
  ParameterMap& add(const std::string& from, const std::string& to, std::vector<Leg> legs = {});
  // The legs map the parameter to B's tensors `to`, joined along dimension `dim` in this order. The shapes of `to`
  // define the cuts.
  ParameterMap& split(const std::string& from, const std::vector<std::string>& to, int dim = 0,
                      std::vector<Leg> legs = {});
  // The legs map each parameter in `from`; the results, joined along dimension `dim` in this order, are B's tensor
  // `to`. Throws if the patterns have different numbers of stars.
  ParameterMap& concat(const std::vector<std::string>& from, const std::string& to, int dim = 0,
                       std::vector<Leg> legs = {});
  // Leaves out parameters that B lacks. Comparisons of two models refuse it if B has a parameter with the same name.
  ParameterMap& leave_out(const std::string& pattern);

  // Nothing if the parameter is left out.
  std::optional<Route> route(const std::string& name) const;
  // A rule of add(), split() or concat() that decides about none of the names, because it fits none or an earlier rule
  // fits first: "'fc.*' -> 'linear.*'". Empty if there is none.
  std::string unused(const std::vector<std::string>& names) const;

 private:
  struct Rule {
    std::vector<std::string> from, to;  // several in a concatenation, in a split; no `to`: left out
    std::vector<Leg> legs;
    int dim;
  };
  struct Match {
    const Rule* rule;
    size_t from;                     // the pattern in rule->from that fits
    std::vector<std::string> stars;  // the text of each star
  };
  ParameterMap& add_rule(Rule rule);
  std::optional<Match> first_match(const std::string& name) const;  // the rule that decides about the name

  std::vector<Rule> rules_;
};

}  // namespace isonorm::equivalence
