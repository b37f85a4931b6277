// F2, F3, F4 as a check of any model: the reference with the sums written out, and every way to break it.
#include "equivalence/compare/shift_blind.h"

#include "tests/equivalence/small_net.h"

namespace {

ShiftBlindness blindness(const Switches& s) {
  return check_shift_blind(*small_net(s), cross_entropy_of, small_batch, {.points = 2});
}

}  // namespace

TEST_CASE("shift: Pre-LN is blind in stream, writers and readers") {
  const ShiftBlindness r = blindness({});
  INFO(r.sentence());
  CHECK(r.convertible());
  CHECK(r.readers_blind);
  CHECK(r.stream_blind);
  CHECK(r.parameters.size() == 9);  // weights and biases of three writers, weights of three readers
  REQUIRE(r.streams.size() == 3);
  CHECK(r.streams[1].where.tensor == "norm2");
}

TEST_CASE("shift: plain RMSNorm is not blind, raw storage of every form is") {
  const ShiftBlindness plain = blindness({.form = Form::rms_norm, .storage = Stored::mapped});
  CHECK_FALSE(plain.convertible());
  CHECK_FALSE(plain.readers_blind);
  for (const auto& row : plain.parameters) CHECK(row.size > 1e-3);
  CHECK_THAT(plain.sentence(),
             StartsWith("different: not convertible: the gradient of entry.weight sums along the stream to ") &&
                 Contains("(6 of 6 writers)"));
  CHECK(blindness({.form = Form::rms_norm}).convertible());
}

TEST_CASE("shift: a learned gain and bias hide the readers' direction, not the writers'") {
  const ShiftBlindness r = blindness({.affine = true});
  CHECK(r.convertible());
  CHECK_FALSE(r.readers_blind);
}

TEST_CASE("shift: what breaks it is named from evidence") {
  const ShiftBlindness bare = blindness({.final_norm = false});
  CHECK_FALSE(bare.convertible());
  CHECK_FALSE(bare.stream_blind);
  CHECK_THAT(bare.likely_cause, Contains("no final norm") && Contains("head.weight"));
  const ShiftBlindness dropped = blindness({.dropout = 0.3});
  CHECK_FALSE(dropped.convertible());
  CHECK(dropped.stream_blind);
  CHECK_THAT(dropped.sentence(), Contains("down1.weight") && Contains("(2 of 6 writers)") && Contains("dropout"));
  const ShiftBlindness scaled = blindness({.scale = true});
  CHECK_THAT(scaled.sentence(), Contains("down1.weight") && Contains("likely cause: layer scale"));

  const auto gpt = [](bool affine) {
    manual_seed(5);
    nn::Gpt m =
        streams::make<nn::Gpt>({.vocab = 7,
                                .context = 4,
                                .tied = true,
                                .transformer = {.width = 8, .depth = 1, .heads = 2, .mlp_width = 8, .affine = affine}});
    m.to(DType::f64);
    return check_shift_blind(m, cross_entropy_of,
                             [](int64_t point) {
                               Generator g{5, static_cast<uint64_t>(point) << 20};
                               const Tensor x = randint(0, 7, {3, 4}, kCpu, g), y = randint(0, 7, {3, 4}, kCpu, g);
                               return Examples{x, y};
                             },
                             {.points = 2});
  };
  CHECK(gpt(false).convertible());
  CHECK_THAT(gpt(true).sentence(), Contains("token.weight") && Contains("likely cause: a tied head"));
}

TEST_CASE("shift: roles may be declared from outside; a model without writers is not convertible") {
  const auto net = small_net({.declared = false});
  CHECK(check_shift_blind(*net, cross_entropy_of, small_batch, {.points = 1}).parameters.size() == 7);
  std::vector<streams::NamedParameter> declared(1);
  declared[0].name = "down1.weight";
  declared[0].role = streams::Role::writer;
  const auto r = check_shift_blind(*net, cross_entropy_of, small_batch, {.points = 1}, declared);
  CHECK(r.parameters.size() == 8);
  CHECK(r.convertible());
  declared[0].name = "down9.weight";
  CHECK_THROWS_WITH(check_shift_blind(*net, cross_entropy_of, small_batch, {}, declared),
                    Contains("no parameter down9.weight"));
  nn::Linear plain(5, 3);
  plain.to(DType::f64);
  const ShiftBlindness none = check_shift_blind(plain, cross_entropy_of, small_batch);
  CHECK_FALSE(none.convertible());
  CHECK_THAT(none.sentence(), Contains("no parameter is declared to write"));
}

TEST_CASE("shift: a loss without gradient measures nothing") {
  const auto net = small_net({});
  const auto constant = [](nn::Module& m, const training::Examples& batch) { return cross_entropy_of(m, batch) * 0.0; };
  const ShiftBlindness r = check_shift_blind(*net, constant, small_batch, {.points = 2});
  CHECK(r.verdict == Verdict::undecided);
  CHECK_THAT(r.sentence(), Contains("no writer has a gradient"));
}
