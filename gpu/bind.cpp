// Binds the slots of core/kernels to the functions of a device: the only list.
#include "core/kernels/attention.h"
#include "core/kernels/checks.h"
#include "core/kernels/copy.h"
#include "core/kernels/create.h"
#include "core/kernels/images.h"
#include "core/kernels/loss.h"
#include "core/kernels/matmul.h"
#include "core/kernels/mlp.h"
#include "core/kernels/optimizer.h"
#include "core/kernels/pointwise.h"
#include "core/kernels/random.h"
#include "core/kernels/recurrent.h"
#include "core/memory/storage.h"
#include "gpu/device.h"
#include "gpu/memory.h"
#include "gpu/slots.h"
#include "gpu/steps/capture.h"
#include "gpu/stream.h"
#include "gpu/transfer.h"

namespace isonorm {
namespace {

// Marks of a profile are events in a device's stream. There are none during a capture, when nothing runs.
constexpr profile::DeviceClock kClock{.mark = [](Device device) -> profile::Mark {
                                        if (gpu::under_capture()) return nullptr;
                                        auto event = std::make_shared<gpu::Event>(device.index, true);
                                        event->record(gpu::stream_of(device));
                                        return event;
                                      },
                                      .seconds =
                                          [](const profile::Mark& from, const profile::Mark& to) {
                                            const auto* end = static_cast<const gpu::Event*>(to.get());
                                            end->wait();
                                            return end->seconds_since(*static_cast<const gpu::Event*>(from.get()));
                                          }};

}  // namespace

void start_cuda() {
  gpu::check_device({DeviceKind::cuda, 0});
  for (int i = 0; i < gpu::device_count(); ++i) {
    const Device device{DeviceKind::cuda, i};
    gpu::stream_of(device);
    bind_allocator(device, &gpu::device_allocator(device));
  }
  kernels::transfer = &gpu::transfer;
  profile::device_clock = &kClock;
  begin_upload = &gpu::begin_upload;
  links = gpu::nccl_links();

  kernels::copy_on.bind_cuda(&gpu::copy);
  kernels::round_each.bind_cuda(&gpu::round_each);
  kernels::fill_on.bind_cuda(&gpu::fill);
  kernels::ramp.bind_cuda(&gpu::ramp);
  kernels::triangle.bind_cuda(&gpu::triangle);

  kernels::unary.bind_cuda(&gpu::unary);
  kernels::unary_backward.bind_cuda(&gpu::unary_backward);
  kernels::binary.bind_cuda(&gpu::binary);
  kernels::compare.bind_cuda(&gpu::compare);
  kernels::where.bind_cuda(&gpu::where);

  kernels::uniform.bind_cuda(&gpu::uniform);
  kernels::normal.bind_cuda(&gpu::normal);
  kernels::exponential.bind_cuda(&gpu::exponential);
  kernels::truncated_normal.bind_cuda(&gpu::truncated_normal);
  kernels::bernoulli.bind_cuda(&gpu::bernoulli);
  kernels::random_integers.bind_cuda(&gpu::random_integers);
  kernels::random_permutation.bind_cuda(&gpu::random_permutation);
  kernels::dropout.bind_cuda(&gpu::dropout);

  kernels::rotary.bind_cuda(&gpu::rotary);
  kernels::group_norm_forward.bind_cuda(&gpu::group_norm_forward);
  kernels::group_norm_backward.bind_cuda(&gpu::group_norm_backward);
  kernels::im2col.bind_cuda(&gpu::im2col);
  kernels::col2im.bind_cuda(&gpu::col2im);
  kernels::max_pool.bind_cuda(&gpu::max_pool);
  kernels::max_pool_backward.bind_cuda(&gpu::max_pool_backward);
  kernels::avg_pool.bind_cuda(&gpu::avg_pool);
  kernels::avg_pool_backward.bind_cuda(&gpu::avg_pool_backward);

  kernels::gru_step.bind_cuda(&gpu::gru_step);
  kernels::gru_step_backward.bind_cuda(&gpu::gru_step_backward);
  kernels::lstm_step.bind_cuda(&gpu::lstm_step);
  kernels::lstm_step_backward.bind_cuda(&gpu::lstm_step_backward);

  kernels::check_ids.bind_cuda(&gpu::check_ids);
  kernels::check_weights.bind_cuda(&gpu::check_weights);
  kernels::take_rows.bind_cuda(&gpu::take_rows);
  kernels::add_rows.bind_cuda(&gpu::add_rows);
  kernels::gather.bind_cuda(&gpu::gather);
  kernels::gather_backward.bind_cuda(&gpu::gather_backward);
  kernels::scatter.bind_cuda(&gpu::scatter);
  kernels::topk.bind_cuda(&gpu::topk);
  kernels::search_sorted.bind_cuda(&gpu::search_sorted);

  kernels::cross_entropy.bind_cuda(&gpu::cross_entropy);
  kernels::cross_entropy_backward.bind_cuda(&gpu::cross_entropy_backward);
  kernels::cross_entropy_and_gradient.bind_cuda(&gpu::cross_entropy_and_gradient);
  kernels::cross_entropy_scale.bind_cuda(&gpu::cross_entropy_scale);
  kernels::cross_entropy_total.bind_cuda(&gpu::cross_entropy_total);

  kernels::norm_forward.bind_cuda(&gpu::norm_forward);
  kernels::norm_backward.bind_cuda(&gpu::norm_backward);

  kernels::reduce.bind_cuda(&gpu::reduce);
  kernels::arg_max.bind_cuda(&gpu::arg_max);
  kernels::cumsum.bind_cuda(&gpu::cumsum);
  kernels::recentre.bind_cuda(&gpu::recentre);
  kernels::sum_blocks.bind_cuda(&gpu::sum_blocks);

  kernels::softmax.bind_cuda(&gpu::softmax);
  kernels::softmax_backward.bind_cuda(&gpu::softmax_backward);

  kernels::attention_forward.bind_cuda(&gpu::attention_forward);
  kernels::attention_backward.bind_cuda(&gpu::attention_backward);
  kernels::update.bind_cuda(&gpu::update);
  kernels::sum_squares.bind_cuda(&gpu::sum_squares);
  kernels::scale.bind_cuda(&gpu::scale);
  kernels::clamp.bind_cuda(&gpu::clamp);
  kernels::clip_numbers.bind_cuda(&gpu::clip_numbers);
  kernels::trust_ratios.bind_cuda(&gpu::trust_ratios);

  kernels::matmul.bind_cuda(&gpu::matmul);
  kernels::weight_gradient.bind_cuda(&gpu::weight_gradient);
  kernels::keep_packed.bind_cuda(&gpu::keep_packed);
  kernels::mlp_forward.bind_cuda(&gpu::mlp_forward);
  kernels::mlp_backward.bind_cuda(&gpu::mlp_backward);
}

}  // namespace isonorm
