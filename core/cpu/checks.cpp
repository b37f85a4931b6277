#include "core/kernels/checks.h"

#include <algorithm>
#include <cmath>

namespace isonorm::kernels::cpu {
namespace {
[[noreturn]] void complain(const Complaint& c) { raise(ErrorKind::invalid, text_of(c), __FILE__, __LINE__); }
}  // namespace

void check_ids(const Tensor& ids, const IdCheck& check) {
  const int64_t *p = ids.data<int64_t>(), *end = p + ids.numel();
  const auto outside = [&](int64_t id) { return (id < 0 || id >= check.bound) && id != check.allowed; };
  const int64_t* at = std::find_if(p, end, outside);
  if (at == end) return;
  Complaint c = about(check);
  c.id = *at, c.element = at - p;
  complain(c);
}

void check_weights(const WeightCheck& check) {
  Complaint c{};
  c.least = *check.least.data<double>(), c.total = *check.total.data<double>();
  c.positive = *check.positive.data<double>(), c.needed = check.needed;
  c.kind = Complaint::Kind::weights;
  if (!(c.least >= 0 && std::isfinite(c.total))) complain(c);
  c.kind = Complaint::Kind::positive;
  if (!(c.positive >= c.needed)) complain(c);
}

}  // namespace isonorm::kernels::cpu
