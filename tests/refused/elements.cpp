// Element types that tensors do not have: each case is refused with its sentence (run.sh).
#include "core/tensor.h"

using namespace isonorm;

// A case is one line, which run.sh reads.
// clang-format off

int* blob();
const float* constant();
std::vector<const char*> words();

#if REFUSED == 1  // the elements of tensors are float, double, bf16, int64_t or uint8_t: ask for int64_t instead of other integers
const int* refused(const Tensor& x) { return x.data<int>(); }
#elif REFUSED == 2  // for uint8_t instead of bool; x.to_vector<T>() converts to any number
bool* refused(const Tensor& x) { return x.mutable_data<bool>(); }
#elif REFUSED == 3  // the elements of tensors are float, double, bf16, int64_t or uint8_t
Tensor refused() { return from_blob(blob(), {2, 3}); }
#elif REFUSED == 4  // from_blob: tensors can be written to, so the pointer must not be one to const
Tensor refused() { return from_blob(constant(), {2, 3}); }
#elif REFUSED == 5  // a tensor is made of numbers: float, double, bf16, bool or an integer type, or lists of them
Tensor refused() { return from_vector(words(), {2}); }
#elif REFUSED == 6  // from_span: the values are lists, not numbers; tensor(lists) takes these
Tensor refused(const std::vector<std::vector<float>>& rows) { return from_vector(rows, {2, 3}); }
#endif
