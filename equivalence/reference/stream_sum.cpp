#include "equivalence/reference/stream_sum.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/printed.h"
#include "equivalence/convert/pieces.h"
#include "equivalence/judge/pairs.h"
#include "equivalence/reference/readings.h"

namespace isonorm::equivalence {
namespace {

constexpr int64_t kSampled = 64;      // rows that are used to find the writers in a reader's rows
constexpr double kDependent = 1e-10;  // least part of a column's squared length that must be independent of the others
constexpr int64_t kTokens = 8;        // most rows before others: class tokens and registers
constexpr double kWhole = 0.05;       // tolerance of a coefficient that should be 1 or 0

// The output of a writer, placed in a possible way in the rows of a reader.
struct Addend {
  size_t writer;
  Tensor rows;  // [n, width] in f64
};

// Least-squares coefficients of the sum of columns [k, m], given gram = columns columns^T and right = columns x. 0 for
// columns that the others span. Elimination, the largest remainder first.
std::vector<double> least_squares(std::vector<double> gram, std::vector<double> right) {
  const size_t k = right.size();
  std::vector<double> scale(k), solution(k);
  for (size_t i = 0; i < k; ++i) scale[i] = gram[i * k + i] > 0 ? 1 / std::sqrt(gram[i * k + i]) : 0;
  for (size_t i = 0; i < k; ++i) {
    right[i] *= scale[i];
    for (size_t j = 0; j < k; ++j) gram[i * k + j] *= scale[i] * scale[j];
  }
  std::vector<size_t> taken, open(k);
  for (size_t i = 0; i < k; ++i) open[i] = i;
  while (!open.empty()) {
    const auto at = std::max_element(open.begin(), open.end(),
                                     [&](size_t a, size_t b) { return gram[a * k + a] < gram[b * k + b]; });
    const size_t p = *at;
    if (!(gram[p * k + p] > kDependent)) break;
    open.erase(at);
    taken.push_back(p);
    for (size_t i : open) {
      const double factor = gram[i * k + p] / gram[p * k + p];
      for (size_t j : open) gram[i * k + j] -= factor * gram[p * k + j];
      right[i] -= factor * right[p];
    }
  }
  for (size_t t = taken.size(); t-- > 0;) {
    const size_t p = taken[t];
    double rest = right[p];
    for (size_t u = t + 1; u < taken.size(); ++u) rest -= gram[p * k + taken[u]] * solution[taken[u]];
    solution[p] = rest / gram[p * k + p];
  }
  for (size_t i = 0; i < k; ++i) solution[i] *= scale[i];
  return solution;
}

class Sums {
 public:
  Sums(const LazyState& file, const streams::Plan& plan, const TensorMap& reference)
      : file_(file), plan_(plan), reference_(reference), entry_{.name = plan.recentred} {
    std::set<std::string> biases;
    for (const streams::Plan::Writer& w : plan.writers) biases.insert(bias_of_writer(plan, w));
    for (const streams::Plan::Writer& w : plan.writers)
      if (!biases.contains(w.name)) writers_.push_back(&w);
    if (!plan.recentred.empty()) writers_.push_back(&entry_);
    for (const streams::Plan::Reader& r : plan.readers) readers_.push_back(r.name);
    result_.readers = std::ssize(readers_), result_.writers = std::ssize(writers_);
    seen_.resize(writers_.size());
  }

  StreamSum run() {
    for (const std::string& reader : readers_) {
      const Tensor* x = reference_.find(reader + ".input");
      if (!x)
        leave_open(text("the reference has no rows that '", reader, "' reads"));
      else if (result_.wrong.empty())
        hold(reader, *x);
    }
    for (size_t w = 0; w < writers_.size(); ++w)
      if (!seen_[w] && result_.wrong.empty())
        leave_open(text("no rows in the reference show what '", writers_[w]->name, "' wrote"));
    for (const auto& [name, x] : reference_) {
      if (!result_.wrong.empty()) break;
      if (name.ends_with(".seen")) hold_other(name, x);
      if (name.ends_with(".reads"))
        result_.wrong = text("'", name.substr(0, name.rfind('.')),
                             "' reads the rows of a norm, and the description names no such reader");
    }
    hold_program();
    result_.seen = std::count(seen_.begin(), seen_.end(), true);
    return result_;
  }

