// State dicts of PyTorch modules: names and layouts of parameters there and here.
#pragma once

#include "nn/module.h"

namespace isonorm::nn {

// The state dict of a PyTorch module as the state of `module`, which has the same layers under the same names:
//   net.load_state_dict(nn::from_torch(net, load_state("net.safetensors")));
//
//   PyTorch                                     here
//   Conv2d.weight [out, in, height, width]      weight [out, height, width, in]
//   Conv1d.weight [out, in, kernel]             weight [out, kernel, in]
//   ConvTranspose2d.weight [in, out, h, w]      weight [in, h, w, out]
//   LSTM, GRU: weight_ih_l0, weight_hh_l0       forward0.input.weight, forward0.recurrent.weight
//              bias_ih_l0_reverse               backward0.input.bias
//   MultiheadAttention: in_proj_weight          qkv.weight; of CrossAttention q.weight and kv.weight
//                       out_proj.weight         proj.weight
//   TransformerEncoderLayer: self_attn          attn; linear1 and linear2: mlp.fc1 and mlp.fc2
//   TransformerEncoder: layers.0                0
//   TransformerDecoderLayer: multihead_attn, norm2, norm3   cross, cross_norm, norm2
//   BatchNorm.num_batches_tracked               (absent)
//
// Other names stay, even if `module` does not have them: load_state_dict() reports them. Throws, naming the tensor, if
// a tensor's rank or number of rows differs from PyTorch's.
//
// A Linear layer after a flattened picture [channels, height, width] has its columns in that order. Here pictures are
// [height, width, channels]: load w.reshape({out, channels, height, width}).permute({0, 2, 3, 1}).reshape({out, -1}).
TensorMap from_torch(const Module& module, const TensorMap& state);

// The reverse: the module's parameters and buffers under PyTorch's names and in its layouts, for load_state_dict()
// there. num_batches_tracked is 0. Tensors of the same layout share storage with the module's. The map is_torch().
//   save_safetensors("net.safetensors", nn::to_torch(net));
TensorMap to_torch(const Module& module);

// The names of the weights of convolutions, which have another layout in PyTorch. load_state_dict() refuses them in a
// map that is_torch().
std::vector<std::string> convolution_weights(const Module& module);

// Advice for a state that does not fit `module`, as the end of a sentence: "; their names begin with 'module.', which
// ...", "; they are PyTorch's, which ...", both, or "".
std::string remedy_for(const Module& module, const TensorMap& state);

}  // namespace isonorm::nn
