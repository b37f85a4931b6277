// All slots of core/kernels; a test compares this list with the headers.
#pragma once

#include <string>

#include "core/kernels/attention.h"
#include "core/kernels/checks.h"
#include "core/kernels/copy.h"
#include "core/kernels/create.h"
#include "core/kernels/images.h"
#include "core/kernels/index.h"
#include "core/kernels/loss.h"
#include "core/kernels/matmul.h"
#include "core/kernels/mlp.h"
#include "core/kernels/norm.h"
#include "core/kernels/optimizer.h"
#include "core/kernels/pointwise.h"
#include "core/kernels/random.h"
#include "core/kernels/recurrent.h"
#include "core/kernels/reduce.h"

namespace isonorm::test {

// Calls f.operator()<slot>() for each slot.
template <class F> void for_all_slots(F f) {
  using namespace kernels;
  const auto each = [&]<auto&... slot>() { (f.template operator()<slot>(), ...); };
  each.template
  operator()<attention_forward, attention_backward, copy_on, round_each, fill_on, ramp, kernels::dropout, check_ids,
             check_weights, take_rows, add_rows, kernels::gather, gather_backward, kernels::scatter, kernels::topk,
             search_sorted, kernels::cross_entropy, cross_entropy_backward, cross_entropy_and_gradient,
             cross_entropy_scale, cross_entropy_total, kernels::matmul, weight_gradient, kernels::keep_packed,
             mlp_forward, mlp_backward, norm_forward, norm_backward, group_norm_forward, group_norm_backward,
             kernels::update, sum_squares, kernels::scale, kernels::clamp, kernels::clip_numbers, trust_ratios, unary,
             unary_backward, binary, compare, kernels::where, kernels::uniform, normal, kernels::exponential,
             kernels::bernoulli, random_integers, kernels::truncated_normal, random_permutation, kernels::gru_step,
             gru_step_backward, kernels::lstm_step, lstm_step_backward, reduce, arg_max, kernels::cumsum,
             kernels::recentre, sum_blocks, kernels::rotary, im2col, col2im, convolve, filter_gradient, max_pool,
             max_pool_backward, avg_pool, avg_pool_backward, resample, triangle, kernels::softmax, softmax_backward>();
}

// "matmul" for kernels::matmul: the unique name in the source. In messages several slots may share a name.
template <auto& slot> std::string name_of_slot() {
  const std::string here = __PRETTY_FUNCTION__;  // "... slot = isonorm::kernels::matmul]"
  const size_t begin = here.find("kernels::", here.find("slot = ")) + 9;
  return here.substr(begin, here.find_first_of(";]", begin) - begin);
}

}  // namespace isonorm::test
