// Internal: sums gradients over the ranks bucket by bucket, during the backward (Li et al., 2006.15704, section 3.2).
#pragma once

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/system/start_thread.h"
#include "distributed/group.h"

namespace isonorm::training {

// Takes the gradients out of the parameters, which have none afterwards.
std::vector<Tensor> taken_gradients(const std::vector<Tensor>& parameters);

// Sums all gradients over the ranks once. A bucket holds at most bucket_for() bytes or one parameter; buckets take the
// parameters that require a gradient in reverse order. Buckets and their order depend only on the parameters, not on
// the order of the gradients' arrival, so all ranks send the same buckets. Buckets travel by Group::background(), so a
// backward may call the group itself, at any time on any rank.
class GradientSum {
 public:
  // Bytes of a bucket. With small buckets less is left to send after the backward, but every bucket costs messages to
  // each rank.
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

  // Reports that the gradient of parameter i is complete. A bucket goes to the sending thread when its gradients and
  // the gradients in all earlier buckets are complete; the buckets of a GPU wait for finish(). Throws the error of the
  // sending thread, and throws in a child of fork().
  void complete(size_t i);
  // Sends the remaining buckets. The parameters get the gradients summed over the ranks (Group::all_reduce). An
  // undefined gradient adds nothing, and a gradient that is undefined on all ranks stays undefined. parts: the
  // gradients of this rank's micro-batches, equally many on each rank; they are summed instead of the gradients of the
  // parameters.
  void finish(std::vector<std::vector<Tensor>> parts = {});

 private:
  struct Bucket {
    std::vector<size_t> members;  // indices of parameters
    size_t missing;
    std::vector<std::vector<Tensor>> parts;  // the gradients to send
  };
  void fill(Bucket& bucket, const std::vector<std::vector<Tensor>>& parts);
  void send();   // runs in the sending thread
  void close();  // ends the sending thread

  distributed::Group &group_, &background_;
  const std::vector<Tensor> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<size_t> bucket_of_;  // bucket index of each parameter
  std::vector<int64_t> flags_;     // number of defined gradients of each parameter on this rank
  struct Sender {
    std::thread thread;
    HomeProcess home;
    std::mutex mutex;  // guards the members below and handed_
    std::condition_variable changed;
    bool closed = false;
    std::exception_ptr error;
  };
  std::unique_ptr<Sender> sender_;  // null if nothing was handed over
  size_t handed_ = 0;               // number of buckets handed over
};

}  // namespace isonorm::training
