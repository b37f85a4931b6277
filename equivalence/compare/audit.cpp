#include "equivalence/compare/audit.h"

#include <chrono>
#include <cmath>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "equivalence/judge/pairs.h"
#include "equivalence/coordinates/parametrisation.h"
#include "equivalence/lockstep/made_examples.h"
#include "equivalence/convert/state.h"
#include "nn/norm.h"
#include "streams/parametrize.h"
#include "training/model_options.h"
#include "training/model_file.h"

namespace isonorm::equivalence {
namespace {

using streams::Form;
using streams::Role;
using streams::Stored;
using streams::Stream;

// The gradient's share in the invisible directions, and their number. Theory says whether the mean along the stream's
// axis is invisible. The mean along another axis of a vector or matrix is invisible if its gradient is zero up to
// rounding: softmax ignores it in the head, and a norm inside a branch removes it.
AuditResult::Row row_of(const streams::NamedParameter& p, bool affine, double size_of_all) {
  const Tensor g = p.tensor.grad();
  AuditResult::Row row{.name = p.name, .shape = p.tensor.shape(), .invisible = "", .numbers = p.tensor.numel()};
  if (p.blind_end > p.blind_begin) {
    const int64_t rows = p.blind_end - p.blind_begin;
    row.invisible = text("rows ", p.blind_begin, " to ", p.blind_end - 1);
    row.directions = rows * (row.numbers / g.size(0));
    row.gradient = norm(narrow(g, 0, p.blind_begin, rows)).item() / size_of_all;
    row.bound = 64 * static_cast<double>(rows) * epsilon(DType::f64);
    return row;
  }
  const double size = norm(g).item();
  int64_t seen = 1;  // number of visible directions
  for (int axis = 0; axis < g.rank(); ++axis) {
    const auto n = static_cast<double>(g.size(axis));
    const bool along = axis == p.stream_dim && (p.role == Role::writer || (p.role == Role::reader && !affine));
    const double share = size == 0 ? 0 : norm(sum(g, {axis})).item() / std::sqrt(n) / size,
                 bound = 64 * n * epsilon(DType::f64);
    const bool other = axis != p.stream_dim || p.role == Role::neutral;  // a gain of ones hides what other gains show
    const bool invisible = along || (other && g.rank() <= 2 && size > 0 && n > 1 && share <= bound);
    seen *= g.size(axis) - invisible;
    if (!invisible) continue;
    row.invisible += text(row.invisible.empty() ? "mean along dimension " : " and ", axis);
    if (row.bound == 0 || share / bound > row.gradient / row.bound) row.gradient = share, row.bound = bound;
  }
  if (!row.invisible.empty()) row.directions = row.numbers - seen;
  return row;
}

// The largest |mean| / rms of a row, computed in f64.
double drift_of(const Tensor& rows) {
  const Tensor x = detach(rows).to(DType::f64);
  return amax(abs(mean(x, {-1})) / sqrt(mean(square(x), {-1}))).item();
}

class Auditor {
 public:
  Auditor(const training::TrainingOptions& o, const TensorMap& weights) : o_(o) {
    o_.dtype = DType::f64, o_.model.transformer().precision = {};  // each measurement sets its own dtype
    manual_seed(o.seed);
    raw_ = build_model(o_, {.form = Form::layer_norm});
    if (!weights.empty()) raw_->load_state_dict(widened(weights));
    result_.shown_context = std::min(o_.model.context(), std::max<int64_t>(1, training::kMostTokens / o_.batch));
    batch_ = made_examples(o_, 0, result_.shown_context);
  }

  AuditResult run() {
    const auto begin = std::chrono::steady_clock::now();
    result_.options = o_;
    result_.manifest = manifest_of(o_);
    gradients();
    NoGrad no_grad;
    drift();
    errors();
    result_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(result_);
  }

