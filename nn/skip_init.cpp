#include "nn/skip_init.h"

#include <utility>

namespace isonorm::nn {
namespace {
thread_local bool skips_init = false;
}  // namespace

SkipInit::SkipInit(bool on) : before_(std::exchange(skips_init, on)) {}
SkipInit::~SkipInit() { skips_init = before_; }
bool SkipInit::is_on() { return skips_init; }

}  // namespace isonorm::nn
