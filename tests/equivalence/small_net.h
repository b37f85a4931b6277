// A small model like a user's, with switches for properties that keep it convertible and properties that do not.
#pragma once

#include "equivalence/compare/compare.h"
#include "equivalence/lockstep/prove.h"
#include "nn/linear.h"
#include "nn/parameter_free.h"
#include "nn/residual/pre_norm.h"
#include "tests/equivalence/room.h"

namespace isonorm::equivalence {

struct Switches {
  streams::Form form = streams::Form::layer_norm;
  streams::Stored storage = streams::Stored::raw;
  bool final_norm = true, scale = false, declared = true, affine = false;
  double dropout = 0, eps = 1e-5;
};

// x <- x + down(relu(up(norm(x)))), twice, then a norm and a head.
struct SmallNet : nn::Module {
  Switches on;
  nn::ConnectionOptions norms{.eps = on.eps, .affine = on.affine};
  nn::Linear& entry = add("entry", nn::Linear(5, 8));
  nn::PreNorm& norm1 = add("norm1", nn::PreNorm(8, norms));
  nn::Linear& up1 = add("up1", nn::Linear(8, 10));
  nn::Linear& down1 = add("down1", nn::Linear(10, 8));
  nn::Dropout& dropout = add("dropout", nn::Dropout(on.dropout));
  nn::PreNorm& norm2 = add("norm2", nn::PreNorm(8, norms));
  nn::Linear& up2 = add("up2", nn::Linear(8, 10));
  nn::Linear& down2 = add("down2", nn::Linear(10, 8));
  nn::PreNorm& norm = add("norm", nn::PreNorm(8, norms));
  nn::Linear& head = add("head", nn::Linear(8, 3));
  nn::Parameter& scale;

  explicit SmallNet(const Switches& s) : on(s), scale(add_parameter("scale", s.scale ? ones({8}) : Tensor())) {
    streams::Layout layout;
    layout.writes("entry").writes("down2").reads("up1", "norm1").reads("up2", "norm2").reads("head", "norm");
    if (s.declared) layout.writes("down1");
    streams::parametrize(*this, layout, streams::Stream(s.form, 8, s.storage));
    to(DType::f64);
  }
  Tensor forward(const Tensor& x) override {
    nn::Residual r{entry(x), {}};
    const Tensor branch = dropout(down1(relu(up1(norm1.read(r)))));
    norm1.join(r, on.scale ? branch * scale : branch);
    norm2.join(r, down2(relu(up2(norm2.read(r)))));
    if (on.final_norm) return head(norm.read(r));
    return head(r.settle());
  }
};

inline training::Examples small_batch(int64_t point) {
  Generator g{77, static_cast<uint64_t>(point) << 20};
  return {randn({12, 5}, {DType::f64}, g), randint(0, 3, {12}, kCpu, g)};
}

inline std::unique_ptr<SmallNet> small_net(const Switches& s, uint64_t seed = 3) {
  manual_seed(seed);
  return std::make_unique<SmallNet>(s);
}

// Checks the verdict of a comparison and returns the comparison.
inline Comparison expected(Verdict verdict, const Comparison& c) {
  INFO(c.sentence());
  CHECK(c.verdict == verdict);
  return c;
}

// Checks that every run of a proof has the expected result.
inline void check_runs(const ProofResult& r) {
  for (const RunResult& run : r.runs) {
    INFO(run.form << ' ' << run.variant->name << ": " << run.reason);
    CHECK(run.verdict == run.expected);
    CHECK(run.as_expected);
  }
}

}  // namespace isonorm::equivalence
