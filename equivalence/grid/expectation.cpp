#include "equivalence/grid/expectation.h"

#include "core/error.h"
#include "streams/stream.h"

namespace isonorm::equivalence {
namespace {

using streams::Form;
using streams::Stored;

// Collects required properties. The first one that the update lacks decides.
class Needs {
 public:
  explicit Needs(const Predicates& update) : update_(update) { need(Property::repeats); }
  Needs& need(Property p) {
    if (!missing_ && !update_(p)) missing_ = p;
    if (p != Property::repeats) names_ += text(names_.empty() ? "" : ", ", name_of(p));
    return *this;
  }
  Needs& need(bool wanted, Property p) { return wanted ? need(p) : *this; }

  Derived verdict(MaybeVerdict otherwise = Verdict::different) const {
    if (missing_) return {otherwise, text("the update lacks ", name_of(*missing_))};
    return {Verdict::equivalent, names_.empty() ? "any update that repeats" : text("the update has ", names_)};
  }

 private:
  const Predicates& update_;
  std::optional<Property> missing_;
  std::string names_;
};

bool of_writers(Projection p) { return p != Projection::none; }
bool of_readers(Projection p) { return p == Projection::writers_and_readers; }

// The reason why the variant is undefined for this model; empty if it is defined.
std::string no_such_model(const Variant& v, bool compressed, bool writers_lose_mean, bool readers_lose_mean,
                          const Visible& visible) {
  if (compressed && visible.affine) return "d - 1 stored coordinates have no place for a learned gain";
  if (compressed && (v.start != Projection::none || v.after_step != Projection::none))
    return "the mean of stored coordinates is not the weights' mean";
  if (readers_lose_mean && visible.readers_mean) return "the function sees the means of readers";
  if (writers_lose_mean && visible.writers_mean) return "the function sees the means of writers";
  if (v.gradients == GradientRule::lifted && v.storage == Stored::raw) return "raw weights cannot be lifted";
  return "";
}

// Storage of d - 1 coordinates M w. With orthonormal coordinates [M; 1^T / sqrt d] is orthogonal; for crms_norm's it is
// an invertible T. The last coordinate has no gradient: its weight must not matter (mean unseen), and then it may be
// left out (any width).
Derived compressed_storage(const Variant& v, Needs needs) {
  needs.need(Property::writers_mean_unseen).need(Property::readers_mean_unseen);
  if (v.gradients == GradientRule::lifted)  // U acts on w, whose mean is lost, and on M* g = G
    return needs.verdict(MaybeVerdict());
  needs.need(Property::any_width);
  if (row_of(v.form).orthonormal)  // M M* = I, so the metric changes nothing
    return needs.need(Property::rotates).verdict();
  if (v.gradients == GradientRule::metric)  // M M* g = M G: U(TG, Tw) = T U(G, w). A linear U that commutes with all
                                            // O commutes with all T (Schur)
    return needs.need(Property::linear).need(Property::rotates).verdict();
  return needs.need(Property::covariant).verdict();  // g = T^-T G without its last coordinate
}

// Storage of P w, read by RMSNorm, which equals LayerNorm as long as the stored writers have no mean.
Derived recentred_storage(const Variant& v, Needs needs, const Visible& visible) {
  needs.need(Property::writers_mean_unseen);                                      // the mean of w is lost
  if (v.gradients == GradientRule::lifted) return needs.verdict(MaybeVerdict());  // P U(P g, w), as a5
  const bool readers = of_readers(v.start);  // if readers' rows sum to 0, then 1^T g = 0 (F6)
  needs.need(readers || of_readers(v.after_step), Property::readers_mean_unseen);
  needs.need(readers && !of_readers(v.after_step), Property::keeps_readers);
  // True if the gradient that U gets has no mean. Then it is G (F5).
  const bool no_mean = (readers && !visible.gradient_mean) || v.gradients == GradientRule::metric;
  if (!no_mean) needs.need(Property::gradient_mean_unseen);
  if (!of_writers(v.after_step)) needs.need(no_mean ? Property::keeps_writers : Property::centres_writers);
  return needs.verdict();
}

}  // namespace

Derived expectation(const Variant& v, const Predicates& update, const Visible& visible) {
  const bool mapped = v.storage == Stored::mapped && !row_of(v.form).raw();
  const bool compressed = mapped && row_of(v.form).compressed();
  const bool writers = mapped || of_writers(v.start) || of_writers(v.after_step);  // lose their mean
  const bool readers = compressed || of_readers(v.start) || of_readers(v.after_step);
  if (const std::string why = no_such_model(v, compressed, writers, readers, visible); !why.empty())
    return {MaybeVerdict(), why};
  if (visible.another_function.contains(v.form))
    return {Verdict::different, text("on a stream of ", name_of(v.form), " the model is another function"),
            /*same_start=*/false};
  Needs needs(update);
  if (compressed) return compressed_storage(v, needs);
  if (mapped) return recentred_storage(v, needs, visible);
  // Pre-LN's function of Pre-LN's weights has Pre-LN's gradients (F3, S2, S3): the same path, except for a removed
  // mean.
  return needs.need(writers, Property::writers_mean_unseen).need(readers, Property::readers_mean_unseen).verdict();
}

}  // namespace isonorm::equivalence
