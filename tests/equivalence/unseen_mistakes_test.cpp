// Mistakes in hand-written models, planted by an author who had not read how causes are found. The comparison must name
// the mistake or its place, and no other cause. The table: test_equivalence "unseen mistakes: the table*" -s
#include "tests/equivalence/room.h"
#include "tests/equivalence/unseen_mistakes.h"
#include "tests/equivalence/unseen_writer.h"

namespace {

using namespace isonorm::unseen;

// A mask that is kept between calls and changed in place.
struct GrowingMask : OwnWriter {
  Tensor mask = zeros({kTime, kTime}, {DType::f64});
  Tensor probabilities(const Tensor& scores) override {
    mask += triu(full({kTime, kTime}, -2.0, {DType::f64}), 1);
    return softmax(scores + mask, -1);
  }
};

// Noise from a separate generator that the comparison does not reset.
struct OwnNoise : OwnWriter {
  Generator noise{99};
  Tensor feed_forward(const Tensor& x, Block& b) override {
    const Tensor y = OwnWriter::feed_forward(x, b);
    return y + randn(y.shape(), y.options(), noise) * 0.01;
  }
};

}  // namespace

TEST_CASE("unseen mistakes: hand-written models without one are the same") {
  std::vector<Comparison> all = right_nets();
  all.push_back(compare_writers<OwnWriter>()), all.push_back(right_adam()), all.push_back(right_momentum());
  for (const Comparison& c : all) {
    INFO(c.sentence());
    CHECK(c.equivalent());
  }
}

TEST_CASE("unseen mistakes: a model that keeps a state is not repeatable") {
  for (const Comparison& c : {compare_writers<GrowingMask>(), compare_writers<OwnNoise>()}) {
    CHECK(c.verdict == Verdict::undecided);
    CHECK_THAT(c.reason, StartsWith("the second model is not repeatable"));
  }
}

TEST_CASE("unseen mistakes: the table of what is said of each planted one") {
  std::string table;
  int planted = 0, causes = 0, right = 0, wrong = 0;
  for (const auto& group : {block_mistakes(), attention_mistakes(), loss_mistakes(), image_mistakes(), adam_mistakes(),
                            momentum_mistakes()})
    for (const Mistake& m : group) {
      const Comparison c = m.compare();
      const Said s = said_of(m.expected, c);
      INFO(m.expected.bug << ": " << c.sentence());
      CHECK_FALSE(s.wrong);
      CHECK(s.right);
      ++planted, causes += !c.likely_cause.empty(), right += s.right, wrong += s.wrong;
      table += text(s.bug, " | ", s.wrong ? "wrong" : s.right ? "right" : "no place", " | ", s.said, '\n');
    }
  SUCCEED(table << planted << " planted, " << causes << " with a cause, " << right << " right, " << wrong << " wrong");
}
