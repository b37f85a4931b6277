// A layout from a JSON file: how a checkpoint of another framework lies at its residual stream.
#pragma once

#include <string_view>

#include "core/tensor_map.h"
#include "equivalence/convert/layout.h"
#include "streams/stream.h"

namespace isonorm::equivalence {

// The entry of a file's metadata that names its form where it has no description of a model.
inline constexpr const char* kStreamForm = "stream.form";

// Reads a description such as (docs/conversion.md has whole ones)
//
//   {"width": 768,
//    "norms":   {"h.*.ln_1": "1e-5", "ln_f": "1e-5"},
//    "writers": {"wte.weight": 1, "h.*.attn.c_proj.weight": 1, "h.*.attn.c_proj.bias": 0},
//    "readers": {"h.*.attn.c_attn.weight": {"dim": 0, "norm": "h.*.ln_1", "bias": "h.*.attn.c_attn.bias"}},
//    "tied":    {"wte.weight": {"head": "lm_head.weight", "norm": "ln_f"}},
//    "scales":  {"h.*.attn.c_proj.weight": "h.*.ls_1.gamma"},
//    "others":  ["h.*.attn.bias"], "not_on_stream": ["h.*.attn.mask"]}
//
// against the names of a state. A '*' stands for one or more characters other than '.'; in the names of a member's
// value it stands for what it matched in the member's key. A norm's gain and bias are "<norm>.weight" and "<norm>.bias"
// where the state has them; a reader's bias, where it is not given, has the name of the weight with "weight" at its end
// replaced by "bias"; it need not be listed. A tied table's head that is there is a reader of its own. A number beside
// a writer, and "dim", is the stream's axis. "others" touch the stream neither way; one with an axis of the stream's
// width must stand under "not_on_stream" instead, or check_convertible() takes it for a forgotten writer. A layer
// scale belongs to a writer, and where that is a "...weight" with a "...bias" to both; converted: whether the state is
// a conversion's result, in which scales may be gone, as gains may be in any. Of two patterns that fit a norm its own
// name counts. Throws, naming the entry, where the JSON is not of that form, a pattern meets no tensor (of norms: nor a
// reader), or a tensor or a norm meets two.
Layout parse_layout(std::string_view json, const TensorMap& state, streams::Form form, bool converted = false);

}  // namespace isonorm::equivalence
