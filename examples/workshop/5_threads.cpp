#include "examples/workshop/5_threads.h"

#include "examples/workshop/4_lanes.h"

namespace isonorm::workshop::threads {

template <Isa I> void forward(const NormSpec& spec, const NormOutputs& out, const NormInputs& in) {
  const int64_t rows = in.x.size(0), w = in.x.size(1);
  const float *x = in.x.data<float>(), *gain = in.gain.data<float>(), *bias = in.bias.data<float>();
  float *y = out.y.mutable_data<float>(), *stats = out.stats.mutable_data<float>();
  parallel_for(row_blocks(rows, w), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      forward_row(y + r * w, stats + 2 * r, x + r * w, gain, bias, w, static_cast<float>(spec.eps));
  });
}

template <Isa I> void backward(const NormSpec&, const NormGradients& out, const NormSaved& in) {
  const int64_t rows = in.x.size(0), w = in.x.size(1);
  const float *x = in.x.data<float>(), *dy = in.dy.data<float>(), *stats = in.stats.data<float>();
  const float* gain = in.gain.data<float>();
  float *dx = out.dx.mutable_data<float>(), *to_gain = out.dgain.mutable_data<float>(),
        *to_bias = out.dbias.mutable_data<float>();
  summed_blocks(rows, w, to_gain, to_bias, [&](int64_t begin, int64_t end, float* dgain, float* dbias) {
    for (int64_t r = begin; r < end; ++r)
      backward_row(dx + r * w, dgain, dbias, dy + r * w, x + r * w, stats + 2 * r, gain, w);
  });
}

template void forward<kTarget>(const NormSpec&, const NormOutputs&, const NormInputs&);
template void backward<kTarget>(const NormSpec&, const NormGradients&, const NormSaved&);

}  // namespace isonorm::workshop::threads