 private:
  void leave_open(std::string why) {
    if (result_.open.empty()) result_.open = std::move(why);
  }

  // Rows of the stream's width, compared with the sum of the writers' outputs.
  struct Found {
    std::vector<double> by;         // least-squares coefficients of addends_; empty if there are too few rows
    std::vector<size_t> taken;      // addends that count as 1
    Tensor sample, bound;           // the sampled rows; the bound of each entry
    double share = 0, missing = 0;  // max of off / bound; max |rows - sum| / max |rows|
  };

  Found find(const std::string& name, const Tensor& x) {
    const int64_t width = plan_.stored_width();
    check(is_floating(x.dtype()) && x.rank() >= 1 && x.size(-1) == width && x.numel() > 0, "reference: '", name,
          "' is ", x.dtype(), " of shape ", x.shape(), ", expected floating rows of ", width);
    if (!(shape_ == x.shape())) find_addends(x.shape());
    const Tensor rows = reshape(x.to(DType::f64), {x.numel() / width, width});
    Found found;
    found.sample = sampled(rows);
    if (addends_.empty() || columns_.size(0) > found.sample.numel()) return found;
    found.by = least_squares(gram_.to_vector<double>(),
                             matmul(columns_, unsqueeze(flatten(found.sample), 1)).to_vector<double>());
    settle(found.by);
    Tensor sum = rows * 0.0, size = abs(rows);
    for (size_t i = 0; i < found.by.size(); ++i)
      if (found.by[i] > 0.5 && found.by[i] < 1.5) {
        found.taken.push_back(i);
        sum = sum + addends_[i].rows, size = size + abs(addends_[i].rows);
      }
    found.bound = size * (static_cast<double>(found.taken.size() + 1) * epsilon(x.dtype()));
    found.share = most(abs(rows - sum), found.bound);
    found.missing = largest_entry(rows - sum) / largest_entry(rows);
    return found;
  }

  // A row that is in all rows is the sum of this row at each single place. If a writer has both kinds of addends, then
  // t times the one minus t times each of the others is 0, and only rounding decides which t least squares found. Takes
  // the t with the smallest coefficients.
  void settle(std::vector<double>& by) const {
    const auto rows = static_cast<size_t>(shape_.rank >= 2 ? shape_[shape_.rank - 2] : 1);
    for (size_t begin = 0, end = 0; begin < by.size(); begin = end) {
      while (end < by.size() && addends_[end].writer == addends_[begin].writer) ++end;
      if (rows < 2 || end - begin != rows + 1) continue;
      const std::span<double> each(by.data() + begin + 1, rows);
      const auto size = [&](double t) {
        double sum = std::abs(by[begin] + t);
        for (double b : each) sum += std::abs(b - t);
        return sum;
      };
      double best = 0;
      for (double t : each)
        if (size(t) < size(best)) best = t;
      by[begin] += best;
      for (double& b : each) b -= best;
    }
  }

  void hold(const std::string& reader, const Tensor& x) {
    const Found found = find(reader + ".input", x);
    if (found.by.empty())
      return leave_open(text("'", reader, "' reads too few rows, or rows of a shape that no writer wrote"));
    if (x.dtype() == DType::bf16) leave_open("rows in bf16 are too coarse to show the whole stream: record f32 or f64");
    if (!(found.share <= 1) && !lacking_.empty())
      return leave_open(text("the reference has no rows that '", lacking_, "' wrote"));
    if (!(found.share <= 1)) {
      result_.wrong = text("the rows that '", reader, "' reads are not the sum of what writers wrote: ", reason(found));
      return;
    }
    ++result_.summed;
    result_.share = std::max(result_.share, found.share);
    for (size_t i : found.taken)
      if (most(abs(addends_[i].rows), found.bound) > 1) seen_[addends_[i].writer] = true;
  }

