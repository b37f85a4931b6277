#include "autograd/saved.h"

#include <algorithm>
#include <unordered_map>

#include "autograd/engine.h"
#include "autograd/grad_mode.h"
#include "autograd/node.h"
#include "core/memory/pool.h"
#include "core/view.h"

namespace isonorm {
namespace {

constexpr int64_t kSmallest = 4096;  // bytes; smaller tensors are not worth rounding

thread_local RoundedCopies* current_copies = nullptr;  // null: activations are saved unrounded
thread_local autograd::Node* attaching = nullptr;      // the node whose rule runs with create_graph

}  // namespace

// The bf16 copies that some rule still keeps, by source storage. Rules share them: the result of a norm, for example,
// is kept by the norm and by the linear map that reads it.
struct RoundedCopies {
  struct Copy {
    std::weak_ptr<Storage> of, bf16;
    uint32_t version = 0;
    int64_t offset = 0, numel = 0;
  };
  std::unordered_map<const Storage*, Copy> by_source;
  size_t limit = 64;  // number of entries at which copies that nobody keeps are dropped

  Tensor take(const Tensor& x) {
    const TensorImpl& t = x.impl();
    if (by_source.size() >= limit) {
      std::erase_if(by_source, [](const auto& entry) { return entry.second.bf16.expired(); });
      limit = std::max<size_t>(64, 2 * by_source.size());
    }
    const uint32_t version = t.storage->version();
    Copy& copy = by_source[t.storage.get()];
    // The address may belong to another storage by now.
    const bool same = !copy.of.expired() && copy.version == version && copy.offset == t.offset && copy.numel == t.numel;
    if (const auto kept = copy.bf16.lock(); kept && same && t.contiguous) {
      return Tensor(
          pool::make_shared<TensorImpl>(kept, t.shape, contiguous_strides(t.shape), 0, t.numel, DType::bf16, true));
    }
    const Tensor rounded = detached::to(x, DType::bf16);
    if (t.contiguous) copy = {t.storage, rounded.impl().storage, version, t.offset, t.numel};
    return rounded;
  }
};

SaveActivations::SaveActivations(DType dtype) : before_(current_copies) {
  check(is_floating(dtype), "save_activations: dtype is ", dtype, ", expected f32, f64 or bf16");
  if (dtype == DType::bf16) copies_ = std::make_unique<RoundedCopies>();
  current_copies = copies_.get();
}
SaveActivations::~SaveActivations() { current_copies = before_; }

Attaching::Attaching(autograd::Node* node) : before_(std::exchange(attaching, node)) {}
Attaching::~Attaching() { attaching = before_; }

Saved::Saved(const Tensor& x) {
  if (!x.defined()) return;
  tensor_ = detach(x);
  if (requires_grad(x)) {
    source_ = x.impl().node.get();
    seq_ = static_cast<uint32_t>(x.impl().node->seq);
  } else {
    source_ = x.impl().storage.get();
  }
  output_ = x.impl().output;
  version_ = x.impl().storage->version();
}

Tensor Saved::get() const {
  const Tensor x = data();
  if (!attaching || !x.defined() || !is_floating(x.dtype())) return x;
  const auto with = [&](std::shared_ptr<autograd::Node> node) {
    Tensor y = detach(x);
    y.impl().node = std::move(node);
    y.impl().output = output_;
    return y;
  };
  const auto is_source = [&](const autograd::Node* node) {
    return node == source_ && static_cast<uint32_t>(node->seq) == seq_;
  };
  if (is_source(attaching)) return with(attaching->shared_from_this());
  const auto input = std::find_if(attaching->inputs.begin(), attaching->inputs.end(), [&](const autograd::Edge& e) {
    return e.node ? is_source(e.node.get()) && e.output == output_ : e.constant == source_;
  });
  check(input != attaching->inputs.end(), "its rule keeps a tensor of shape ", x.shape(),
        " that is no input or output of the op (a view of one is neither), and its share of the second derivative "
        "would be lost: compute it in the rule, save the input and take the view in the rule, save an output after "
        "track(), list a constant among the inputs (create_graph)");
  return with(input->node);
}

Tensor Saved::data() const {
  if (rounded_) return detached::to(tensor_, DType::f32);
  if (!tensor_.defined()) return tensor_;
  const uint32_t now = tensor_.impl().storage->version();
  check(now == version_, "a tensor of shape ", tensor_.shape(),
        " that the gradient needs was changed in place after it was used (version ", now, ", saved at ", version_, ")");
  return tensor_;
}

bool rounds_activation(DType dtype, int64_t numel) {
  return current_copies && dtype == DType::f32 && numel * size_of(dtype) >= kSmallest;
}

Saved save_activation(const Tensor& x) {
  if (!x.defined() || !rounds_activation(x.dtype(), x.numel())) return Saved(x);
  if (x.numel() * size_of(x.dtype()) > x.impl().storage->bytes()) return Saved(x);  // repeats entries: a copy is larger
  Saved saved(x);
  saved.tensor_ = current_copies->take(x);
  saved.rounded_ = true;
  return saved;
}

}  // namespace isonorm
