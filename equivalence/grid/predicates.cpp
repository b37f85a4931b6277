#include "equivalence/grid/predicates.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "autograd/ops/create.h"
#include "autograd/ops/matmul.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "autograd/ops/shape.h"
#include "core/view.h"
#include "equivalence/judge/criterion.h"
#include "equivalence/lockstep/training.h"
#include "streams/parametrize.h"

namespace isonorm::equivalence {
namespace {

using streams::NamedParameter;
using streams::Role;

constexpr double kLeast = 1e-6;   // the least deviation that is not rounding
constexpr double kWeights = 0.3;  // standard deviation of drawn weights; their mean is half as large

// The data of a seed: parameters without values, a history and its track, and the effect of rounding on the track.
class Measurement {
 public:
  Measurement(const MakeUpdate& make, const std::vector<NamedParameter>& like, int seed, int steps)
      : make_(make),
        like_(like),
        f64_{DType::f64, like[0].tensor.device()},
        draw_{static_cast<uint64_t>(seed), 0},
        size_(std::pow(0.1, (seed - 1) % 3)) {
    width_ = 0;
    for (const NamedParameter& p : like_)
      if (p.role != Role::neutral) width_ = p.tensor.size(p.stream_dim);
    history_ = draw(steps);
    track_ = follow(make_, like_, history_);
    const Track moved = follow(make_, like_, jittered());
    for (size_t i = 0; i < like_.size(); ++i) {
      double way = 0;
      for (const auto& weights : track_) way = larger(way, largest_entry(weights[i] - history_.weights[i]));
      scale_.push_back(way > 0 ? way : largest_entry(history_.weights[i]));
      double control = 0;
      for (size_t t = 0; t < track_.size(); ++t)
        control = larger(control, largest_entry(moved[t][i] - track_[t][i]) / scale_[i]);
      tolerance_.push_back(bound(control, DType::f64));
      check(std::isfinite(way) && std::isfinite(control), "update: ", like_[i].name, " moves by ", way,
            " and by rounding of ", control, ", expected finite numbers");
      if (way > 0 && like_[i].role != Role::neutral) moves_[like_[i].role == Role::reader] = true;
    }
    check(moves_[0] && moves_[1], "update: ", moves_[0] ? "no reader" : "no writer", " moves in ", steps,
          " steps of gradients of size ", size_, ", expected one at least: nothing can be seen");
  }

  Measured measure(Property property);

 private:
  // A history with P G = G and zeros in the blind rows of G.
  History draw(int steps) {
    History h;
    for (const NamedParameter& p : like_)
      h.weights.push_back(randn(p.tensor.shape(), f64_, draw_) * kWeights + kWeights / 2);
    for (int t = 0; t < steps; ++t) h.gradients.push_back(noise(true));
    return h;
  }
  std::vector<Tensor> noise(bool centred) {
    std::vector<Tensor> out;
    for (const NamedParameter& p : like_) {
      Tensor g = randn(p.tensor.shape(), f64_, draw_) * size_;
      if (centred && p.role != Role::neutral) g = contiguous(recentre(g, p.stream_dim));
      if (p.blind_end > p.blind_begin) fill(narrow(g, 0, p.blind_begin, p.blind_end - p.blind_begin), 0);
      out.push_back(g);
    }
    return out;
  }

  // The history, every entry moved by an ulp of its tensor's largest, or of a typical entry if a small tensor's are
  // smaller.
  History jittered() {
    const auto move = [&](double like) {
      return [this, like](const Tensor& x, const NamedParameter&) {
        return x + sign(randn(x.shape(), f64_, draw_)) * (std::max(largest_entry(x), like) * epsilon(DType::f64));
      };
    };
    return changed(like_, history_, move(kWeights), move(size_));
  }

  // Random means m along the stream's axis for parameters of this role; zeros for others.
  Tensor mean_of(const NamedParameter& p, Role role, double size) {
    Dims shape = p.tensor.shape();
    if (p.role != role) return zeros({}, f64_);
    shape[p.stream_dim] = 1;
    return randn(shape, f64_, draw_) * size;
  }
  static Tensor centred(const Tensor& x, const NamedParameter& p, Role role) {
    return p.role == role ? contiguous(recentre(x, p.stream_dim)) : x;
  }

