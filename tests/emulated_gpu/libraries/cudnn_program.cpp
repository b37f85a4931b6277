#include "tests/emulated_gpu/libraries/cudnn_program.h"

#include <algorithm>
#include <cmath>

#include "core/dtype.h"

namespace isonorm::gpu::emulated {
namespace {

size_t offset(const TensorInfo& t, const Index& i) {
  int64_t sum = 0;
  for (size_t d = 0; d < 4; ++d) sum += t.size[d] == 1 ? 0 : i[d] * t.stride[d];
  return static_cast<size_t>(sum);
}

template <class F> void for_each(const Index& size, F f) {
  for (int64_t a = 0; a < size[0]; ++a)
    for (int64_t b = 0; b < size[1]; ++b)
      for (int64_t c = 0; c < size[2]; ++c)
        for (int64_t d = 0; d < size[3]; ++d) f(Index{a, b, c, d});
}

double by_element(int mode, int64_t axis, const Index& i, double x, double b, double t) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b;
    case CUDNN_POINTWISE_GEN_INDEX:
      return static_cast<double>(i[static_cast<size_t>(axis)]);
    case CUDNN_POINTWISE_BINARY_SELECT:
      return t != 0 ? x : b;
    default:
      return x;
  }
}

}  // namespace

double Values::get(const Index& i) const {
  const size_t k = offset(*info, i);
  if (own) return own->at(k);
  if (info->type == CUDNN_DATA_BFLOAT16) return static_cast<float>(static_cast<const bf16*>(at)[k]);
  return static_cast<const float*>(at)[k];
}

void Values::put(const Index& i, double v) const {
  const size_t k = offset(*info, i);
  const auto wide = static_cast<float>(v);
  const bool half = info->type == CUDNN_DATA_BFLOAT16;
  if (own)
    own->at(k) = half ? static_cast<float>(bf16(wide)) : wide;
  else if (half)
    static_cast<bf16*>(at)[k] = bf16(wide);
  else
    static_cast<float*>(at)[k] = wide;
}

void run(const Program& program, std::vector<Values> places) {
  for (const Step& s : program.steps) {
    const auto place = [&](int n) -> Values& { return places[static_cast<size_t>(n)]; };
    Values& y = place(s.y);
    const Values& x = place(s.x);
    if (s.kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      y.at = x.at, y.own = x.own;
      continue;
    }
    const int64_t depth = x.info->size[3];
    for_each(y.info->size, [&](const Index& i) {
      double v = 0;
      if (s.kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
        // The real library accumulates into f32 tensors of the caller.
        if (!y.own && y.info->type == CUDNN_DATA_FLOAT) v = y.get(i);
        for (int64_t k = 0; k < depth; ++k) v += x.get({i[0], i[1], i[2], k}) * place(s.b).get({i[0], i[1], k, i[3]});
      } else if (s.kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) {
        const bool most = s.mode == CUDNN_REDUCE_TENSOR_MAX;
        v = most ? -HUGE_VAL : 0;
        for (int64_t k = 0; k < depth; ++k) {
          const double e = x.get({i[0], i[1], i[2], k});
          v = most ? std::max(v, e) : v + e;
        }
      } else {
        v = by_element(s.mode, s.axis, i, x.get(i), s.b < 0 ? 0 : place(s.b).get(i), s.t < 0 ? 0 : place(s.t).get(i));
      }
      y.put(i, v);
    });
  }
}

}  // namespace isonorm::gpu::emulated
