#include "equivalence/services/rotation.h"

#include <optional>
#include <string_view>

#include "core/printed.h"
#include "core/system/failures.h"
#include "core/system/foreign_text.h"
#include "streams/rotation.h"

namespace isonorm::services {
namespace {

using streams::Form;

constexpr std::string_view kHadamard = "hadamard:", kHaar = "haar:";

// The seed in "KIND:SEED"; none if the basis is of another kind.
std::optional<uint64_t> seed_of(std::string_view basis, std::string_view kind) {
  if (!basis.starts_with(kind)) return {};
  uint64_t seed = 0;
  if (!read_number(basis.substr(kind.size()), seed))
    throw UsageError(text("--basis: ", Shown{basis, '"'}, ", expected ", kind, "SEED with a whole number below 2^64"));
  return seed;
}

// The matrix Q [d, d].
Tensor basis_rotation(const std::string& basis, int64_t d) {
  if (const auto seed = seed_of(basis, kHadamard)) return streams::hadamard_rotation(d, *seed);
  if (const auto seed = seed_of(basis, kHaar)) return streams::haar_rotation(d, *seed);
  return streams::load_rotation(basis, d);
}

}  // namespace

std::string basis_file(const std::string& basis) {
  return seed_of(basis, kHadamard) || seed_of(basis, kHaar) ? "" : basis;
}

// A model can be rotated if its norms divide a row by its length, whatever its mean.
void rotate(streams::Plan& plan, const TensorMap& outline, const std::string& basis) {
  check_rotatable(plan);
  plan.form = streams::uncentred(plan.form);
  check_plan(plan, outline);  // before a matrix of this width is allocated
  plan.rotation = basis_rotation(basis, plan.stored_width());
}

}  // namespace isonorm::services
