#include "io/data/made_text.h"

#include <iterator>

#include "core/error.h"
#include "core/formulas/philox.h"

namespace isonorm::data {
namespace {

constexpr const char* kNouns[] = {"the stream", "the reader", "the writer",   "the norm",
                                  "the head",   "the mean",   "the gradient", "the loss"};
constexpr const char* kVerbs[] = {"follows", "carries", "moves", "keeps", "reads", "scales"};
constexpr const char* kEnds[] = {".\n", " again.\n", " at every step.\n", " and "};

}  // namespace

std::string made_text(uint64_t seed, int64_t length) {
  check(length >= 0, "made_text: length ", length, ", expected at least 0");
  std::string out;
  for (uint64_t sentence = 0; static_cast<int64_t>(out.size()) < length; ++sentence) {
    const auto random = philox(seed, sentence, /*subsequence=*/0x7e47);
    out += kNouns[random.word[0] % std::size(kNouns)];
    out += ' ';
    out += kVerbs[random.word[1] % std::size(kVerbs)];
    out += ' ';
    out += kNouns[random.word[2] % std::size(kNouns)];
    out += kEnds[random.word[3] % std::size(kEnds)];
  }
  out.resize(static_cast<size_t>(length));
  return out;
}

}  // namespace isonorm::data
