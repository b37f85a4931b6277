// Pairs of sequences: from files that the test writes, and made ones.
#include "io/data/pairs.h"

#include <algorithm>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using namespace isonorm::data;
using Catch::Matchers::Contains;
using Ids = std::vector<int64_t>;

namespace {

struct Files {
  TempFolder folder;
  std::string source = folder / "source.txt", target = folder / "target.txt";
  Files(const std::string& a, const std::string& b) {
    write_text(source, a);
    write_text(target, b);
  }
  Pairs read(double held_out = 0) const { return Pairs(source, target, 5, held_out); }
};

}  // namespace

TEST_CASE("pairs: lines of two files become rows of ids") {
  const Files f("ab\nc\r\nbca", "CC\nA\nB\n");  // \r\n and no end at the end, too
  const Pairs pairs = f.read(0.34);             // the last one
  CHECK(pairs.vocab() == 9);                    // A B C a b c are 3 to 8
  CHECK((pairs.count() == 3 && pairs.held_out_count() == 1));
  const PairBatch last = pairs.held_out_rows(0, 1, 5);
  CHECK(last.x.shape() == Dims{1, 10});
  CHECK(last.x.to_vector<int64_t>() == Ids{7, 8, 6, kEnd, kPad, kBegin, 4, kPad, kPad, kPad});
  CHECK(last.y.to_vector<int64_t>() == Ids{4, kEnd, kNoLabel, kNoLabel, kNoLabel});
  CHECK(pairs.decode({kBegin, 7, 8, 6, kEnd, 3}) == "bca");
  CHECK(pairs.decode({3, kPad, 3}) == "A");
  // Batches show the two others, both, as their step says.
  std::set<std::string> seen;
  for (int64_t step = 0; step < 20; ++step) {
    const Ids x = pairs.batch(1, 4, step).x.to_vector<int64_t>();
    CHECK(x == pairs.batch(1, 4, step).x.to_vector<int64_t>());
    seen.insert(pairs.decode({x.begin(), x.end()}));
  }
  CHECK(seen == std::set<std::string>{"ab", "c"});
  PairLoader loader(pairs, {.rows = 3, .length = 4});
  CHECK(loader.next().x.to_vector<int64_t>() == pairs.batch(3, 4, 0).x.to_vector<int64_t>());
  loader.seek(7);
  CHECK(loader.next().y.to_vector<int64_t>() == pairs.batch(3, 4, 7).y.to_vector<int64_t>());
  PairLoader one(pairs, {.rows = 1, .length = 4});
  int64_t step = 0;
  for (const auto& [x, y] : one) CHECK(x.to_vector<int64_t>() == pairs.batch(1, 4, step++).x.to_vector<int64_t>());
  CHECK(step == 2);  // as many as there are pairs to show
}

TEST_CASE("pairs: made ones are what their task says") {
  for (const Task task : {Task::copy, Task::sort, Task::translate}) {
    const Pairs pairs = Pairs::made(task, 300, 6, 4, 9, 0.5);
    CHECK(pairs.vocab() == 7);
    std::set<size_t> lengths;
    std::set<std::pair<char, char>> letters;  // of a translation, in reverse
    for (int64_t i = 0; i < 150; ++i) {
      const PairBatch row = pairs.held_out_rows(i, 1, 7);
      const Ids x = row.x.to_vector<int64_t>(), y = row.y.to_vector<int64_t>();
      const std::string source = pairs.decode({x.begin(), x.begin() + 7}), target = pairs.decode(y);
      REQUIRE(source.size() == target.size());
      lengths.insert(source.size());
      CHECK(Ids(x.begin() + 8, x.begin() + 8 + std::ssize(target)) == Ids(y.begin(), y.begin() + std::ssize(target)));
      std::string sorted = source;
      std::sort(sorted.begin(), sorted.end());
      if (task == Task::copy) CHECK(target == source);
      if (task == Task::sort) CHECK(target == sorted);
      for (size_t c = 0; c < source.size(); ++c) letters.insert({source[c], target[source.size() - 1 - c]});
    }
    CHECK(lengths == std::set<size_t>{1, 2, 3, 4, 5, 6});
    if (task == Task::translate) {  // one letter for each, each from one, and not all the same
      CHECK(letters.size() == 4);
      std::set<char> from, to;
      for (const auto& [a, b] : letters) from.insert(a), to.insert(b);
      CHECK((from.size() == 4 && to.size() == 4));
      CHECK(std::any_of(letters.begin(), letters.end(), [](const auto& l) { return l.first != l.second; }));
    }
    const auto first = [&](uint64_t seed) {
      return Pairs::made(task, 9, 6, 4, seed).batch(9, 7, 0).x.to_vector<int64_t>();
    };
    CHECK(first(3) == first(3));
    CHECK(first(3) != first(4));
  }
}

TEST_CASE("pairs: files and numbers that are not right are refused in one line") {
  CHECK_THROWS_WITH(Files("a\nb\n", "c\n").read(),
                    Contains("source.txt: 2 lines, ") && Contains("target.txt: 1, expected"));
  CHECK_THROWS_WITH(Files("a\n\nb\n", "a\nb\nc\n").read(), Contains("source.txt: line 2 is empty"));
  CHECK_THROWS_WITH(Files("a\n", "\r\n").read(), Contains("target.txt: line 1 is empty"));
  CHECK_THROWS_WITH(Files("", "").read(), Contains("there is no line in it"));
  CHECK_THROWS_WITH(Pairs("/nowhere/source.txt", "/nowhere/target.txt"),
                    Contains("/nowhere/source.txt: not found: pairs are two text files"));
  const Files f("abc\nd\n", "a\nbcde\n");
  const Pairs pairs = f.read();
  CHECK_THROWS_WITH(f.read(1.5), Contains("held out is the part 1.5, expected 0 to 1"));
  CHECK_THROWS_WITH(pairs.batch(20, 4, 0),
                    f.target + ": line 2 has 4 bytes, a context of 4 has place for 3 and an end");
  CHECK_THROWS_WITH(pairs.batch(0, 4, 0), Contains("batch of 0 rows"));
  CHECK_THROWS_WITH(f.read(0.9).batch(20, 3, 0),
                    Contains("source.txt: line 1 has 3 bytes, a context of 3 has place for 2 and an end"));
  CHECK_THROWS_WITH(pairs.held_out_rows(0, 1, 9), Contains("held out are 0"));
  CHECK_THROWS_WITH(pairs.decode({99}), "pairs: id 99, expected 0 to 7");
  CHECK_THROWS_WITH(Pairs::made(Task::copy, 1, 1, 27, 0), Contains("27 letters"));
}
