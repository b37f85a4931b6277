// Base class of the optimizers: groups of parameters, their state, the learning rate, and saving. Invariant: a
// parameter's state is allocated with its first gradient; later steps take no new memory from the system.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/tensor_map.h"

namespace isonorm::kernels {
struct Update;  // core/kernels/optimizer.h
}

namespace isonorm::optim {

// Parameters with their own options.
template <class Options> struct ParameterGroup {
  std::vector<Tensor> parameters;
  Options options;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Changes every parameter that has a gradient, in place. Parameters without a gradient, and their state, do not
  // change. Throws if nothing but the optimizer holds a parameter any more: the tensor that took its place would not
  // train. Throws, naming the parameter, if Module::to(dtype) has changed it since the first step, so that its state
  // has another dtype. Gradients are multiplied by gradient_scale when they are read: with clip_factor() this clips
  // without a separate pass.
  virtual void step(double gradient_scale = 1) = 0;
  // step() with the scale in a tensor, one f64 on the parameters' device, from clip_numbers(), so that no host waits
  // for it. An optimizer that does not override it reads the number, which waits.
  virtual void step_scaled(const Tensor& gradient_scale);

  // True if advance() gives every number that changes from step to step, so that a device can repeat a captured step
  // (gpu/steps/captured.h).
  virtual bool replays() const { return false; }
  // Counts one more step for the parameters of the last step, and returns the updates of that step, in order and
  // without tensors. Throws if replays() is false.
  virtual std::vector<kernels::Update> advance();
  // How often load_state_dict() has replaced the state's tensors.
  int loads() const { return loads_; }

  // True if the update of an entry depends on that entry alone, its gradient and its state. Parts of parameters can
  // then be updated separately.
  virtual bool by_entry() const { return false; }

  // Clears every parameter's gradient: they are undefined until the next backward().
  void zero_grad();

  // The learning rate of a group, counted from the end if negative. Throws if there is no such group.
  double lr(int group = 0) const { return lr_[checked_group(group)]; }
  // Sets the learning rate of the first group. The rate of every other group becomes lr times (its rate at construction
  // / the first group's rate at construction). Throws if a rate is negative or not finite, or if only the first group
  // was made with rate 0. Then no rate changes.
  void set_lr(double lr);
  // Sets the learning rate of a group, counted from the end if negative. The factors for set_lr(lr) stay. Throws if
  // there is no such group, and if lr is negative or not finite.
  void set_lr(int group, double lr);
  // Change an option of a group from the next step on, within the range that the constructor accepts. The options are
  // not part of state_dict(). Throw if the optimizer has no such option; set_momentum() also if the group was made
  // without momentum (it has no buffer) or if momentum is 0.
  void set_weight_decay(int group, double weight_decay);
  void set_momentum(int group, double momentum);

  int groups() const { return static_cast<int>(lr_.size()); }
  std::vector<Tensor> parameters() const;
  const char* name() const { return name_; }
  // The parameters' device. Throws if they are on several devices.
  Device device() const;

  // A copy of the state: "group.<g>.lr", for groups after the first "group.<g>.lr_factor" (see set_lr()), and for each
  // parameter that has been stepped, by its position i over all groups, "<i>.step" (i64) and the state by PyTorch's
  // names ("<i>.exp_avg", ...).
  TensorMap state_dict() const;
  // state_dict() without the copy, for writing a file: the next step changes the tensors ("<i>.exp_avg", ...).
  TensorMap live_state() const;
  // Copies the state in; training then continues with the same bits. Throws, and changes nothing, if a name is missing
  // or unknown, or a shape or dtype differs. A state without factors (files of older versions) does not change the
  // factors.
  void load_state_dict(const TensorMap& state);

 protected:
  // Movable by derived classes only, for containers of optimizers. Not copyable: two optimizers would step the same
  // parameters.
  Optimizer(Optimizer&&) = default;
  Optimizer& operator=(Optimizer&&) = default;

  // Pointers to the options of a group that set_weight_decay() and set_momentum() change; null if there is no such
  // option.
  struct Tunable {
    double* weight_decay = nullptr;
    double* momentum = nullptr;
  };
  virtual Tunable tunable(int) { return {}; }

  // A tensor that a parameter keeps from step to step, in its accumulation type.
  struct StateSpec {
    const char* name;
    Dims shape;
    double initial = 0;
  };
  struct Entry {
    Tensor parameter;
    int group;
    std::vector<StateSpec> specs;
    int64_t steps = 0;            // steps that this parameter has taken
    std::vector<Tensor> state{};  // empty before the first step, then one per spec
    Dims shape = parameter.shape();
  };

  // `name` begins error messages. `parameters` is their number in all groups. Throws if it is 0: nothing would train.
  Optimizer(const char* name, size_t parameters);
  template <class Options> static size_t count(const std::vector<ParameterGroup<Options>>& groups) {
    size_t n = 0;
    for (const auto& g : groups) n += g.parameters.size();
    return n;
  }
  // Adds a group whose parameters keep the state that `specs_of` describes. A parameter listed twice is taken once.
  // Throws if a parameter is not a contiguous leaf or is in another group.
  void add_group(const std::vector<Tensor>& parameters, double lr,
                 const std::function<std::vector<StateSpec>(const Tensor&)>& specs_of);
  // Adds a group whose parameters keep state tensors of their own shape with these names.
  void add_group(const std::vector<Tensor>& parameters, double lr, const std::vector<const char*>& state_names = {},
                 double initial = 0);
  // A condition on an option. check_option() throws "name: what is value, expected ..." if it does not hold.
  struct Condition {
    bool holds;
    const char* what;
    double value;
    const char* expected;
  };
  static Condition fraction(const char* what, double value);      // in [0, 1)
  static Condition not_negative(const char* what, double value);  // finite, from 0
  void check_option(const Condition& condition) const;

  // Throws if it is not one f64 on the parameters' device.
  void check_factor(const Tensor& factor) const;

  // Returns true if the parameter has a gradient. Then it creates the state if there is none, counts the step and sets
  // `gradient` to the contiguous gradient.
  bool begin_step(Entry& e, Tensor& gradient);
  std::vector<Entry>& entries() { return entries_; }

 private:
  int checked_group(int group) const;  // in [0, groups())
  Entry loaded(const Entry& e, const std::string& prefix, const TensorMap& from) const;

  const char* name_;
  std::vector<double> lr_;       // by group
  std::vector<double> factors_;  // by group: the rate at construction / the first group's
  std::vector<Entry> entries_;
  int loads_ = 0;
};

}  // namespace isonorm::optim
