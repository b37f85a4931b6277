// Pairs of source and target sequences: lines of two text files, or made pairs. Tokens are bytes, after three special
// ids.
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

// The tasks of made pairs. copy: the target is the source. sort: its letters sorted. translate: its letters in reverse
// order, each replaced by another one.
enum class Task { copy, sort, translate };
inline constexpr const char* kTaskNames[] = {"copy", "sort", "translate"};
constexpr const char* name_of(Task t) { return kTaskNames[static_cast<size_t>(t)]; }

struct PairBatch {
  Tensor x;  // i64 [rows, 2 length]: source, kEnd, padding; then kBegin, target, padding
  Tensor y;  // i64 [rows, length]: target, kEnd, then kNoLabel
};

class Pairs {
 public:
  // Reads two files: line n of `source` and line n of `target` are a pair. held_out, from 0 to 1: share of the pairs,
  // at the end, that batch() never uses. alphabet: the bytes that have ids; empty: the bytes of the two files, in
  // ascending order. Throws, naming file and line, if a file cannot be read or is larger than kTextLimit, the numbers
  // of lines differ, a line is empty, or a line has a byte that is not in `alphabet`.
  Pairs(const std::string& source, const std::string& target, uint64_t seed = 0, double held_out = 0,
        const Alphabet& alphabet = {});
  // Makes `count` pairs of 1 to `longest` letters, drawn from the first `letters` letters of the alphabet. Throws if
  // `letters` is not in [1, 26], or another number is not positive.
  static Pairs made(Task task, int64_t count, int64_t longest, int64_t letters, uint64_t seed, double held_out = 0);

  // The two files of a folder of pairs: source.txt, target.txt.
  static std::vector<std::string> files(const std::string& folder);

  int64_t vocab() const { return alphabet_.size() + kEnd + 1; }
  const Alphabet& alphabet() const { return alphabet_; }
  int64_t count() const { return static_cast<int64_t>(pairs_.size()); }
  int64_t held_out_count() const { return count() - shown_; }

  // Throws, naming line and file, if a source or a target with its kEnd has more than `length` tokens.
  void check_fits(int64_t length) const;

  // `rows` random pairs that are not held out; depends only on pairs, seed and step. Throws if an argument is out of
  // range, if all pairs are held out, or as check_fits().
  PairBatch batch(int64_t rows, int64_t length, int64_t step) const;
  // Number of batches in an epoch: pairs that are not held out / rows, at least 1.
  int64_t batches(int64_t rows, int64_t /*length*/) const {
    return std::max<int64_t>(1, shown_ / std::max<int64_t>(1, rows));
  }
  // The held-out pairs [begin, begin + rows).
  PairBatch held_out_rows(int64_t begin, int64_t rows, int64_t length) const;

  // The bytes of the ids before the first kEnd or kPad. Throws if an id is outside of [0, vocab()).
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
  int64_t shown_;  // number of pairs that are not held out; they come first
};

// The batches of pairs.
using PairLoader = RowLoader<Pairs>;

}  // namespace isonorm::data
