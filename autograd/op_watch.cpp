#include "autograd/op_watch.h"

namespace isonorm::autograd {
namespace {
thread_local const OpWatch* innermost_watch = nullptr;
}

OpWatch::OpWatch(See see) : see_(std::move(see)), outer_(innermost_watch) { innermost_watch = this; }
OpWatch::~OpWatch() { innermost_watch = outer_; }
const OpWatch* OpWatch::current() { return innermost_watch; }

}  // namespace isonorm::autograd
