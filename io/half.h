// F16 (binary16) in files. No tensor has it: its numbers are held in f32, which has all of them.
// Source: IEEE 754-2019, 3.4 and 4.3.1.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/lazy_state.h"
#include "io/safetensors.h"

namespace isonorm::io {

inline constexpr std::string_view kHalf = "F16";  // as TensorEntry::foreign has it

// Elements that are held as bytes, u8 [.., 2] (TensorEntry), in f32 [..].
Tensor from_half(const Tensor& bytes);
// And back, of f32 [..] whose numbers are all those of F16; of NaN the upper bits.
Tensor to_half(const Tensor& x);

// Dtypes of tensors that are held as bytes (TensorEntry::foreign), by name.
using ForeignTypes = std::map<std::string, std::string>;

// A tensor of a file becomes one of the state; of F16 as from_half() gives it, and among `half`.
void add_entry(LazyState& state, ForeignTypes& foreign, const std::string& name, const TensorEntry& entry);
// What the state has for what the file has.
Tensor held(const TensorEntry& entry, const Tensor& stored);

// What a file is to hold of a state: its entries in order, and each tensor as it is stored.
struct FileContent {
  std::vector<TensorEntry> entries;
  std::function<Tensor(const std::string& name)> read;
};
FileContent content_of(const LazyState& state, const ForeignTypes& foreign = {});

// The state with every floating tensor rounded to the format as it is read (rounded()); as it is where there is none.
LazyState in_format(LazyState state, std::optional<NumberFormat> format);

}  // namespace isonorm::io
