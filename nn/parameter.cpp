#include "nn/parameter.h"

#include <algorithm>
#include <utility>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/rounded_masters.h"
#include "core/packing.h"
#include "core/view.h"

namespace isonorm::nn {
namespace {
bool rounds(const Tensor& x, DType rows) { return x.defined() && x.dtype() == DType::f32 && rows == DType::bf16; }
}  // namespace

void replace_tensor(const Tensor& x, const Tensor& value) {
  const std::shared_ptr<autograd::Node> leaf = x.impl().node;
  const bool on = requires_grad(x);
  *x.handle() = *value.handle();
  if (!leaf) return;
  autograd::Node& node = *require_grad(x, on).impl().node;
  node.hooks = leaf->hooks, node.owned = leaf->owned, node.tied = leaf->tied;
}

void own_leaf(const Tensor& leaf) {
  autograd::Node& node = *leaf.impl().node;
  node.tied = node.tied || node.owned;
  node.owned = true;
}

bool fits(const Tensor& x, const Tensor& y) {
  return x.defined() && y.defined() && x.shape() == y.shape() && x.dtype() == y.dtype() && x.device() == y.device();
}

Parameter::Parameter(const Tensor& stored) : Tensor(stored), seen_(std::make_shared<Seen>()), own_(stored) {}

Parameter& Parameter::operator=(const Tensor& tensor) {
  assign(tensor, std::make_shared<Seen>());
  return *this;
}

Parameter& Parameter::operator=(const Parameter& other) {
  if (this != &other) assign(other, other.seen_);
  return *this;
}

void Parameter::assign(const Tensor& tensor, std::shared_ptr<Seen> seen) {
  check(parametrisations().empty() && !holds_part(), "parameter: it has a parametrisation or holds a rank's part (",
        defined() ? shape() : Dims(), "), so no tensor can be assigned to it; assign before parametrizing");
  const bool is_handle = !seen_;  // default-constructed, of no module
  const bool is_leaf = tensor.defined() && tensor.impl().node && tensor.impl().node->is_leaf();
  Tensor::operator=(tensor);
  seen_ = std::move(seen);
  if (!is_handle && !(is_leaf && fits(own_, tensor))) return;
  settle();
  if (is_leaf) own_leaf(tensor);
}

void Parameter::store(const Tensor& value) const { replace_tensor(*this, detached::clone(value)); }

Tensor Parameter::operator()() const {
  if (const Kept* k = kept()) return k->value;
  return mapped(whole(), end());
}

Tensor Parameter::operator()(DType rows) const {
  if (Kept* k = kept()) return k->read_by(rows);
  const Tensor seen = (*this)();
  return grad_enabled() || !rounds(seen, rows) ? seen : detail::as_rows(seen, rows);
}

void Parameter::hold_part(std::function<Tensor(const Tensor& part)> whole) const { seen_->whole = std::move(whole); }

const Parametrisations& Parameter::parametrisations() const {
  static const Parametrisations none;
  return seen_ ? seen_->by : none;
}

void Parameter::parametrize(std::shared_ptr<const Parametrisation> parametrisation) {
  Parametrisations all = parametrisations();
  all.push_back(std::move(parametrisation));
  set_parametrisations(std::move(all));
}

void Parameter::set_parametrisations(Parametrisations all) {
  keep(false);
  if (!seen_) seen_ = std::make_shared<Seen>();
  seen_->by = std::move(all), seen_->asked = false;
}

Tensor Parameter::mapped(Tensor x, size_t end) const {
  if (!seen_ || seen_->by.empty()) return x;
  seen_->asked = true;
  for (size_t i = 0; i < end; ++i) x = (*seen_->by[i])(x);
  return x;
}

bool Parameter::maps_by_rows() const {
  return end() > 0 && std::ranges::all_of(seen_->by, [](const auto& p) { return p->by_rows(); });
}

bool has_added(std::span<const std::shared_ptr<const Parametrisation>> all) {
  return std::ranges::any_of(all, [](const auto& p) { return !p->is_part_of_model(); });
}

size_t Parameter::output_maps_shared_with(const Parameter& bias) const {
  const Parametrisations &mine = parametrisations(), &theirs = bias.parametrisations();
  const bool has_bias = bias.defined() || !theirs.empty();
  const auto shares = [&](size_t i) {  // the parametrisation i before the last
    const Parametrisation& map = *mine[mine.size() - 1 - i];
    return map.is_output_map() &&
           (!has_bias || (i < theirs.size() && map.is_same_output_map(*theirs[theirs.size() - 1 - i])));
  };
  size_t maps = 0;
  while (maps < mine.size() && shares(maps)) ++maps;
  return maps;
}

Tensor Parameter::before_output_maps(size_t maps) const { return mapped(whole(), end() - maps); }

Tensor Parameter::map_output(Tensor y, size_t maps) const {
  for (size_t i = end() - maps; i < end(); ++i) y = seen_->by[i]->map_output(y);
  return y;
}

void Parameter::keep(bool on, bool packed) {
  if (!seen_) return;
  seen_->kept.reset();
  if (!on) return;
  const Tensor value = (*this)();
  if (!value.defined()) return;
  std::vector<Source> sources;
  const auto made_from = [&](const Tensor& t) {
    sources.push_back({t, t.impl().storage, t.impl().storage->version()});
  };
  for (const auto& p : seen_->by) std::ranges::for_each(p->reads(), made_from);
  if (defined()) made_from(*this);
  seen_->kept = std::make_unique<Kept>(value, packed, std::move(sources));
}

Parameter::Kept* Parameter::kept() const {
  return seen_ && seen_->kept && !grad_enabled() && seen_->kept->holds() ? seen_->kept.get() : nullptr;
}

Parameter::Kept::~Kept() {
  if (packed_) keep_packed(value, false);
}

bool Parameter::Kept::holds() const {
  return std::ranges::all_of(sources_, [](const Source& s) {
    const std::shared_ptr<Storage> then = s.storage.lock();
    return then && then == s.tensor.impl().storage && then->version() == s.version;
  });
}

Tensor Parameter::Kept::read_by(DType rows) {
  const bool rounded = rounds(value, rows);
  std::call_once(rounded ? rounds_ : packs_, [&] {
    if (rounded) rounded_ = detached::to(value, rows);
    if (packed_) keep_packed(rounded ? rounded_ : value);
  });
  return rounded ? rounded_ : value;
}

}  // namespace isonorm::nn
