#include "data/ahead.h"

#include "core/memory/upload.h"
#include "data/prefetch.h"

namespace isonorm::data {

using Uploads = std::pair<std::unique_ptr<Upload>, std::unique_ptr<Upload>>;

struct Ahead::Coming : Prefetch<Uploads> {
  using Prefetch::Prefetch;
};

Ahead::Ahead(std::function<Pair(int64_t)> make, int batches, Device device)
    : coming_(std::make_unique<Coming>(
          [make = std::move(make), device](int64_t step) {
            const auto [x, y] = make(step);
            return Uploads{upload(x, device), upload(y, device)};
          },
          batches)) {}
Ahead::~Ahead() = default;

Ahead::Pair Ahead::next() {
  const Uploads c = coming_->next();
  return {c.first->take(), c.second->take()};
}
void Ahead::seek(int64_t step) { coming_->seek(step); }
int64_t Ahead::step() const { return coming_->position(); }

}  // namespace isonorm::data
