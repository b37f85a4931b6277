// CUDA's keywords, which mean nothing to a host compiler: the only macros of gpu/.
#pragma once

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
