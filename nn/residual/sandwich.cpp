#include "nn/residual/sandwich.h"

namespace isonorm::nn {

Sandwich::Sandwich(const Stream& stream, StreamNormOptions o)
    : PreNorm(stream, o), after_(add("after", PreNorm(stream, o))) {
  check(!o.affine || stream.stored_width() == stream.width(), "sandwich: the gain behind the branch has ",
        stream.width(), " entries, the rows of ", name_of(stream.form()), " that it acts on ", stream.stored_width(),
        "; expected layer_norm or rms_norm, or norms without gain");
}

void Sandwich::join(Residual& r, const Tensor& branch) {
  Residual own{branch, {}};
  const Tensor rows = after_.read(own);
  PreNorm::join(r, after_.weight.defined() ? stream().map_writer(rows, -1) : rows);
}

}  // namespace isonorm::nn