  // Compares the program's output with its output as another model that is the same function by the description.
  void hold_program() {
    const Tensor* output = reference_.find("program.output");
    for (const auto& [name, what] :
         {std::pair("program.shifted",
                    "a constant along the stream, added to each writer's output, moves the program's "
                    "output by "),
          {"program.rescaled",
           "gains of norms that are larger, with readers that are smaller, move the program's output by "}}) {
      const Tensor* other = reference_.find(name);
      if (!output || !other)
        return leave_open(
            "the reference does not show what else reads the stream (the program that isonorm hooks prints does)");
      check(is_floating(output->dtype()) && output->numel() > 0 && output->dtype() == other->dtype() &&
                output->shape() == other->shape(),
            "reference: '", name, "' is ", other->dtype(), " of shape ", other->shape(), ", program.output ",
            output->dtype(), " of shape ", output->shape());
      const double size = largest_entry(output->to(DType::f64)),
                   moved = largest_entry(output->to(DType::f64) - other->to(DType::f64)) / size;
      if (!(moved <= std::cbrt(epsilon(output->dtype()))) && result_.wrong.empty())
        result_.wrong =
            text(what, printed("%.2g", moved),
                 " of its largest entry: something that the description lacks reads the stream, or a norm's rows");
    }
  }

  // Checks rows that were seen by a module which the description does not have.
  void hold_other(const std::string& name, const Tensor& x) {
    if (!is_floating(x.dtype()) || x.rank() == 0 || x.size(-1) != plan_.stored_width() || x.numel() == 0) return;
    const Found found = find(name, x);
    if (!found.taken.empty() && found.share <= 1)
      result_.wrong =
          text("'", name.substr(0, name.rfind('.')), "' sees the stream, the sum of what ", found.taken.size(),
               " writers wrote, and the description names no such norm, reader or writer");
  }

  // The sentence about wrong rows, as far as the coefficients of least squares explain them.
  std::string reason(const Found& found) const {
    const auto& [by, taken, sample, bound, share, missing] = found;
    Tensor rest = flatten(sample);
    size_t odd = by.size();
    for (size_t i = 0; i < by.size(); ++i) {
      rest = rest - select(columns_, 0, static_cast<int64_t>(i)) * by[i];
      if (std::abs(by[i] - std::round(std::clamp(by[i], 0.0, 1.0))) > kWhole && odd == by.size()) odd = i;
    }
    if (odd < by.size() && largest_entry(rest) < 0.1 * missing * largest_entry(sample))
      return text("they hold ", printed("%.3g", by[odd]), " times what '", writers_[addends_[odd].writer]->name,
                  "' wrote");
    return text(printed("%.2g", missing),
                " of their largest entry is of no writer of the description (one that it lacks, a norm before or on "
                "the stream, or rows of another run)");
  }

  // max |a| / bound; NaN counts as infinite.
  static double most(const Tensor& a, const Tensor& bound) {
    const std::vector<double> off = a.to_vector<double>(), limit = bound.to_vector<double>();
    double share = 0;
    for (size_t i = 0; i < off.size(); ++i)
      if (off[i] != 0) share = larger(share, off[i] / limit[i]);
    return std::isnan(share) ? INFINITY : share;
  }

  static Tensor sampled(const Tensor& rows) {
    const int64_t n = rows.size(0), step = (n + kSampled - 1) / kSampled;
    return step == 1 ? rows : contiguous(slice(rows, 0, 0, n, step));
  }

  // Finds the addends of every writer for rows of this shape.
  void find_addends(const Dims& shape) {
    shape_ = shape;
    addends_.clear();
    for (size_t w = 0; w < writers_.size(); ++w) {
      const streams::Plan::Writer& p = *writers_[w];
      Tensor y = written(p);
      if (!y.defined()) continue;
      if (!p.scale.empty() && file_.outline.find(p.scale)) y = y * flatten(file_.read(p.scale).to(DType::f64));
      for (Tensor& rows : ways(y, shape)) addends_.push_back({w, std::move(rows)});
    }
    std::vector<Tensor> columns;
    for (const Addend& a : addends_) columns.push_back(unsqueeze(flatten(sampled(a.rows)), 0));
    columns_ = columns.empty() ? zeros({0, 1}, {DType::f64}) : cat(columns, 0);
    gram_ = matmul(columns_, transpose(columns_, 0, 1));
  }

