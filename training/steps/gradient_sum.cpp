#include "training/steps/gradient_sum.h"

#include <utility>

#include "autograd/engine.h"
#include "core/kernels/copy.h"
#include "core/memory/bytes.h"
#include "core/system/parallel.h"
#include "core/system/start_thread.h"

namespace isonorm::training {

std::vector<Tensor> taken_gradients(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> gradients;
  for (const Tensor& p : parameters) gradients.push_back(p.grad()), set_grad(p, {});
  return gradients;
}

GradientSum::GradientSum(distributed::Group& group, std::vector<Tensor> parameters, int64_t bucket)
    : group_(group),
      background_(group.background()),
      parameters_(std::move(parameters)),
      bucket_of_(parameters_.size()),
      flags_(parameters_.size()) {
  int64_t bytes = 0;
  for (size_t i = parameters_.size(); i-- > 0;) {
    const Tensor& p = parameters_[i];
    if (!requires_grad(p)) continue;
    if (buckets_.empty() || bytes + byte_size(p) > bucket ||
        p.dtype() != parameters_[buckets_.back().members[0]].dtype())
      buckets_.push_back({{}, 0, {}}), bytes = 0;
    bytes += byte_size(p);
    bucket_of_[i] = buckets_.size() - 1;
    buckets_.back().members.push_back(i), ++buckets_.back().missing;
  }
}

GradientSum::~GradientSum() {
  if (sender_ && sender_->home.is_elsewhere())
    sender_.release();  // leaks the Sender: a child process has no such thread
  else
    close();
}

void GradientSum::fill(Bucket& bucket, const std::vector<std::vector<Tensor>>& parts) {
  for (const std::vector<Tensor>& part : parts) {
    std::vector<Tensor>& sent = bucket.parts.emplace_back();
    for (size_t i : bucket.members) {
      Tensor g = part[i];
      flags_[i] += g.defined();
      if (!g.defined()) kernels::fill(g = empty_like(parameters_[i]), 0);
      sent.push_back(std::move(g));
    }
  }
}

void GradientSum::complete(size_t i) {
  if (!requires_grad(parameters_[i]) || parameters_[i].device() != kCpu) return;
  --buckets_[bucket_of_[i]].missing;
  size_t ready = handed_;  // only this thread changes handed_
  for (; ready < buckets_.size() && buckets_[ready].missing == 0; ++ready) {
    std::vector<Tensor> gradients(parameters_.size());
    for (size_t k : buckets_[ready].members) gradients[k] = parameters_[k].grad();
    fill(buckets_[ready], {gradients});
  }
  if (ready == handed_) return;
  if (!sender_) sender_ = std::make_unique<Sender>();
  sender_->home.check_here("sum of gradients");
  {
    const std::lock_guard lock(sender_->mutex);
    if (sender_->error) std::rethrow_exception(sender_->error);
    handed_ = ready;
  }
  sender_->thread.joinable() ? sender_->changed.notify_all() : void(sender_->thread = start_thread([this] { send(); }));
}

void GradientSum::send() try {
  set_num_threads(1);  // the other threads compute
  for (size_t next = 0;; ++next) {
    {
      std::unique_lock lock(sender_->mutex);
      sender_->changed.wait(lock, [&] { return handed_ > next || sender_->closed; });
      if (handed_ == next) return;
    }
    background_.all_reduce(buckets_[next].parts);
  }
} catch (...) {
  const std::lock_guard lock(sender_->mutex);
  sender_->error = std::current_exception();
}

void GradientSum::close() {
  if (!sender_ || !sender_->thread.joinable()) return;
  {
    const std::lock_guard lock(sender_->mutex);
    sender_->closed = true;
  }
  sender_->changed.notify_all();
  sender_->thread.join();
}

void GradientSum::finish(std::vector<std::vector<Tensor>> parts) {
  if (sender_) sender_->home.check_here("sum of gradients");
  if (buckets_.empty()) return;
  if (parts.empty()) parts.push_back(taken_gradients(parameters_));
  for (size_t next = handed_; next < buckets_.size(); ++next) fill(buckets_[next], parts);
  // A collective first: it fails if a rank still calls the group in its backward. Such a rank would wait for this one,
  // and the sums would wait for it.
  const Tensor have = from_vector(flags_, {std::ssize(flags_)});
  group_.all_reduce(have);
  close();
  if (sender_ && sender_->error) std::rethrow_exception(sender_->error);
  for (size_t next = handed_; next < buckets_.size(); ++next) background_.all_reduce(buckets_[next].parts);
  for (const Bucket& bucket : buckets_)
    for (size_t k = 0; k < bucket.members.size(); ++k) {
      const size_t i = bucket.members[k];
      set_grad(parameters_[i], have.data<int64_t>()[i] > 0 ? bucket.parts[0][k] : Tensor());
    }
}

}  // namespace isonorm::training