 private:
  void gradients() {
    backward(cross_entropy((*raw_)(batch_.inputs), batch_.targets));
    NoGrad no_grad;
    double squares = 0;
    for (const streams::NamedParameter& p : streams::named_parameters(*raw_))
      squares += sum(square(p.tensor.grad())).item();
    result_.verdict = Verdict::equivalent;
    for (const streams::NamedParameter& p : streams::named_parameters(*raw_)) {
      result_.rows.push_back(row_of(p, o_.model.transformer().affine, std::sqrt(squares)));
      if (!(result_.rows.back().gradient <= result_.rows.back().bound)) result_.verdict = Verdict::different;
      if (p.role == Role::writer) result_.measured = result_.measured || norm(p.tensor.grad()).item() > 0;
    }
    if (!result_.measured && result_.verdict == Verdict::equivalent) result_.verdict = Verdict::undecided;
  }

  // The rms_norm model with recentred weights in this dtype, readers centred or not. Weights are computed in f64 and
  // rounded once.
  std::unique_ptr<nn::Module> mapped(bool centred, DType dtype) const {
    auto model = build_model(o_, {.form = Form::rms_norm, .storage = Stored::mapped});
    model->load_state_dict(mapped_state(*raw_, *streams::stream_of(*model)));
    if (centred) project(streams::named_parameters(*model), Projection::writers_and_readers);
    model->to(dtype);
    return model;
  }

  Tensor output(nn::Module& model, DType dtype) const {
    const Tensor& x = batch_.inputs;
    return model(is_floating(x.dtype()) ? x.to(dtype) : x).to(DType::f64);
  }

  void drift() {
    const auto measure = [&](DType dtype, double AuditResult::Drift::*to) {
      size_t i = 0;
      const std::unique_ptr<nn::Module> model = mapped(false, dtype);
      const streams::StreamWatch watch(*model, [&](const std::string& path, const Tensor& rows) {
        if (i == result_.drift.size()) result_.drift.push_back({path, 0, 0, 0});
        result_.drift[i++].*to = drift_of(rows);
      });
      output(*model, dtype);
    };
    measure(DType::f64, &AuditResult::Drift::f64);
    measure(DType::f32, &AuditResult::Drift::f32);
    measure(DType::bf16, &AuditResult::Drift::bf16);
    for (const AuditResult::Drift& d : result_.drift) result_.shift = larger(result_.shift, d.bf16);
  }

  // Adds `share` of the stream's root mean square to each entry of the rows that enter the stream.
  void shift(nn::Module& model, double share) const {
    double size = 0;
    {
      bool first = true;
      const streams::StreamWatch watch(model, [&](const std::string&, const Tensor& rows) {
        if (std::exchange(first, false)) size = std::sqrt(mean(square(detach(rows))).item());
      });
      output(model, DType::f64);
    }
    for (const streams::NamedParameter& p : streams::named_parameters(model))
      if (o_.model.enters(p.name)) copy_into(p.tensor, detach(p.tensor) + share * size);
  }

  void errors() {
    const Tensor exact = output(*raw_, DType::f64);
    const double scale = largest_entry(exact);
    for (const bool centred : {false, true}) {
      (centred ? result_.bf16_error_centred : result_.bf16_error) =
          largest_entry(output(*mapped(centred, DType::bf16), DType::bf16) - exact) / scale;
      const auto model = mapped(centred, DType::f64);
      shift(*model, result_.shift);
      (centred ? result_.shift_error_centred : result_.shift_error) =
          largest_entry(output(*model, DType::f64) - exact) / scale;
    }
  }

  training::TrainingOptions o_;
  std::unique_ptr<nn::Module> raw_;
  training::Examples batch_;
  AuditResult result_;
};

}  // namespace

int64_t AuditResult::numbers() const {
  int64_t n = 0;
  for (const Row& r : rows) n += r.numbers;
  return n;
}

int64_t AuditResult::directions() const {
  int64_t n = 0;
  for (const Row& r : rows) n += r.directions;
  return n;
}

AuditResult audit(const training::TrainingOptions& options, const TensorMap& weights) {
  check(options.batch > 0, "audit: ", options.batch, " examples, expected at least 1");
  const nn::TransformerOptions& transformer = options.model.transformer();
  training::check_carried(transformer);
  check(!transformer.connection.reads_embeddings, "audit: with connections ", transformer.connection.name,
        " the first branch reads the embeddings themselves; there is no stream to shift");
  return Auditor(options, weights).run();
}

}  // namespace isonorm::equivalence
