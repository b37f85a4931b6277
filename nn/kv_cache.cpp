#include "nn/kv_cache.h"

#include "autograd/ops/create.h"
#include "autograd/ops/index.h"
#include "autograd/ops/shape.h"

namespace isonorm::nn {

void KeyValues::append(const Tensor& more_keys, const Tensor& more_values) {
  keys = keys.defined() ? cat({keys, more_keys}, 2) : more_keys;
  values = values.defined() ? cat({values, more_values}, 2) : more_values;
}

BlockCache& DecodingCache::of(size_t block) {
  if (block >= blocks_.size()) blocks_.resize(block + 1);
  return blocks_[block];
}

void DecodingCache::choose(std::span<const int64_t> rows) {
  if (time() == 0) return;
  const Tensor& like = blocks_[0].own.keys;
  const auto n = static_cast<int64_t>(rows.size());
  bool as_they_are = n == like.size(0);
  for (int64_t i = 0; i < n; ++i) as_they_are = as_they_are && rows[static_cast<size_t>(i)] == i;
  if (as_they_are) return;
  const Tensor chosen = to(from_span(rows, {n}), like.device());
  for (BlockCache& block : blocks_)
    for (Tensor* t : {&block.own.keys, &block.own.values, &block.encoded.keys, &block.encoded.values})
      if (t->defined()) *t = index_select(*t, 0, chosen);
}

}  // namespace isonorm::nn
