// Files from before residual connections and mixed precision could be chosen: what they say of their model still means the same.
#include "equivalence/verify/verify.h"
#include "tests/support/catch.h"
#include "tests/support/compare.h"

using namespace isonorm;
using namespace isonorm::equivalence;
using namespace isonorm::training;

TEST_CASE("models of every kind that an older program wrote load, and give the logits that they gave") {
  const std::string folder = "tests/fixtures/checkpoints/";
  const TensorMap seen = load_safetensors(folder + "logits.safetensors");
  for (const std::string name : {"gpt_layer_norm", "gpt_crms_norm", "gpt_mapped", "vit_layer_norm", "vit_crms_norm"}) {
    INFO(name);
    const ModelFile file = load_model_file(folder + name + ".safetensors");
    CHECK_FALSE(file.description.contains("model.residual"));
    CHECK_FALSE(file.description.contains("model.precision"));
    CHECK(ModelOptions(file.description).transformer().residual == nn::kPreNorm);
    CHECK(ModelOptions(file.description).transformer().precision == nn::MixedPrecision{});
    const Tensor expected = seen.at(name + ".logits");
    // The same sums, at most in another order: some ten in turn, of at most 12 terms.
    check_close(logits(file.description, file.state, seen.at(name + ".inputs")), expected, 10 * 16 * 0x1p-52 * 3.5);
    const Metadata now = ModelOptions(file.description).description();
    CHECK(now.size() == file.description.size() + 3);
    CHECK(now.at("model.residual") == "pre_norm");
    CHECK(now.at("model.precision") == "full");
    CHECK(now.at("model.stream_precision") == "full");
    check_close(logits(now, file.state, seen.at(name + ".inputs")), expected, 10 * 16 * 0x1p-52 * 3.5);
  }
}
