// A model that is split over ranks: which parameters are parts, how to join them to the whole and how to cut the whole.
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

// Base of TensorParallel and ShardedParameters. Keeps references to model and group. All ranks make the same calls. An
// optimizer must update each entry from that entry alone (SGD, Adam and similar): training::Step refuses others.
class Parts {
 public:
  virtual ~Parts() = default;
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  // Loads this rank's part of the whole model's state_dict(), which is on the same stream. Throws as load_state_dict(),
  // and if a tensor does not have the size of the whole.
  void load(const TensorMap& whole);
  bool is_loaded() const { return loaded_; }  // true if this rank's parts belong to a model that all ranks share
  // This rank's parts and the tensors that all ranks have, under the names of the whole model's state_dict(). (The
  // model's own state_dict() throws: a file of parts would look like a file of the model.)
  TensorMap own() const;
  // Joins parts, as own() returns them, to whole tensors. All ranks call it.
  TensorMap whole(const TensorMap& parts);
  // The whole model's state_dict(). All ranks call it, and one rank saves it.
  TensorMap whole() { return whole(own()); }
  // whole_state() gives the optimizer's state as a single process has it, for a file. load_state() loads this rank's
  // part. (The optimizer numbers its parameters as the model does.)
  TensorMap whole_state(const optim::Optimizer& optimizer);
  void load_state(optim::Optimizer& optimizer, const TensorMap& whole);

  bool is_part(const std::string& name) const { return cuts_.contains(name); }
  bool is_part(const Tensor& parameter) const { return by_tensor_.contains(&parameter.impl()); }
  // True if the backward already sums the gradients of parts over the ranks' data (sharded_parameters.h).
  bool sums_gradients() const { return sums_gradients_; }
  distributed::Group& group() const { return group_; }

  // Gathers the parameters that the ranks share. Then each rank may run the model by itself until the next update or
  // release(). Every rank calls gather(). Does nothing with tensor_parallel.h, where each rank's part is a model of its
  // own.
  virtual void gather() {}
  virtual void release() {}

  // Call it after a backward. Throws if a module has read a part as if it were the whole parameter.
  virtual void check_gradients() const {}

  // optim::clip_numbers() for the gradients of the whole model: each rank's parts count, and tensors that all ranks
  // have count once.
  optim::ClipNumbers clip_numbers(const std::vector<Tensor>& parameters, double max_norm);

 protected:
  // Sections with these sizes along `dim` of the whole tensor. Each rank has ceil(size / ranks) consecutive positions
  // of every section; if the ranks do not divide a size, the parts of the last ranks are padded with zeros.
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
