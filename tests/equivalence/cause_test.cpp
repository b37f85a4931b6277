// The explanation of a difference if the first model is a user's plain model, on no stream.
#include "equivalence/compare/compare.h"

#include "tests/equivalence/small_net.h"
#include "tests/support/thrown.h"

namespace {

enum class Fault { none, forgotten, stored, bare_head };

// x <- entry(in) + pos, then + down(relu(up(norm1(x)))), a norm and a head.
struct Net : nn::Module {
  Fault fault;
  nn::Linear& entry = add("entry", nn::Linear(5, 8));
  nn::Parameter& pos = add_parameter("pos", ones({12, 8}));
  nn::LayerNorm& norm1 = add("norm1", nn::LayerNorm(8));
  nn::Linear& up = add("up", nn::Linear(8, 10));
  nn::Linear& down = add("down", nn::Linear(10, 8));
  nn::LayerNorm& norm = add("norm", nn::LayerNorm(8));
  nn::Linear& head = add("head", nn::Linear(8, 3));
  Net(Fault f, Form form) : fault(f) {
    to(DType::f64);
    if (form == Form::none) return;
    streams::Layout layout;
    layout.writes("entry").writes("down").reads("up", "norm1").reads("head", "norm");
    if (f != Fault::forgotten) layout.writes("pos");
    streams::parametrize(*this, layout, streams::Stream(form, 8));
  }
  Tensor forward(const Tensor& in) override {
    nn::Residual x = entry(in) + (fault == Fault::stored ? pos.stored() : pos());
    x += down(relu(up(norm1(x))));
    return fault == Fault::bare_head ? head(x.settle()) : head(norm(x));
  }
};

// The message, or the error, of a comparison of the plain model with a model on a stream.
std::string said(Fault fault, Form form) {
  Net plain(fault, Form::none), other(fault, form);
  try {
    return compare_gradients(plain, other, {}, training::cross_entropy_of, small_batch, {.points = 2}).sentence();
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("cause: a plain reference says as much as one on a stream") {
  CHECK_THAT(said(Fault::none, Form::rms_norm), StartsWith("equivalent"));
  CHECK_THAT(said(Fault::none, Form::crms_norm), StartsWith("equivalent"));
  CHECK_THAT(
      said(Fault::forgotten, Form::rms_norm),
      Contains("cause: a writer that the layout does not name: pos [12, 8] is neutral; as a writer the two agree"));
  CHECK_THAT(
      said(Fault::stored, Form::rms_norm),
      Contains("cause: a parameter that is not mapped: pos is a writer, and the forward reads its stored tensor"));
  CHECK_THAT(said(Fault::bare_head, Form::rms_norm),
             Contains("cause: a first model that sees the mean of its stream, as one without a final norm does"));
}

TEST_CASE("cause: if a forward in compressed coordinates fails, it names possible gaps of the layout") {
  CHECK_THAT(
      said(Fault::forgotten, Form::crms_norm),
      Contains("sizes 7 and 8 differ (crms_norm stores 7 of the 8 entries of a row: does the layout miss a writer") &&
          Contains("; neutral, with an axis of this width: pos [12, 8]"));
  CHECK_THAT(said(Fault::stored, Form::crms_norm),
             Contains("or does the forward read a parameter p without calling p()?"));
}