  // The largest deviation between two tracks, relative to the tensor's movement, with its tolerance.
  Measured compared(const Track& a, const Track& b, const std::function<bool(size_t)>& counts = {}) const {
    Measured worst{.holds = true, .deviation = 0, .tolerance = tolerance_[0]};
    for (size_t i = 0; i < like_.size(); ++i) {
      if (counts && !counts(i)) continue;
      for (size_t t = 0; t < a.size(); ++t) {
        const double d = largest_entry(a[t][i] - b[t][i]) / scale_[i];
        if (!(d <= tolerance_[i])) worst.holds = false;
        if (larger(worst.deviation / worst.tolerance, d / tolerance_[i]) != worst.deviation / worst.tolerance)
          worst.deviation = d, worst.tolerance = tolerance_[i];
      }
    }
    return worst;
  }
  Track projected(const Track& track, Role role) const {
    return changed(like_, track, [&](const Tensor& x, const NamedParameter& p) { return centred(x, p, role); });
  }

  Measured repeats() {
    const Track again = follow(make_, like_, history_);
    Measured m = compared(track_, again);
    m.holds = m.deviation == 0;
    m.tolerance = 0;
    return m;
  }
  Measured linear();
  Measured commutes(bool orthogonal);
  Measured any_width();
  Measured weight_mean_unseen(Role role);
  Measured keeps(Role role, bool any_gradient);
  Measured gradient_mean_unseen();
  Measured ignores_weights();
  Measured tensors_apart();

