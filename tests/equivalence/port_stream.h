// A small model on a residual stream, with a switch for every mistake that people make with writers and readers.
#pragma once

#include <string_view>

#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/parameter_free.h"
#include "tests/equivalence/small_net.h"

namespace isonorm::test {

// x <- entry(in) + pos, then + scale * dropout(down(relu(up(norm1(x))))), a norm and a head.
struct OnStream : nn::Module {
  std::string_view bug;
  bool second;
  nn::Linear& entry = add("entry", nn::Linear(5, 8));
  nn::Parameter& pos = add_parameter("pos", ones({12, 8}));
  nn::LayerNorm& norm1;
  nn::Linear& up = add("up", nn::Linear(8, 10));
  nn::Linear& down = add("down", nn::Linear(10, 8));
  nn::Parameter& scale = add_parameter("scale", is("scaled") ? ones({8}) : Tensor());
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(8));
  nn::Linear& head = add("head", nn::Linear(8, 3));

  OnStream(std::string_view planted, bool of_b)
      : bug(planted), second(of_b), norm1(add("norm1", nn::LayerNorm(8, {.eps = of_b && is("eps") ? 1e-6 : 1e-5}))) {
    to(DType::f64);
    if (is("plain first") && !second) return;
    streams::Layout layout;
    layout.writes("entry").reads("up", "norm1").reads("head", "norm");
    if (!second || !is("declared")) layout.writes("down");
    if (!second || !is("forgotten")) layout.writes("pos");
    streams::parametrize(*this, layout,
                         streams::Stream(second ? Form::rms_norm : Form::layer_norm, 8,
                                         second && is("unmapped") ? Stored::mapped : Stored::raw));
  }
  bool is(std::string_view name) const { return bug.find(name) != bug.npos; }

  Tensor forward(const Tensor& in) override {
    nn::Residual x = entry(in) + (second && is("stored") ? pos.stored() : pos());
    const Tensor h = up(norm1(x));
    Tensor y = down(second && is("gelu") ? gelu(h) : relu(h));
    if (is("dropped")) y = dropout(y, 0.3, training());
    if (is("scaled")) y = y * scale();
    if (second && is("halved")) y = y * 0.5;
    if (second && is("cut")) y = detach(y);
    x += y;
    return is("bare head") ? head(x.settle()) : head(norm(x));
  }
};

}  // namespace isonorm::test
