#include "io/data/pairs.h"

#include <algorithm>
#include <numeric>

#include "core/formulas/philox.h"
#include "io/data/text.h"

namespace isonorm::data {
namespace {

// The lines of a file without their line ends ("\n" or "\r\n").
std::vector<std::string> lines_of(const std::string& path) {
  check_io(
      file_exists(path), path,
      ": not found: pairs are two text files, source.txt and target.txt, a line each, as statmt.org/wmt14 has them "
      "for translation");
  const std::vector<uint8_t> bytes = read_all(without_mark(open_bytes(path)), kTextLimit);
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < bytes.size();) {
    const auto from = bytes.begin() + static_cast<int64_t>(begin), end = std::find(from, bytes.end(), '\n');
    lines.emplace_back(from, end);
    begin += lines.back().size() + 1;
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    check(!lines.back().empty(), path, ": line ", lines.size(), " is empty");
  }
  check(!lines.empty(), path, ": there is no line in it");
  return lines;
}

}  // namespace

Pairs::Pairs(const std::string& source, const std::string& target, uint64_t seed, double held_out,
             const Alphabet& alphabet)
    : Pairs(
          [&] {
            std::vector<std::string> a = lines_of(source), b = lines_of(target);
            check(a.size() == b.size(), source, ": ", a.size(), " lines, ", target, ": ", b.size(),
                  ", expected equal numbers");
            std::vector<Pair> pairs;
            for (size_t i = 0; i < a.size(); ++i) pairs.push_back({std::move(a[i]), std::move(b[i])});
            return pairs;
          }(),
          {source, target}, seed, held_out, alphabet) {}

Pairs::Pairs(std::vector<Pair> pairs, std::vector<std::string> files, uint64_t seed, double held_out,
             const Alphabet& alphabet)
    : pairs_(std::move(pairs)), files_(std::move(files)), alphabet_(alphabet), seed_(seed) {
  check(held_out >= 0 && held_out <= 1, "pairs: held out is the part ", held_out, ", expected 0 to 1");
  shown_ = count() - static_cast<int64_t>(held_out * static_cast<double>(count()));
  if (alphabet_.empty()) {
    bool there[256] = {};
    for (const Pair& p : pairs_)
      for (const std::string* side : {&p.source, &p.target})
        for (const char c : *side) there[static_cast<uint8_t>(c)] = true;
    std::string all;
    for (int c = 0; c < 256; ++c)
      if (there[c]) all += static_cast<char>(c);
    alphabet_ = Alphabet(all);
  }
  for (int64_t i = 0; i < count(); ++i)
    for (const bool target : {false, true})
      for (const char c : target ? pairs_[static_cast<size_t>(i)].target : pairs_[static_cast<size_t>(i)].source)
        check(alphabet_.id(static_cast<uint8_t>(c)) >= 0, place_of(i, target), " has byte ", static_cast<uint8_t>(c),
              ", which is none of the ", alphabet_.size(), " bytes that the weights were trained on");
}

std::string Pairs::place_of(int64_t pair, bool target) const {
  if (files_.empty()) return text("made pairs: the ", target ? "target" : "source", " of pair ", pair + 1);
  return text(files_[target], ": line ", pair + 1);
}

void Pairs::check_fits(int64_t pair, int64_t length) const {
  const Pair& p = pairs_[static_cast<size_t>(pair)];
  for (const bool target : {false, true})
    if (const int64_t bytes = std::ssize(target ? p.target : p.source); bytes >= length)
      check(false, place_of(pair, target), " has ", bytes, " bytes, a context of ", length, " has place for ",
            length - 1, " and an end");
}

void Pairs::check_fits(int64_t length) const {
  for (int64_t i = 0; i < count(); ++i) check_fits(i, length);
}

std::vector<std::string> Pairs::files(const std::string& folder) {
  return {folder + "/source.txt", folder + "/target.txt"};
}

