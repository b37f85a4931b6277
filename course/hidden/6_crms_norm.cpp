// Hidden tests of lab 6.
#include "labs/6_crms_norm.h"

#include "hidden/support/candidates.h"
#include "support/tests.h"

namespace course {
namespace {

const Test kShapes(
    "forward and backward of other shapes", 1,
    [] {
      for (const Candidate& right : right_crms_norms())
        for (const Dims& shape : {Dims{1, 1}, Dims{1, 5}, Dims{9, 2}, Dims{2, 3, 17}, Dims{6, 64}}) {
          const Tensor v = random(shape, 11) + 3.0, dy = random(shape, 12);
          const NormWeights w{random({v.size(-1)}, 13), random({v.size(-1)}, 14), 0.1};
          const NormGradients got = crms_norm_backward(v, w, dy), expected = right.norm.backward(v, w, dy);
          expect_close("y", crms_norm_forward(v, w), right.norm.forward(v, w));
          expect_close("dv", got.x, expected.x);
          expect_close("dgain", got.gain, expected.gain);
          expect_close("dbias", got.bias, expected.bias);
        }
    },
    Seen::hidden);

// The loss of a writer W [d, in] and a reader A [out, d] with LayerNorm between them, for inputs z [in, rows].
Tensor loss(const Tensor& w, const Tensor& a, const Tensor& z, const Tensor& c) {
  return (matmul(layer_norm(matmul(w, z).transpose()), a.transpose()) * c).sum();
}
Tensor stored_loss(const Tensor& b, const Tensor& ad, const Tensor& z, const Tensor& c) {
  return (matmul(crms_norm(matmul(b, z).transpose()), ad.transpose()) * c).sum();
}

const Test kSteps(
    "twenty steps in d - 1 coordinates follow Pre-LN", 1,
    [] {
      Tensor w = random({6, 4}, 20), a = random({3, 6}, 21);
      Tensor b = streams::compress_writer(w, 0), ad = streams::compress_reader(a, 1);
      for (uint64_t step = 0; step < 20; ++step) {
        const Tensor z = random({4, 5}, 100 + step), c = random({5, 3}, 200 + step);
        for (Tensor* t : {&w, &a, &b, &ad}) *t = t->clone().require_grad();
        const auto g = grad(loss(w, a, z, c), {w, a}), h = grad(stored_loss(b, ad, z, c), {b, ad});
        w = w.detach() - g[0] * 0.05, a = a.detach() - g[1] * 0.05;
        b = b.detach() - writer_direction(h[0]) * 0.05, ad = ad.detach() - reader_direction(h[1]) * 0.05;
      }
      check(deviation(b, streams::compress_writer(w, 0)) < 1e-10, "the writer is another one than Pre-LN's");
      check(deviation(ad, streams::compress_reader(a, 1)) < 1e-10, "the reader is another one than Pre-LN's");
    },
    Seen::hidden);

// Not hidden: whoever has been marked may see which wrong norms survived.
const Test kWrongNorms("your test rejects wrong norms", 8,
                       [] { return share_rejected(accepts_crms_norm, right_crms_norms(), wrong_crms_norms()); });

}  // namespace
}  // namespace course
