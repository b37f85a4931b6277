// Pairs of sequences, a source and what it becomes: lines of two text files, or made ones. The tokens are
// bytes, and three ids of their own before them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "data/row_loader.h"

namespace isonorm::data {

// The ids that are not bytes.
inline constexpr int64_t kPad = 0, kBegin = 1, kEnd = 2;
inline constexpr int64_t kNoLabel = -100;  // where nothing is to be predicted: CrossEntropyOptions::ignore_index

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
  // The lines of two files, the n-th of one belonging to the n-th of the other. `held_out`, from 0 up to and not
  // including 1: the part at the end that batch() never shows. Throws where a file cannot be read, is larger than
  // kTextLimit, numbers of lines differ, or a line is empty.
  Pairs(const std::string& source, const std::string& target, uint64_t seed = 0, double held_out = 0);
  // `count` pairs of 1 to `longest` of the first `letters` letters, from the seed. Throws where letters are not 1 to 26,
  // or another number is not positive.
  static Pairs made(Task task, int64_t count, int64_t longest, int64_t letters, uint64_t seed, double held_out = 0);

  // The two files of a folder of pairs: source.txt, target.txt.
  static std::vector<std::string> files(const std::string& folder);

  int64_t vocab() const { return static_cast<int64_t>(byte_of_.size()) + kEnd + 1; }
  int64_t count() const { return static_cast<int64_t>(pairs_.size()); }
  int64_t held_out_count() const { return count() - shown_; }
  int64_t longest() const { return longest_; }  // bytes of the longest side

  // `rows` pairs at random of those that are not held out; depends on pairs, seed and step alone. Throws where an
  // argument is out of range, there is no such pair, or one does not fit with its end into `length`.
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
  Pairs(std::vector<Pair> pairs, uint64_t seed, double held_out);
  template <class Index> PairBatch rows_of(int64_t rows, int64_t length, Index index) const;

  std::vector<Pair> pairs_;
  std::string byte_of_;  // id - 3 to byte, ascending
  int64_t id_of_[256];   // byte to id
  uint64_t seed_;
  int64_t shown_;  // pairs before those that are held out
  int64_t longest_ = 0;
};

// The batches of pairs.
using PairLoader = RowLoader<Pairs>;

}  // namespace isonorm::data
