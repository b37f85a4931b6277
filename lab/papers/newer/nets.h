// Internal: small networks with architectures newer than 2305.14858, f64, random weights, blocks x + W2 gelu(W1 z + b1)
// + b2. The modules know nothing of forms; each comes with the layout of its residual stream. P subtracts the mean of a
// row.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nn/module.h"
#include "streams/layout.h"

namespace isonorm::papers {

constexpr int64_t kNewerIds = 12, kNewerWidth = 24, kNewerClasses = 10;

// A step that an exact form's forward needs in addition to the mapped weights. An experiment leaves it out to show that
// it is needed.
enum class Slip { none, gains_as_they_are, last_norm_as_it_is };

struct NewerArrangement {
  const char* name;
  std::unique_ptr<nn::Module> (*make)(Slip slip);
  streams::Layout layout;                 // of the exact form; its width is the width of the stream
  std::vector<streams::Form> exact = {};  // empty: there is no exact form
  struct Wrong {
    const char* what;
    streams::Form form;
    streams::Layout layout;
    Slip slip = Slip::none;
  };
  std::vector<Wrong> wrong = {};
};

// Peri-LN (2502.02732): x = N(E); x += N(F(N(x))), without and with gains. The exact form uses P E, P W2, P b2: N(P y)
// = LN(y), and the output of N has mean 0. With gains the output has a mean, so P is applied after them.
std::vector<NewerArrangement> peri_ln();

// OLMo 2's order (2501.00656): x = E; x += N(F(x)). The exact form uses P W2, P b2, and P before the last norm. E is
// not mapped, because F reads its mean.
std::vector<NewerArrangement> olmo2_order();

// Hyper-connections (2409.19606; mHC, 2512.24880): X <- M X + b F(N(a X)) for the rows X of several streams. Three
// variants: constants M, a, b; coefficients a + tanh(p N(X)); coefficients a + tanh(p X). M, a and b act on streams and
// P acts on entries, so they commute for every M. Coefficients that are computed from a row must not depend on its
// mean.
std::vector<NewerArrangement> hyper_connections();

// QK-norm (2302.05442): N(Wq z) and N(Wk z). The exact form uses P Wq and P Wk, with the P of a head: queries and keys
// are streams of their own. Scores are inner products: isometric coordinates keep them, crms_norm's coordinates do not.
std::vector<NewerArrangement> qk_norm();

// DyT (2503.10622) and Derf (2512.10938): tanh(a x + s) and erf(a x + s) act on each entry and depend on the mean of a
// row. No model that reads only P x is equal to them.
std::vector<NewerArrangement> pointwise();

}  // namespace isonorm::papers
