// A GPT-2 with one block, stored as in other frameworks, and its description.
#pragma once

#include <string>

#include "autograd/ops/random.h"
#include "streams/plan.h"
#include "streams/stream.h"

namespace isonorm::test {

// Token table with `rows` rows; f32, all numbers random.
inline TensorMap gpt2(int64_t width, int64_t rows) {
  TensorMap state;
  Generator generator{4, 0};
  const auto add = [&](const std::string& name, const Dims& shape) {
    state.add(name, randn(shape, {DType::f32}, generator));
  };
  add("wte.weight", {rows, width}), add("wpe.weight", {3, width});
  for (const char* norm : {"h.0.ln_1", "h.0.ln_2", "ln_f"})
    add(text(norm, ".weight"), {width}), add(text(norm, ".bias"), {width});
  add("h.0.attn.c_attn.weight", {width, 3 * width}), add("h.0.attn.c_attn.bias", {3 * width});
  add("h.0.attn.c_proj.weight", {width, width}), add("h.0.attn.c_proj.bias", {width});
  add("h.0.mlp.c_fc.weight", {width, 4 * width}), add("h.0.mlp.c_fc.bias", {4 * width});
  add("h.0.mlp.c_proj.weight", {4 * width, width}), add("h.0.mlp.c_proj.bias", {width});
  return state;
}

inline std::string gpt2_spec(int64_t width) {
  return text(R"({"width": )", width, R"(, "norms": {"h.*.ln_1": "1e-5", "h.*.ln_2": "1e-5", "ln_f": "1e-5"},
    "writers": {"wte.weight": 1, "wpe.weight": 1, "h.*.attn.c_proj.weight": 1, "h.*.attn.c_proj.bias": 0,
                "h.*.mlp.c_proj.weight": 1, "h.*.mlp.c_proj.bias": 0},
    "readers": {"h.*.attn.c_attn.weight": {"dim": 0, "norm": "h.*.ln_1"},
                "h.*.mlp.c_fc.weight": {"dim": 0, "norm": "h.*.ln_2"}},
    "tied": {"wte.weight": {"head": "lm_head.weight", "norm": "ln_f"}}})");
}

inline streams::Plan gpt2_plan(const TensorMap& state, int64_t width) {
  return streams::plan_in(streams::Layout::from_json(gpt2_spec(width)), state, streams::Form::layer_norm);
}

}  // namespace isonorm::test
