// Differentiable collectives for modules and objectives. Every rank calls them in the same order, in the backward too.
// The group must outlive the graph. All throw what distributed::Group throws, including if the ranks' tensors differ in
// dtype or size.
#pragma once

#include "core/tensor.h"
#include "distributed/group.h"

namespace isonorm::parallel {

// The sum over all ranks' x, a new tensor outside the graph; for a hook on a gradient.
Tensor all_reduced(const Tensor& x, distributed::Group& group);

// The sum of the ranks' parts (of the same shape), on every rank. The backward passes the gradient unchanged. (g of
// Shoeybi et al., Megatron-LM, 1909.08053, section 3.)
Tensor sum_of_parts(const Tensor& part, distributed::Group& group);
// x itself, the same on all ranks but used differently by each. The backward sums the ranks' gradients. (f of
// 1909.08053.)
Tensor shared_by_ranks(const Tensor& x, distributed::Group& group);

// x is the same on all ranks. Returns this rank's slice along `dim`, cut into equal parts. The backward gathers the
// gradients. Throws if the ranks do not divide the dimension.
Tensor own_part(const Tensor& x, int dim, distributed::Group& group);
// All ranks' parts, concatenated along `dim`; each rank uses the result differently. The backward is a reduce-scatter:
// gradients are summed, and each rank gets its part. sum_of_own_part() is the converse. (Korthikanti et al.,
// 2205.05198, section 4.2.2.) known: the result, if every rank has it already.
Tensor gathered_parts(const Tensor& part, int dim, distributed::Group& group, const Tensor& known = {});
// The same concatenation if all ranks use it in the same way: the backward takes this rank's part of the gradient.
Tensor whole_of_parts(const Tensor& part, int dim, distributed::Group& group);
// This rank's slice along `dim` of the sum over all ranks' x. The backward gathers the gradients. Throws if the ranks
// do not divide the dimension.
Tensor sum_of_own_part(const Tensor& x, int dim, distributed::Group& group);

}  // namespace isonorm::parallel
