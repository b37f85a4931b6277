#include "data/row_loader.h"

#include "data/ahead.h"

namespace isonorm::data {

RowsAhead::RowsAhead(std::function<Rows(int64_t)> make, const RowLoaderOptions& o)
    : ahead_(std::make_unique<Ahead<Rows>>(std::move(make), o.prefetch, o.device)) {}
RowsAhead::~RowsAhead() = default;

RowsAhead::Rows RowsAhead::next() { return ahead_->next(); }
void RowsAhead::seek(int64_t step) { ahead_->seek(step); }
int64_t RowsAhead::step() const { return ahead_->step(); }

}  // namespace isonorm::data
