// Internal: small networks of arrangements that are newer than 2305.14858, as modules that know no form, each with the layout that
// puts it on a stream. Blocks x + W2 gelu(W1 z + b1) + b2 in f64 with random weights. P takes the mean of a row off.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "nn/module.h"
#include "streams/layout.h"

namespace isonorm::papers {

constexpr int64_t kNewerIds = 12, kNewerWidth = 24, kNewerClasses = 10;

// What the forward of an exact form does beside the maps of weights, and what is wrong without it.
enum class Slip { none, gains_as_they_are, last_norm_as_it_is };

struct NewerArrangement {
  const char* name;
  std::unique_ptr<nn::Module> (*make)(Slip slip);
  streams::Layout layout;                 // of the exact form; its width is that of the stream
  std::vector<streams::Form> exact = {};  // none: there is no exact form
  struct Wrong {
    const char* what;
    streams::Form form;
    streams::Layout layout;
    Slip slip = Slip::none;
  };
  std::vector<Wrong> wrong = {};
};

// Peri-LN (2502.02732), x = N(E); x += N(F(N(x))), without gains and with them. P E, P W2, P b2: N(P y) = LN(y), and what N writes
// has no mean. Behind a gain it has one, and P stands behind the gain.
std::vector<NewerArrangement> peri_ln();

// OLMo 2's order (2501.00656), x = E; x += N(F(x)). P W2, P b2, and P before the last norm. E stays: F reads its mean.
std::vector<NewerArrangement> olmo2_order();

// Hyper-connections (2409.19606; mHC, 2512.24880), X <- M X + b F(N(a X)) for the rows X of several streams: with numbers M, a, b; with
// coefficients a + tanh(p N(X)); with a + tanh(p X). M, a and b act on streams and P on entries: they commute, whatever M is. What is
// computed of a row has to be blind to its mean.
std::vector<NewerArrangement> hyper_connections();

// QK-norm (2302.05442), N(Wq z) and N(Wk z): P Wq, P Wk, with the P of a head, whose rows are a stream of their own. Scores are products
// of its rows: isometric coordinates keep them, those of crms_norm do not.
std::vector<NewerArrangement> qk_norm();

// DyT (2503.10622) and Derf (2512.10938): tanh(a x) and erf(a x + s) act on each entry and see a row's mean. No model that reads P x
// alone is theirs.
std::vector<NewerArrangement> pointwise();

}  // namespace isonorm::papers
