// Internal: the gradients of ranks, summed bucket by bucket, while a backward goes on (Li et al., 2006.15704, section 3.2).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/system/home_process.h"
#include "distributed/group.h"

namespace isonorm::training {

// The gradients, which the parameters then no longer have.
std::vector<Tensor> taken_gradients(const std::vector<Tensor>& parameters);

// Computes one sum of all gradients over the ranks. Buckets hold the parameters that take a gradient, in reverse order,
// at most bucket_for() bytes or one parameter. Buckets and their order depend only on the parameters, not on the order
// in which gradients are ready, so all ranks send the same. Buckets travel by Group::background(), so a backward pass
// may call the group itself, at any time on any rank.
class GradientSum {
 public:
  // Bytes: what a backward leaves to be sent behind it is the last bucket, and each costs messages to every rank, however small.
  static constexpr int64_t bucket_for(int ranks) {
    return std::clamp(int64_t{ranks} << 18, int64_t{4} << 20, int64_t{25} << 20);
  }

  GradientSum(distributed::Group& group, std::vector<Tensor> parameters)
      : GradientSum(group, std::move(parameters), bucket_for(group.size())) {}
  GradientSum(distributed::Group& group, std::vector<Tensor> parameters, int64_t bucket);
  // Waits for the buckets that were handed over. A child of fork() does not wait: it does not have the thread.
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  // Says that the gradient of parameter i is complete. A bucket is handed to the sending thread when its gradients and
  // the gradients in all earlier buckets are complete; a GPU's buckets wait for finish(). Throws the error of the
  // sending thread, and in a child of fork().
  void complete(size_t i);
  // The rest is sent. The parameters get the gradients of all ranks, added (Group::all_reduce); one that is undefined adds nothing, and
  // stays so where it is on all ranks. parts: of all parts of this rank, as many on each, in place of those that the parameters have.
  void finish(std::vector<std::vector<Tensor>> parts = {});

 private:
  struct Bucket {
    std::vector<size_t> members;  // numbers of parameters
    size_t missing;
    std::vector<std::vector<Tensor>> parts;  // what is sent
  };
  void fill(Bucket& bucket, const std::vector<std::vector<Tensor>>& parts);
  void send();   // of the thread
  void close();  // ends it

  distributed::Group &group_, &background_;
  const std::vector<Tensor> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // of each parameter
  std::vector<int64_t> flags_;     // how many gradients of each this rank has
  struct Sender {
    std::thread thread;
    HomeProcess home;
    std::mutex mutex;  // of what follows, and of handed_
    std::condition_variable changed;
    bool closed = false;
    std::exception_ptr error;
  };
  std::unique_ptr<Sender> sender_;  // none: nothing was handed over
  size_t handed_ = 0;               // buckets
};

}  // namespace isonorm::training
