#include "autograd/fusion.h"

namespace isonorm {
namespace {
thread_local bool reference_wanted = false;
}

bool use_reference() { return reference_wanted; }
UseReference::UseReference() : before_(reference_wanted) { reference_wanted = true; }
UseReference::~UseReference() { reference_wanted = before_; }

}  // namespace isonorm
