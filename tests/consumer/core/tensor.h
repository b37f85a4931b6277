// A user's own core/tensor.h: the library's headers must include theirs, not this one.
#pragma once
inline int users_own_tensor_header() { return 42; }
