// Reductions along columns: a block has 32 neighbouring columns x 8 threads. The threads of a column take its rows in
// turn.
#pragma once

#include "gpu/block.cuh"

namespace isonorm::gpu {

// Combines v of the 8 threads of a column in a fixed order; each gets the result. All threads of the block call
// it.
template <class F, class A> __device__ __forceinline__ A reduce_column(A v, F f = {}) {
  struct Room {
    A v[8][32];
  };
  Room& room = shared<Room>();
  __syncthreads();  // the previous reduction has been read
  room.v[warp()][lane()] = v;
  __syncthreads();
  v = room.v[0][lane()];
  for (int w = 1; w < 8; ++w) v = f(v, room.v[w][lane()]);
  return v;
}

}  // namespace isonorm::gpu