Pairs Pairs::made(Task task, int64_t count, int64_t longest, int64_t letters, uint64_t seed, double held_out) {
  check(count > 0 && longest > 0 && letters >= 1 && letters <= 26, "pairs: ", count, " of up to ", longest, " of ",
        letters, " letters, expected at least 1 of 1 of 1 to 26");
  std::string other(static_cast<size_t>(letters), ' ');  // the translation of each letter
  std::iota(other.begin(), other.end(), 'a');
  for (int64_t i = letters - 1; i > 0; --i)
    std::swap(other[static_cast<size_t>(i)],
              other[below(static_cast<uint64_t>(i + 1), philox(seed, static_cast<uint64_t>(i), 0x9a17).wide(0))]);
  std::vector<Pair> pairs;
  for (int64_t n = 0; n < count; ++n) {
    const auto draw = [&](int64_t i, int64_t most) {
      return static_cast<int64_t>(below(static_cast<uint64_t>(most),
                                        philox(seed, static_cast<uint64_t>(n), static_cast<uint64_t>(i + 1)).wide(0)));
    };
    Pair p;
    for (int64_t i = 1 + draw(0, longest); i > 0; --i) p.source += static_cast<char>('a' + draw(i, letters));
    p.target = p.source;
    if (task == Task::sort) std::sort(p.target.begin(), p.target.end());
    if (task == Task::translate) {
      std::reverse(p.target.begin(), p.target.end());
      for (char& c : p.target) c = other[static_cast<size_t>(c - 'a')];
    }
    pairs.push_back(std::move(p));
  }
  return Pairs(std::move(pairs), {}, seed, held_out);
}

// Row r has pair index(r).
template <class Index> PairBatch Pairs::rows_of(int64_t rows, int64_t length, Index index) const {
  PairBatch batch{empty({rows, 2 * length}, {DType::i64}), empty({rows, length}, {DType::i64})};
  int64_t* x = batch.x.mutable_data<int64_t>();
  int64_t* y = batch.y.mutable_data<int64_t>();
  const auto ids = [&](const std::string& side, int64_t* to) {
    for (const char c : side) *to++ = kEnd + 1 + alphabet_.id(static_cast<uint8_t>(c));
    return to;
  };
  for (int64_t r = 0; r < rows; ++r, x += 2 * length, y += length) {
    const int64_t at = index(r);
    check_fits(at, length);
    const Pair& p = pairs_[static_cast<size_t>(at)];
    std::fill_n(x, 2 * length, kPad);
    std::fill_n(y, length, kNoLabel);
    *ids(p.source, x) = kEnd;
    x[length] = kBegin;
    ids(p.target, x + length + 1);
    *ids(p.target, y) = kEnd;
  }
  return batch;
}

PairBatch Pairs::batch(int64_t rows, int64_t length, int64_t step) const {
  check(rows >= 1 && length >= 1 && step >= 0, "pairs: batch of ", rows, " rows of length ", length, " at step ", step,
        ", expected at least 1, 1 and 0");
  check(shown_ > 0, "pairs: all ", count(), " are held out");
  return rows_of(rows, length, [&](int64_t r) {
    return static_cast<int64_t>(below(static_cast<uint64_t>(shown_),
                                      philox(seed_, static_cast<uint64_t>(r), static_cast<uint64_t>(step)).wide(0)));
  });
}

PairBatch Pairs::held_out_rows(int64_t begin, int64_t rows, int64_t length) const {
  check(length >= 1 && rows >= 1 && begin >= 0 && begin < held_out_count() && rows <= held_out_count() - begin,
        "pairs: ", rows, " rows of length ", length, " from ", begin, " on, held out are ", held_out_count());
  return rows_of(rows, length, [&](int64_t r) { return shown_ + begin + r; });
}

std::string Pairs::decode(const std::vector<int64_t>& ids) const {
  std::string bytes;
  for (const int64_t id : ids) {
    check(id >= 0 && id < vocab(), "pairs: id ", id, ", expected 0 to ", vocab() - 1);
    if (id == kEnd || id == kPad) break;
    if (id > kEnd) bytes += alphabet_.byte(id - kEnd - 1);
  }
  return bytes;
}

}  // namespace isonorm::data