  const MakeUpdate& make_;
  const std::vector<NamedParameter>& like_;
  const TensorOptions f64_;  // on the device of the parameters
  Generator draw_;
  const double size_;  // of the gradients
  int64_t width_;
  History history_;
  Track track_;
  std::vector<double> scale_, tolerance_;  // by parameter
  bool moves_[2] = {};                     // whether a writer, a reader moves
};

Measured Measurement::linear() {
  constexpr double a = 0.7, b = -1.3;
  const History other = draw(static_cast<int>(history_.gradients.size()));
  History sum = history_;
  const auto combine = [&](std::vector<Tensor>& x, const std::vector<Tensor>& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * a + y[i] * b;
  };
  combine(sum.weights, other.weights);
  for (size_t t = 0; t < sum.gradients.size(); ++t) combine(sum.gradients[t], other.gradients[t]);
  Track expected = track_;
  const Track second = follow(make_, like_, other);
  for (size_t t = 0; t < expected.size(); ++t) combine(expected[t], second[t]);
  return compared(follow(make_, like_, sum), expected);
}

// T = O diag(s) O' with s from 1/2 to 2, and T^-T = O diag(1/s) O'. s = 1 if `orthogonal`.
Measured Measurement::commutes(bool orthogonal) {
  const Tensor s =
      orthogonal ? full({width_}, 1, f64_) : exp(uniform({width_}, -std::log(2), std::log(2), f64_, draw_));
  const Tensor left = to(orthogonal_matrix(width_, draw_), f64_.device),
               right = to(orthogonal_matrix(width_, draw_), f64_.device);
  const Tensor t = matmul(left * s, right), inverse_transposed = matmul(left / s, right);
  const auto along_stream = [](const Tensor& matrix) {
    return [matrix](const Tensor& x, const NamedParameter& p) {
      return p.role == Role::neutral ? x : along(matrix, x, p.stream_dim);
    };
  };
  const History turned = changed(like_, history_, along_stream(t), along_stream(inverse_transposed));
  return compared(follow(make_, like_, turned), changed(like_, track_, along_stream(t)));
}

Measured Measurement::any_width() {
  const auto on_stream = [](const NamedParameter& p) { return p.role != Role::neutral; };
  const auto last_to_zero = [&](const Tensor& x, const NamedParameter& p) {
    const Tensor copy = detached::clone(x);
    if (on_stream(p)) fill(narrow(copy, p.stream_dim, width_ - 1, 1), 0);
    return copy;
  };
  const auto without_last = [&](const Tensor& x, const NamedParameter& p) {
    return on_stream(p) ? contiguous(narrow(x, p.stream_dim, 0, width_ - 1)) : x;
  };
  const History wide = changed(like_, history_, last_to_zero, last_to_zero);
  return compared(changed(like_, follow(make_, like_, wide), without_last),
                  follow(make_, like_, changed(like_, wide, without_last, without_last)));
}

Measured Measurement::weight_mean_unseen(Role role) {
  const auto shift = [&](const Tensor& x, const NamedParameter& p) { return x + mean_of(p, role, 0.3); };
  const History shifted = changed(like_, history_, shift);
  return compared(projected(follow(make_, like_, shifted, shift), role), projected(track_, role));
}

Measured Measurement::keeps(Role role, bool any_gradient) {
  const auto centre = [&](const Tensor& x, const NamedParameter& p) {
    return p.role == Role::neutral ? x : contiguous(recentre(x, p.stream_dim));
  };
  History h = changed(like_, history_, centre);
  if (any_gradient)
    for (auto& gradients : h.gradients) gradients = noise(false);
  const Track track = follow(make_, like_, h);
  return compared(track, projected(track, role));
}

Measured Measurement::gradient_mean_unseen() {
  const auto shift = [&](const Tensor& g, const NamedParameter& p) { return g + mean_of(p, Role::writer, size_); };
  const auto project = [&](const Tensor& x, const NamedParameter& p) { return centred(x, p, Role::writer); };
  const Track with_mean = follow(make_, like_, changed(like_, history_, {}, shift), project);
  return compared(with_mean, follow(make_, like_, history_, project));
}

Measured Measurement::ignores_weights() {
  History moved = history_;
  std::vector<Tensor> by;
  for (Tensor& w : moved.weights) by.push_back(randn(w.shape(), f64_, draw_)), w = w + by.back();
  Track track = follow(make_, like_, moved);
  for (auto& weights : track)
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = weights[i] - by[i];
  return compared(track, track_);
}

Measured Measurement::tensors_apart() {
  History louder = history_;
  for (auto& gradients : louder.gradients)
    for (size_t i = 0; i < gradients.size(); i += 2) gradients[i] = gradients[i] * 3;
  return compared(follow(make_, like_, louder), track_, [](size_t i) { return i % 2 == 1; });
}

Measured Measurement::measure(Property property) {
  using M = Measurement;
  constexpr Measured (*kMeasure[kProperties])(M&) = {
      [](M& m) { return m.repeats(); },
      [](M& m) { return m.linear(); },
      [](M& m) { return m.commutes(true); },
      [](M& m) { return m.commutes(false); },
      [](M& m) { return m.any_width(); },
      [](M& m) { return m.weight_mean_unseen(Role::writer); },
      [](M& m) { return m.weight_mean_unseen(Role::reader); },
      [](M& m) { return m.keeps(Role::writer, false); },
      [](M& m) { return m.keeps(Role::reader, false); },
      [](M& m) { return m.gradient_mean_unseen(); },
      [](M& m) { return m.keeps(Role::writer, true); },
      [](M& m) { return m.ignores_weights(); },
      [](M& m) { return m.tensors_apart(); },
  };  // in the order of the properties
  return kMeasure[static_cast<size_t>(property)](*this);
}

}  // namespace

Predicates measure(const MakeUpdate& make, const std::vector<NamedParameter>& like, int seeds, int steps) {
  check(seeds > 0 && steps > 0, "update: ", seeds, " seeds of ", steps, " steps, expected at least 1 of each");
  NoGrad no_grad;
  Predicates result;
  for (int seed = 1; seed <= seeds; ++seed) {
    Measurement measurement(make, like, seed, steps);
    for (int i = 0; i < kProperties; ++i) {
      const Property property = static_cast<Property>(i);
      const Measured one = measurement.measure(property);
      check(std::isfinite(one.deviation), "update: the deviation from ", name_of(property), " is ", one.deviation,
            ", expected a finite number");
      Measured& all = result.measured[static_cast<size_t>(i)];
      const bool replaces = all.holds == one.holds ? one.deviation > all.deviation : all.holds;  // a failure replaces
      if (seed == 1 || replaces) all = one;
    }
  }
  for (int i = 0; i < kProperties; ++i) {
    const Measured& m = result.measured[static_cast<size_t>(i)];
    check(m.holds || m.tolerance == 0 || m.deviation >= kLeast, "update: whether it has ",
          name_of(static_cast<Property>(i)), " cannot be said: the deviation is ", m.deviation, ", rounding explains ",
          m.tolerance, ", expected less, or ", kLeast, " and more");
  }
  return result;
}

}  // namespace isonorm::equivalence
