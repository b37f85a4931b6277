#include "core/kernels/checks.h"

namespace isonorm::kernels {

std::string text_of(const Complaint& c) {
  switch (c.kind) {
    case Complaint::Kind::id:
      return text(c.op, ": id ", c.id, " at element ", c.element, " of shape ",
                  Dims(std::span<const int64_t>(c.size, static_cast<size_t>(c.rank))), " is outside of ", c.what,
                  " of size ", c.bound);
    case Complaint::Kind::weights:
      return text("multinomial: weights must be finite and not negative; the least is ", c.least,
                  ", the largest sum of a row ", c.total);
    case Complaint::Kind::positive:
      return text("multinomial: a row has ", c.positive, " positive weights, needed are ", c.needed);
  }
  return {};
}

Complaint about(const IdCheck& c) {
  Complaint it{};
  it.kind = Complaint::Kind::id;
  it.op = c.op, it.what = c.what, it.path = "";
  it.bound = c.bound;
  it.rank = c.shape.rank;
  for (int i = 0; i < c.shape.rank; ++i) it.size[i] = c.shape.v[i];
  return it;
}

}  // namespace isonorm::kernels
