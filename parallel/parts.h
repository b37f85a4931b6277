// A model of which every rank has a part: which parameters are parts, and how the whole is made of them and cut into them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "distributed/group.h"
#include "nn/module.h"
#include "optim/clip.h"
#include "optim/optimizer.h"

namespace isonorm::parallel {

// What tensor_parallel.h and sharded_parameters.h make. Keeps references to model and group. All ranks make the same calls. An optimizer's
// update of an entry may need that entry alone (SGD, Adam and its kin): training::Step refuses others.
class Parts {
 public:
  virtual ~Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // This rank's part of a state_dict() of the whole model, on the same stream. Throws as load_state_dict(), and where a tensor is not of the
  // size of the whole.
  void load(const TensorMap& whole);
  bool is_loaded() const { return loaded_; }  // a part of a model that all ranks have parts of
  // This rank's parts, and the tensors that all ranks have, under the names of the whole model's state_dict(). (The
  // model's own state_dict() throws: a file of parts would look like a file of the model.)
  TensorMap own() const;
  // Joins parts, as own() returns them, to whole tensors. All ranks call it.
  TensorMap whole(const TensorMap& parts);
  // The whole model's state_dict(). All ranks call it, and one rank saves it.
  TensorMap whole() { return whole(own()); }
  // The state of an optimizer of the model's parameters as one process has it, for a file; and a rank's part of such a state. (The
  // optimizer's numbers of parameters are the model's.)
  TensorMap whole_state(const optim::Optimizer& optimizer);
  void load_state(optim::Optimizer& optimizer, const TensorMap& whole);

  bool is_part(const std::string& name) const { return cuts_.contains(name); }
  bool is_part(const Tensor& parameter) const { return by_tensor_.contains(&parameter.impl()); }
  // Whether the gradients of parts are summed over the data's rows already, in the backward (sharded_parameters.h).
  bool sums_gradients() const { return sums_gradients_; }
  distributed::Group& group() const { return group_; }

  // Gathers the parameters that the ranks share. Each rank may then run the model by itself until the next update or
  // release(). Every rank calls gather(). Does nothing if each rank's part is another model (tensor_parallel.h).
  virtual void gather() {}
  virtual void release() {}

  // Behind a backward: throws where a gradient is that of a part by itself, which a module has read as if it were the whole.
  virtual void check_gradients() const {}

  // optim::clip_numbers() of the gradients of the whole: of each rank's parts, and once of what all have.
  optim::ClipNumbers clip_numbers(const std::vector<Tensor>& parameters, double max_norm);

 protected:
  // Along `dim`, sections of these sizes in the whole tensor. Of each the ranks have as many positions, one behind the other; where they do
  // not divide, the last ranks have zeros behind theirs.
  struct Cut {
    int dim;
    std::vector<int64_t> sections;
  };
  Parts(nn::Module& model, distributed::Group& group, bool sums_gradients)
      : model_(model), group_(group), sums_gradients_(sums_gradients), loaded_(sums_gradients || group.size() == 1) {}
  void add(const std::string& name, const Tensor& part, Cut cut);
  Tensor part_of(const Tensor& whole, const Cut& cut) const;
  int64_t part_size(const Cut& cut) const;

  nn::Module& model_;
  distributed::Group& group_;

 private:
  Tensor whole_of(const Tensor& part, const Cut& cut);
  template <class F> TensorMap mapped(const optim::Optimizer& optimizer, const TensorMap& state, F&& f);

  std::map<std::string, Cut> cuts_;
  std::map<const void*, const Cut*> by_tensor_;
  const bool sums_gradients_;
  bool loaded_;
};

}  // namespace isonorm::parallel
