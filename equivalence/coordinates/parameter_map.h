// How the parameters of one model become the parameters of another: by name, and through linear maps. With w a parameter of A,
// M w its partner in B, and one loss, L_A(w) = L_B(M w), the gradients are related by dL/dw = M* dL/d(Mw).
//
//   ParameterMap map;                                              // same names, same values: the identity
//   map.add("blocks.*.attn.proj.*", "h.*.attn.c_proj.*", {{"recentre", 0}});
//   map.add("conv.weight", "patches.weight", {{.map = "reshape", .shape = {6, 12}}});
//   map.split("attn.qkv.*", {"attn.q.*", "attn.k.*", "attn.v.*"});   // one parameter of A, three of B
//   map.concat({"mlp.gate.*", "mlp.up.*"}, "mlp.gate_up.*");         // two parameters of A, one of B
//   map.leave_out("h.*.attn.bias");                                // a mask that is no parameter
//
// The same from a file (JSON; only "a" must be there; "map" is a name or a list of names, in order; a list as "b" is a split, a
// list as "a" a concatenation; an empty "b" leaves the parameter out):
//
//   [{"a": "blocks.*.attn.proj.*", "b": "h.*.attn.c_proj.*", "map": "recentre", "dim": 0},
//    {"a": "conv.weight", "b": "patches.weight", "map": "reshape", "shape": [6, 12]},
//    {"a": "attn.qkv.*", "b": ["attn.q.*", "attn.k.*", "attn.v.*"], "dim": 0},
//    {"a": "h.*.attn.bias", "b": ""}]
//
// The first rule whose pattern fits a name decides; a name that none fits keeps itself. Patterns: io/name_pattern.h; the i-th star
// of the new name stands for what the i-th one matched.
//
// Splits, concatenations, reshapes and transposes rearrange entries. So an optimizer that updates each entry by itself (SGD, Adam)
// commutes with them. One that uses a matrix or a norm of each parameter (Muon, LAMB) does not.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// A linear map. Along dimension `dim`: identity, recentre, compress, expand, compress_reader, expand_reader, isometric (map.h).
// transpose exchanges the two dimensions of a matrix. reshape gives a tensor of shape `shape`, its entries in row-major order.
struct Leg {
  std::string map;
  int dim = 0;
  Dims shape = {};
};

// Where a parameter of A goes: its name in B, and the maps on the way, in the order in which they act.
struct Route {
  std::string name;
  std::vector<Leg> legs = {};
  int dim = 0;  // of a split or a concatenation
  // Of a split: the tensors of B that are joined to `name` along `dim`.
  std::vector<std::string> more = {};
  // Of a concatenation: the parameters of A that stand before this one and after it in B's tensor, along `dim`.
  std::vector<std::string> before = {}, after = {};

  // M w, and its shape. Throws if a map does not fit the shape.
  Tensor forward(const Tensor& w) const;
  Dims forward(const Dims& shape) const;
  // M* g, for a g of the shape that M gives; `shape` is w's. Throws if g has another shape.
  Tensor adjoint(const Tensor& g, const Dims& shape) const;

  // Of B's tensors: `name` and `more`; and as one text, "q + k + v".
  std::vector<std::string> partners() const;
  std::string partner_name() const;
  // Whether B's tensor is another one than A's parameter.
  bool acts() const { return !legs.empty() || !more.empty() || is_concatenation(); }
  bool is_concatenation() const { return !before.empty() || !after.empty(); }
};

// What stands in B for a parameter of A: a whole tensor, several joined ones, or a part of one.
class Partner {
 public:
  using Shapes = std::function<std::optional<Dims>(const std::string& name)>;

  Partner() = default;  // a whole tensor
  // Of A's parameter `name`; `a` gives the shapes of A's parameters. Throws if one that is joined with it is missing or does not
  // fit.
  Partner(const Route& route, const std::string& name, const Shapes& a);
  // Of B's tensors `stored` (route.partners()), the tensor that stands for A's parameter. Throws if they cannot be
  // joined, or if their size is not the size of A's parameters together.
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
  // The parameters of `raw` (a model with raw storage) as a stream of that form and width stores them: writers and
  // readers by their roles (streams/stream.h).
  static ParameterMap mapped_storage(const nn::Module& raw, const streams::Stream& stream);
  // Rules from JSON. Throws on text of another form, a key twice in a rule, an unknown map, or a * in the new name that
  // has nothing to stand for.
  static ParameterMap from_json(std::string_view json);

  // All of these throw if a name is empty, a map is unknown, or a new name has a * that stands for nothing.
  ParameterMap& add(const std::string& from, const std::string& to, std::vector<Leg> legs = {});
  // What the legs make of the parameter is B's tensors `to`, joined along dimension `dim` in this order. Their shapes say where the
  // parameter is cut.
  ParameterMap& split(const std::string& from, const std::vector<std::string>& to, int dim = 0,
                      std::vector<Leg> legs = {});
  // What the legs make of each of the parameters `from` is joined along dimension `dim`, in this order, to B's tensor `to`. Throws
  // if the patterns have different numbers of stars.
  ParameterMap& concat(const std::vector<std::string>& from, const std::string& to, int dim = 0,
                       std::vector<Leg> legs = {});
  ParameterMap& leave_out(const std::string& pattern);

  // Nothing if the parameter is left out.
  std::optional<Route> route(const std::string& name) const;
  // A rule of add(), split() or concat() that fits none of the names: "'fc.*' -> 'linear.*'". Empty: there is none.
  std::string unused(const std::vector<std::string>& names) const;

 private:
  struct Rule {
    std::vector<std::string> from, to;  // several in a concatenation, in a split; no `to`: left out
    std::vector<Leg> legs;
    int dim;
  };
  ParameterMap& add_rule(Rule rule);

  std::vector<Rule> rules_;
};

}  // namespace isonorm::equivalence
