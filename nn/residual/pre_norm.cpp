#include "nn/residual/pre_norm.h"

namespace isonorm::nn {

Tensor PreNorm::read(Residual& r) { return (*this)(r, precision().branch_dtype(r.sum.dtype())); }

void PreNorm::join(Residual& r, const Tensor& branch) { r += branch; }

template BlockConnections block_of<PreNorm>(int64_t, const ConnectionOptions&, const BlockPlace&);
template std::unique_ptr<Connection> last_of<PreNorm>(int64_t, const ConnectionOptions&);

}  // namespace isonorm::nn
