// How the parameters of one model become those of another: by name, and through linear maps. With w a parameter of A,
// M w its partner in B, and one loss, L_A(w) = L_B(M w), the gradients are related by dL/dw = M* dL/d(Mw).
//
//   ParameterMap map;                                              // same names, same values: the identity
//   map.add("blocks.*.attn.proj.*", "h.*.attn.c_proj.*", {{"recentre", 0}});
//   map.leave_out("h.*.attn.bias");                                // a mask that is no parameter
//
// The same from a file (JSON; only "a" must be there; "map" is a name or a list of names, in order; an empty "b" leaves
// the parameter out):
//
//   [{"a": "blocks.*.attn.proj.*", "b": "h.*.attn.c_proj.*", "map": "recentre", "dim": 0},
//    {"a": "h.*.attn.bias", "b": ""}]
//
// The first rule whose pattern fits a name decides; a name that none fits keeps itself. Patterns: io/name_pattern.h;
// the i-th star of the new name stands for what the i-th one matched.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// A linear map along one dimension: identity, recentre, compress, expand, compress_reader, expand_reader, isometric
// (map.h); or transpose, which exchanges the two dimensions of a matrix.
struct Leg {
  std::string map;
  int dim = 0;
};

// Where a parameter goes: its name in B, and the maps on the way, in the order in which they act.
struct Route {
  std::string name;
  std::vector<Leg> legs = {};

  // M w. Throws where a map does not fit the shape.
  Tensor forward(const Tensor& w) const;
  // M* g, for a g of the shape that M gives; `shape` is that of w.
  Tensor adjoint(const Tensor& g, const Dims& shape) const;
};

class ParameterMap {
 public:
  // The parameters of `raw` (a model with raw storage) as a stream of that form and width stores them: writers and
  // readers by their roles (streams/stream.h).
  static ParameterMap mapped_storage(const nn::Module& raw, const streams::Stream& stream);
  // Rules from JSON. Throws on text of another form, a key twice in a rule, an unknown map, or a * in the new name that
  // has nothing to stand for.
  static ParameterMap from_json(std::string_view json);

  ParameterMap& add(const std::string& from, const std::string& to, std::vector<Leg> legs = {});
  ParameterMap& leave_out(const std::string& pattern);

  // Nothing where the parameter is left out.
  std::optional<Route> route(const std::string& name) const;

 private:
  struct Rule {
    std::string from, to;
    std::vector<Leg> legs;
    bool ignore;
  };
  std::vector<Rule> rules_;
};

}  // namespace isonorm::equivalence