  // The output of a writer, [.., width] in f64; undefined if neither the reference nor the file has it.
  Tensor written(const streams::Plan::Writer& p) {
    const int64_t width = plan_.stored_width();
    const std::string rows_of = p.name + (&p == &entry_ ? ".enters" : ".output");
    if (const Tensor* y = reference_.find(rows_of)) {
      check(is_floating(y->dtype()) && y->rank() >= 1 && y->size(-1) == width, "reference: '", rows_of, "' is ",
            y->dtype(), " of shape ", y->shape(), ", expected floating rows of ", width);
      return y->to(DType::f64);
    }
    if (&p == &entry_) return lacking_ = p.name, Tensor();
    const Tensor& stored = file_.outline.at(p.name);
    if (p.name.ends_with(".weight")) {  // a table that is never called has rows of its own, a product has none
      if (lacking_.empty()) lacking_ = p.name;
      if (p.dim + 1 != stored.rank()) return {};
    }
    const int64_t rows = stored.numel() / width, shown = shape_.rank >= 2 ? shape_[shape_.rank - 2] : 1;
    Tensor own = by_rows(file_.read(p.name).to(DType::f64), p.dim);
    return rows > shown ? narrow(own, 0, 0, shown) : own;
  }

  // y as rows of x's shape: unchanged, or, if y has fewer rows, at each place at which they may be.
  static std::vector<Tensor> ways(const Tensor& y, const Dims& shape) {
    std::vector<Tensor> all;
    const int64_t width = shape[shape.rank - 1];
    int64_t n = 1;
    for (int i = 0; i + 1 < shape.rank; ++i) n *= shape[i];
    const auto add = [&](const Tensor& rows) {
      const Dims own = rows.shape();
      bool fits = own.rank <= shape.rank;
      for (int i = 1; fits && i <= own.rank; ++i)
        fits = own[own.rank - i] == 1 || own[own.rank - i] == shape[shape.rank - i];
      if (fits)
        all.push_back(contiguous(reshape(expand(rows, shape), {n, width})));
      else if (rows.numel() == n * width)
        all.push_back(contiguous(reshape(rows, {n, width})));
    };
    add(y);
    const int64_t own = y.rank() >= 2 ? y.size(-2) : 1, whole = shape.rank >= 2 ? shape[shape.rank - 2] : 1;
    if (own >= whole) return all;
    const Tensor rows = y.rank() >= 2 ? y : unsqueeze(y, 0);
    for (int64_t front = 0; front <= whole - own; front = front < kTokens ? front + 1 : whole - own) {
      std::vector<std::pair<int64_t, int64_t>> amounts(static_cast<size_t>(rows.rank()));
      amounts[amounts.size() - 2] = {front, whole - own - front};
      add(pad(rows, amounts));
      if (front == whole - own) break;
    }
    return all;
  }

  const LazyState& file_;
  const streams::Plan& plan_;
  const TensorMap& reference_;
  const streams::Plan::Writer entry_;  // the rows that enter a stream which is recentred once
  std::vector<std::string> readers_;
  std::vector<const streams::Plan::Writer*> writers_;
  std::vector<bool> seen_;
  std::string lacking_;  // a writer whose output is not known
  Dims shape_;           // of the rows for which the addends were found
  std::vector<Addend> addends_;
  Tensor columns_, gram_;  // [addends, sampled entries], [addends, addends]
  StreamSum result_;
};

}  // namespace

StreamSum check_stream_sum(const LazyState& file, const streams::Plan& plan, const TensorMap& reference) {
  NoGrad no_grad;
  return Sums(file, plan, reference).run();
}

}  // namespace isonorm::equivalence
