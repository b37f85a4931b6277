// Parameter: a tensor that a layer holds, and the value that the forward sees. Without parametrisations they are the
// same. Parametrisations are differentiable maps between them, applied one after the other: the stored tensor is
// trained, saved and loaded, and the layer computes with its image (as in PyTorch's torch.nn.utils.parametrize).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/tensor.h"

namespace isonorm::nn {

// Replaces the tensor that this handle and its copies refer to. A leaf stays a leaf, with its hooks.
void replace_tensor(const Tensor& x, const Tensor& value);

// Marks a leaf that gets a name in a module: it is owned, and from its second name on it may be tied (autograd::Node).
void own_leaf(const Tensor& leaf);

// True if y can take x's place: same shape, dtype and device.
bool fits(const Tensor& x, const Tensor& y);

class Parametrisation {
 public:
  virtual ~Parametrisation() = default;
  // Maps the stored tensor, or the result of the parametrisation before this one. `x` is undefined if the layer stores
  // nothing for this parameter.
  virtual Tensor operator()(const Tensor& x) const = 0;
  // The tensors that it reads in addition to x.
  virtual std::vector<Tensor> reads() const { return {}; }
  // True if it maps each row of dimension 0 by itself. A layer that reads some rows of a table then maps only these
  // rows.
  virtual bool by_rows() const { return false; }
  // True if it is a linear map M of a layer's output: weight [out, in] -> M weight, bias [out] -> M bias. A layer that
  // changes its output, as by dropout, can then apply M after the change: map_output(y) is M y, for y [..., out].
  virtual bool is_output_map() const { return false; }
  virtual Tensor map_output(const Tensor& y) const { return y; }
  // True if `other`, an output map of the same layer's bias, is the same M. By default the same object.
  virtual bool is_same_output_map(const Parametrisation& other) const { return this == &other; }
  // True if the constructor of the layer or of the model attaches it: a model that is loaded from a file has it, too.
  virtual bool is_part_of_model() const { return false; }
};

// The parametrisations of a parameter in order of application, as PyTorch's ParametrizationList.
using Parametrisations = std::vector<std::shared_ptr<const Parametrisation>>;

// True if a parametrisation was added to a finished model: the model's class then does not describe the stored tensor.
bool has_added(std::span<const std::shared_ptr<const Parametrisation>> all);

// An entry of a module's registry; members refer to it: Parameter& weight = add_parameter("weight", ...). Converted to
// Tensor it is the stored one. A copy is a second handle of the same tensor and parametrisations. Copying is explicit,
// because a member `Parameter w = add_parameter(..)` would not follow later assignments to the module's parameter.
class Parameter : public Tensor {
 public:
  Parameter() = default;  // stores nothing
  explicit Parameter(const Tensor& stored);
  explicit Parameter(const Parameter& other) = default;
  // Weight tying: `tensor`, a leaf of the same shape, dtype and device, becomes the parameter. If it is a Parameter,
  // its parametrisations are shared, too. If another tensor was assigned, the module throws, naming the parameter, at
  // its next forward and whenever it lists its parameters. Throws if this parameter has parametrisations or holds a
  // part.
  //   decoder.weight = encoder.weight;
  Parameter& operator=(const Tensor& tensor);
  Parameter& operator=(const Parameter& other);
  // True if the tensor is the registered one, or if a permitted assignment put it in its place.
  bool is_intact() const { return handle() == own_.handle(); }
  const Tensor& own() const { return own_; }
  void settle() { own_ = *this; }  // makes the present tensor its own

  const Tensor& stored() const { return *this; }
  using Tensor::operator();  // indices: weight(0, Slice())
  // The tensor that the forward sees, with the shape that the parametrisations give it. Undefined if there is neither a
  // stored tensor nor a parametrisation.
  Tensor operator()() const;
  // The same for a product with rows of this dtype: without a graph, an f32 value is rounded to bf16 for bf16 rows.
  Tensor operator()(DType rows) const;
  // f(value) for a function f that takes some rows of a table. If all parametrisations work by rows, only these rows
  // are mapped.
  template <class F> Tensor rows(F&& f) const { return maps_by_rows() ? mapped(f(whole()), end()) : f((*this)()); }
  // The number of output maps with which the parametrisations of this weight and of `bias` both end. A bias without a
  // value ends with all of them.
  size_t output_maps_shared_with(const Parameter& bias) const;
  // The value before the last `maps` parametrisations, which are output maps, and these maps of a layer's output y
  // [..., out].
  Tensor before_output_maps(size_t maps) const;
  Tensor map_output(Tensor y, size_t maps) const;

  // Stores `value`, of any shape, instead of the present tensor.
  void store(const Tensor& value) const;

  // Declares the stored tensor a rank's part of the parameter. whole(part), differentiable, gives the tensor that the
  // parametrisations map or that the forward sees.
  void hold_part(std::function<Tensor(const Tensor& part)> whole) const;
  bool holds_part() const { return seen_ && seen_->whole; }
  // The stored tensor, or whole(part) if it is a part.
  Tensor whole() const { return seen_ && seen_->whole ? seen_->whole(*this) : stored(); }

  // Adds a parametrisation, which maps the result of the earlier ones.
  void parametrize(std::shared_ptr<const Parametrisation> parametrisation);
  // Replaces all parametrisations. {}: the forward sees the stored tensor itself.
  void set_parametrisations(Parametrisations all);
  const Parametrisations& parametrisations() const;
  // True if the value was read since the parametrisations changed. A forward that does not read it computes with the
  // stored tensor.
  bool asked() const { return seen_ && seen_->asked; }

  // Keeps the present value for forward passes without a graph, until a tensor that it was computed from is written to
  // or replaced. The first product with bf16 rows keeps the rounded value, too, and with `packed` the first product
  // keeps a packed copy (core/packing.h). on = false releases everything.
  void keep(bool on, bool packed = false);

 private:
  struct Source {
    Tensor tensor;
    std::weak_ptr<Storage> storage;
    uint32_t version;
  };
  class Kept {
   public:
    Kept(const Tensor& value, bool packed, std::vector<Source> sources)
        : value(value), packed_(packed), sources_(std::move(sources)) {}
    ~Kept();
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

    bool holds() const;  // false if a tensor that it was computed from was changed
    Tensor read_by(DType rows);

    const Tensor value;

   private:
    const bool packed_;
    const std::vector<Source> sources_;
    std::once_flag packs_, rounds_;  // threads that share a model for inference may ask at the same time
    Tensor rounded_;
  };
  struct Seen {
    Parametrisations by;
    std::function<Tensor(const Tensor&)> whole;
    std::unique_ptr<Kept> kept;
    std::atomic<bool> asked = false;  // threads may write it at the same time, too
  };
  size_t end() const { return parametrisations().size(); }
  bool maps_by_rows() const;                  // false if there is no parametrisation
  Tensor mapped(Tensor x, size_t end) const;  // by the parametrisations before number `end`
  Kept* kept() const;                         // null if nothing is kept, or if it is out of date
  void assign(const Tensor& tensor, std::shared_ptr<Seen> seen);

  std::shared_ptr<Seen> seen_;
  Tensor own_;
};

}  // namespace isonorm::nn
