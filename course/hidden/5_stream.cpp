// Hidden tests of lab 5.
#include "labs/5_stream.h"

#include "support/tests.h"

namespace course {
namespace {

constexpr Form kForms[] = {Form::layer_norm, Form::rms_norm, Form::crms_norm, Form::crms_isometric};

// An embedding, two branches and a head on a stream of width 7.
Tensor network(Form form, const Tensor& z) {
  const auto write = [&](const Tensor& rows, uint64_t seed) {
    return matmul(rows, stored_writer(form, random({7, rows.size(-1)}, seed)).transpose());
  };
  const auto read = [&](const Tensor& x, uint64_t seed) {
    return matmul(stored_norm(form, x, 0.01), stored_reader(form, random({5, 7}, seed)).transpose());
  };
  Tensor x = write(z, 30);
  for (uint64_t block : {31u, 33u}) x = x + write(read(x, block).tanh(), block + 1);
  return read(x, 40);
}

const Test kOne(
    "four forms, one network", 3,
    [] {
      const Tensor z = random({6, 3}, 20), expected = network(Form::layer_norm, z);
      for (Form form : kForms) expect_close(streams::name_of(form), network(form, z), expected, 1000);
    },
    Seen::hidden);

const Test kNorms(
    "norms of rows with a mean and an eps that counts", 1,
    [] {
      const Tensor x = random({2, 3, 6}, 21) + 1.0;
      expect_close("layer_norm", stored_norm(Form::layer_norm, x, 0.3), layer_norm(x, {.eps = 0.3}));
      expect_close("rms_norm", stored_norm(Form::rms_norm, x, 0.3), rms_norm(x, {.eps = 0.3}));
      expect_close("crms_norm", stored_norm(Form::crms_norm, x, 0.3), crms_norm(x, {}, {}, {.eps = 0.3}));
      expect_close("crms_isometric", stored_norm(Form::crms_isometric, x, 0.3),
                   crms_isometric_norm(x, {}, {}, {.eps = 0.3}));
    },
    Seen::hidden);

const Test kRestored(
    "stored rows give P x again", 1,
    [] {
      const Tensor x = random({3, 6}, 22);
      for (Form form : kForms)
        expect_close(streams::name_of(form), restored(form, stored_writer(form, x.transpose()).transpose()),
                     recentre(x, 1));
    },
    Seen::hidden);

const Test kHelmert(
    "the Helmert basis is the library's, also of width 2", 1,
    [] {
      for (int64_t d : {2, 9}) expect_close("Q", helmert_basis(d), streams::helmert(d));
    },
    Seen::hidden);

const Test kFolded(
    "gain and bias go into the reader", 1,
    [] {
      const Tensor n = random({4, 6}, 23), gain = random({6}, 24), bias = random({6}, 25);
      const Reader reader{random({3, 6}, 26), random({3}, 27)}, f = folded(reader, gain, bias);
      expect_close("A' n + b'", matmul(n, f.weight.transpose()) + f.bias,
                   matmul(n * gain + bias, reader.weight.transpose()) + reader.bias);
    },
    Seen::hidden);

}  // namespace
}  // namespace course
