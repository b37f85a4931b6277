// The functions that start_cuda() binds to the slots of core/kernels, by source file, and access to the bytes of
// tensors for kernels.
#pragma once

#include <cstdint>
#include <span>

#include "core/kernels/attention.h"
#include "core/kernels/checks.h"
#include "core/kernels/images.h"
#include "core/kernels/index.h"
#include "core/kernels/loss.h"
#include "core/kernels/mlp.h"
#include "core/kernels/norm.h"
#include "core/kernels/optimizer.h"
#include "core/kernels/pointwise.h"
#include "core/kernels/recurrent.h"
#include "core/kernels/reduce.h"
#include "core/memory/link.h"
#include "core/random.h"
#include "core/tensor.h"

namespace isonorm::gpu {

template <class T> T* write(const Tensor& t) { return t.mutable_data<T>(); }
template <class T> T* write_or_null(const Tensor& t) { return t.defined() ? t.mutable_data<T>() : nullptr; }
template <class T> const T* read_or_null(const Tensor& t) { return t.defined() ? t.data<T>() : nullptr; }
// True if all pointers are multiples of 16 bytes or null.
inline bool aligned(const auto*... p) { return ((reinterpret_cast<uintptr_t>(p) % 16 == 0) && ...); }

// steps/checks.cu
void check_ids(const Tensor& ids, const kernels::IdCheck& check);
void check_weights(const kernels::WeightCheck& check);

// kernels/copy.cu
void copy(const Tensor& dst, const Tensor& src);
void round_each(std::span<const Tensor> dst, std::span<const Tensor> src);

// kernels/create.cu
void fill(const Tensor& dst, double value);
void ramp(const Tensor& out, double begin, double step);
void triangle(const Tensor& out, const Tensor& x, int64_t diagonal, bool lower);

// kernels/unary.cu
void unary(int op, const Tensor& out, const Tensor& x, kernels::Numbers numbers);
void unary_backward(int op, const Tensor& dx, const Tensor& g, const Tensor& saved, kernels::Numbers numbers);

// kernels/binary.cu
void binary(int op, const Tensor& out, const Tensor& a, const Tensor& b);
void compare(int op, const Tensor& out, const Tensor& a, const Tensor& b);
void where(const Tensor& out, const Tensor& condition, const Tensor& a, const Tensor& b);

// kernels/random.cu
void uniform(const Tensor& out, double lo, double hi, Generator state);
void normal(const Tensor& out, double mean, double deviation, Generator state);
void exponential(const Tensor& out, Generator state);
void truncated_normal(const Tensor& out, double mean, double deviation, double lo, double hi, Generator state);
void bernoulli(const Tensor& out, double p, Generator state);
void random_integers(const Tensor& out, int64_t lo, int64_t hi, Generator state);
void random_permutation(const Tensor& out, Generator state);
void dropout(const Tensor& out, const Tensor& x, double p, Generator state);

// kernels/group_norm.cu
void group_norm_forward(const kernels::GroupNormShape& shape, const kernels::GroupNormOutputs& out,
                        const kernels::GroupNormInputs& in);
void group_norm_backward(const kernels::GroupNormShape& shape, const kernels::GroupNormGradients& out,
                         const kernels::GroupNormSaved& in);

// kernels/conv.cu
void im2col(const kernels::WindowShape& shape, int64_t first, const Tensor& columns, const Tensor& x);
void col2im(const kernels::WindowShape& shape, int64_t first, const Tensor& dx, const Tensor& columns);

// kernels/pool.cu
void max_pool(const kernels::WindowShape& shape, const Tensor& y, const Tensor& place, const Tensor& x);
void max_pool_backward(const kernels::WindowShape& shape, const Tensor& dx, const Tensor& dy, const Tensor& place);
void avg_pool(const kernels::WindowShape& shape, const Tensor& y, const Tensor& x);
void avg_pool_backward(const kernels::WindowShape& shape, const Tensor& dx, const Tensor& dy);

// kernels/rotary.cu
void rotary(kernels::RotaryShape shape, const Tensor& y, const Tensor& x, const Tensor& cosine, const Tensor& sine);

// kernels/index.cu
void take_rows(kernels::IndexShape shape, const Tensor& out, const Tensor& x, const Tensor& ids);
void add_rows(kernels::IndexShape shape, const Tensor& dx, const Tensor& g, const Tensor& ids);
void gather(kernels::IndexShape shape, const Tensor& out, const Tensor& x, const Tensor& index);
void gather_backward(kernels::IndexShape shape, const Tensor& dx, const Tensor& g, const Tensor& index);
void scatter(kernels::IndexShape shape, const Tensor& y, const Tensor& src, const Tensor& index);

// kernels/loss.cu
void cross_entropy(const Tensor& losses, const Tensor& stats, const Tensor& logits, const Tensor& target,
                   kernels::CrossEntropySpec spec);
void cross_entropy_backward(const Tensor& dlogits, const Tensor& g, const Tensor& logits, const Tensor& target,
                            const Tensor& stats, kernels::CrossEntropySpec spec);
void cross_entropy_and_gradient(const Tensor& losses, const Tensor& dlogits, const Tensor& g, const Tensor& logits,
                                const Tensor& target, kernels::CrossEntropySpec spec);
void cross_entropy_scale(const Tensor& scale, const Tensor& target, int64_t ignored, bool mean);
void cross_entropy_total(const Tensor& total, const Tensor& losses, const Tensor& scale);

// kernels/norm.cu, kernels/norm_backward.cu
void norm_forward(const NormSpec& spec, const kernels::NormOutputs& out, const kernels::NormInputs& in);
void norm_backward(const NormSpec& spec, const kernels::NormGradients& out, const kernels::NormSaved& in);

// kernels/order.cu
void arg_max(kernels::ReduceShape shape, const Tensor& index, const Tensor& x);
void topk(const Tensor& index, const Tensor& x);
void search_sorted(const Tensor& out, const Tensor& sorted, const Tensor& values);

// kernels/reduce.cu
void reduce(kernels::ReduceOp kind, kernels::ReduceShape shape, const Tensor& out, const Tensor& x);
void cumsum(kernels::ReduceShape shape, const Tensor& out, const Tensor& x, bool reverse);
void recentre(kernels::ReduceShape shape, const Tensor& out, const Tensor& x);
void sum_blocks(const Tensor& out, const Tensor& blocks, int64_t parts, int64_t ranks);

// kernels/softmax.cu
void softmax(const Tensor& out, const Tensor& x, bool log);
void softmax_backward(const Tensor& dx, const Tensor& g, const Tensor& y, bool log);

// kernels/attention.cu
void attention_forward(kernels::AttentionSpec spec, const Tensor& out, const kernels::AttentionSums& sums,
                       const kernels::AttentionInputs& in);
void attention_backward(kernels::AttentionSpec spec, const kernels::AttentionGradients& out,
                        const kernels::AttentionSaved& saved);

// kernels/attention_bf16.cu: false if neither cuDNN nor our own kernels can compute this
bool attention_forward_bf16(kernels::AttentionSpec spec, const Tensor& out, const Tensor& lse,
                            const kernels::AttentionInputs& in);
bool attention_backward_bf16(kernels::AttentionSpec spec, const kernels::AttentionGradients& out,
                             const kernels::AttentionSaved& saved);

// kernels/optimizer.cu
void update(std::span<const kernels::Update> updates);
void sum_squares(std::span<const Tensor> tensors, const Tensor& sums);
void scale(std::span<const Tensor> tensors, double factor);
void clamp(std::span<const Tensor> tensors, double limit);

// steps/scalars.cu
void clip_numbers(const Tensor& out, const Tensor& sums, double max_norm);
void trust_ratios(const Tensor& out, const Tensor& sums, std::span<const kernels::TrustRatio> ratios,
                  const Tensor& gradient_factor);

// libraries/blas.cpp
void matmul(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& from);
void weight_gradient(const Tensor& dw, const Tensor& db, const Tensor& dy, const Tensor& x, bool add);
void keep_packed(const Tensor& w);

// libraries/nccl.cpp
const Links* nccl_links();

// kernels/recurrent.cu
void gru_step(const kernels::GruOutputs& out, const kernels::GruInputs& in);
void gru_step_backward(const kernels::GruGradients& out, const Tensor& dy, const Tensor& kept, const Tensor& h);
void lstm_step(const kernels::LstmOutputs& out, const kernels::LstmInputs& in, bool gate);
void lstm_step_backward(const kernels::LstmGradients& out, const kernels::LstmSaved& in, bool gate);

// kernels/mlp.cu
void mlp_forward(const Tensor& y, const Tensor& h, const Tensor& x, const kernels::MlpWeights& weights, bool tanh_form);
void mlp_backward(const Tensor& dx, const Tensor& dh, const Tensor& activated, const Tensor& h, const Tensor& dy,
                  const kernels::MlpWeights& weights, bool tanh_form);

}  // namespace isonorm::gpu
