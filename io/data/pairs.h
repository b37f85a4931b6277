// Pairs of sequences, a source and what it becomes: lines of two text files, or made ones. The tokens are
// bytes, and three ids of their own before them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "io/data/alphabet.h"
#include "io/data/row_loader.h"

namespace isonorm::data {

// The ids that are not bytes.
inline constexpr int64_t kPad = 0, kBegin = 1, kEnd = 2;

// What made pairs are of: the same letters; sorted; another letter for each, in reverse.
enum class Task { copy, sort, translate };
inline constexpr const char* kTaskNames[] = {"copy", "sort", "translate"};
constexpr const char* name_of(Task t) { return kTaskNames[static_cast<size_t>(t)]; }

struct PairBatch {
  Tensor x;  // i64 [rows, 2 length]: a source, its end, padding; then the beginning, its target, padding
  Tensor y;  // i64 [rows, length]: the target, its end, then kNoLabel
};

class Pairs {
 public:
  // The lines of two files: line n of `source` and line n of `target` are a pair. `held_out`, from 0 to 1: the share of the
  // pairs, at the end, that batch() never shows. `alphabet`: the bytes that have ids; empty: those of the two files, in
  // ascending order. Throws, naming file and line, if a file cannot be read or is larger than kTextLimit, the numbers of lines
  // differ, a line is empty, or a line has a character that is not in `alphabet`.
  Pairs(const std::string& source, const std::string& target, uint64_t seed = 0, double held_out = 0,
        const Alphabet& alphabet = {});
  // `count` pairs of 1 to `longest` of the first `letters` letters, from the seed. Throws where letters are not 1 to 26,
  // or another number is not positive.
  static Pairs made(Task task, int64_t count, int64_t longest, int64_t letters, uint64_t seed, double held_out = 0);

  // The two files of a folder of pairs: source.txt, target.txt.
  static std::vector<std::string> files(const std::string& folder);

  int64_t vocab() const { return alphabet_.size() + kEnd + 1; }
  const Alphabet& alphabet() const { return alphabet_; }
  int64_t count() const { return static_cast<int64_t>(pairs_.size()); }
  int64_t held_out_count() const { return count() - shown_; }

  // Throws, naming line and file, if a source or a target does not fit with its end into `length` tokens.
  void check_fits(int64_t length) const;

  // `rows` pairs at random of those that are not held out; depends on pairs, seed and step alone. Throws if an argument is
  // out of range, if there is no such pair, or as check_fits().
  PairBatch batch(int64_t rows, int64_t length, int64_t step) const;
  // How many batches have as many pairs as are shown, at least 1.
  int64_t batches(int64_t rows, int64_t /*length*/) const {
    return std::max<int64_t>(1, shown_ / std::max<int64_t>(1, rows));
  }
  // The pairs [begin, begin + rows) of those that are held out.
  PairBatch held_out_rows(int64_t begin, int64_t rows, int64_t length) const;

  // Ids up to the first end or padding, as bytes. Throws where one is outside of [0, vocab()).
  std::string decode(const std::vector<int64_t>& ids) const;

 private:
  struct Pair {
    std::string source, target;
  };
  Pairs(std::vector<Pair> pairs, std::vector<std::string> files, uint64_t seed, double held_out,
        const Alphabet& alphabet = {});
  std::string place_of(int64_t pair, bool target) const;  // "source.txt: line 7"
  void check_fits(int64_t pair, int64_t length) const;
  template <class Index> PairBatch rows_of(int64_t rows, int64_t length, Index index) const;

  std::vector<Pair> pairs_;
  std::vector<std::string> files_;  // source and target; empty: the pairs are made
  Alphabet alphabet_;               // byte to id - 3
  uint64_t seed_;
  int64_t shown_;  // pairs before those that are held out
};

// The batches of pairs.
using PairLoader = RowLoader<Pairs>;

}  // namespace isonorm::data
