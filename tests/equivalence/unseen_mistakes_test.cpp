// Mistakes in hand-written models, planted by an author who had not read how causes are found. The comparison must name
// the mistake or its place, and no other cause. The table: test_equivalence "unseen mistakes: the table*" -s
#include "tests/equivalence/room.h"
#include "tests/equivalence/unseen_mistakes.h"

using namespace isonorm::unseen;

TEST_CASE("unseen mistakes: hand-written models without one are the same") {
  std::vector<Comparison> all = right_nets();
  all.push_back(right_writer());
  for (const Comparison& c : right_optimizers()) all.push_back(c);
  for (const Comparison& c : all) {
    INFO(c.sentence());
    CHECK(c.equivalent());
  }
}

TEST_CASE("unseen mistakes: a model that keeps a state is not repeatable") {
  for (const Comparison& c : unrepeatable_writers()) {
    CHECK(c.verdict == Verdict::undecided);
    CHECK_THAT(c.reason, StartsWith("the second model is not repeatable"));
  }
}

TEST_CASE("unseen mistakes: the table of planted mistakes and their reported causes") {
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
