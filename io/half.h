// F16 (binary16) in files. Tensor has no such dtype: the numbers are held in f32, which represents them all.
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

inline constexpr std::string_view kHalf = "F16";  // its name in TensorEntry::foreign

// Converts F16 elements, held as bytes u8 [.., 2] (TensorEntry), to f32 [..].
Tensor from_half(const Tensor& bytes);
// The inverse. Every number of x, f32 [..], must be representable in F16. NaN keeps the upper bits of its payload.
Tensor to_half(const Tensor& x);

// Tensors that are held as bytes: name -> TensorEntry::foreign.
using ForeignTypes = std::map<std::string, std::string>;

// Adds a tensor of a file to the outline of `state`. F16 becomes f32, and its name goes into state.half. The names of
// other foreign dtypes go into `foreign`.
void add_entry(LazyState& state, ForeignTypes& foreign, const std::string& name, const TensorEntry& entry);
// Converts a tensor as stored in the file to the form that the state holds.
Tensor held(const TensorEntry& entry, const Tensor& stored);

// The content of a file to write: its entries in order, and a function that gives each tensor in its stored form.
struct FileContent {
  std::vector<TensorEntry> entries;
  std::function<Tensor(const std::string& name)> read;
};
FileContent content_of(const LazyState& state, const ForeignTypes& foreign = {});

// The state with every floating tensor rounded to the format when it is read (rounded()). Without a format, the state
// unchanged.
LazyState in_format(LazyState state, std::optional<NumberFormat> format);

}  // namespace isonorm::io
