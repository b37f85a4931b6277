// Visible tests of lab 5.
#include "labs/5_stream.h"

#include "support/tests.h"

namespace course {
namespace {

const Test kBasis("the Helmert basis is orthonormal and has no mean", 2, [] {
  const Tensor q = helmert_basis(5), one = eye(4, -1, {.dtype = DType::f64});
  expect_close("Q^T Q", matmul(q.transpose(), q), one);
  expect_close("the sums of its columns", q.sum(0), zeros({4}, {.dtype = DType::f64}));
});

const Test kRms("rms_norm: the writer is centred, the reader is not", 1, [] {
  const Tensor w = random({5, 3}, 1), a = random({2, 5}, 2);
  expect_close("writer", stored_writer(Form::rms_norm, w), recentre(w, 0));
  expect_close("reader", stored_reader(Form::rms_norm, a), a);
});

const Test kCompressed("crms_norm: d - 1 rows and columns", 2, [] {
  const Tensor w = random({5, 3}, 1), a = random({2, 5}, 2);
  expect_close("writer", stored_writer(Form::crms_norm, w), streams::compress_writer(w, 0));
  expect_close("reader", stored_reader(Form::crms_norm, a), streams::compress_reader(a, 1));
});

const Test kNorm("the norm of a stored row is LayerNorm's result, stored", 2, [] {
  const Tensor x = random({4, 6}, 3) + 1.0, y = layer_norm(x);
  expect_close("rms_norm", stored_norm(Form::rms_norm, recentre(x, 1)), y);
  expect_close("crms_norm", stored_norm(Form::crms_norm, streams::compress_writer(x, 1)), narrow(y, 1, 0, 5));
});

}  // namespace
}  // namespace course
