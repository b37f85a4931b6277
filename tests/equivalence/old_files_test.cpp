// Files from before residual connections and mixed precision could be chosen: what they say of their model still means the same.
#include "equivalence/verify/verify.h"
#include "nn/residual/all.h"
#include "tests/equivalence/model_files.h"
#include "tests/equivalence/small_net.h"
#include "tests/support/catch.h"
#include "tests/support/compare.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using namespace isonorm::equivalence;
using namespace isonorm::training;

TEST_CASE("models of every kind that an older program wrote load, and give the logits that they gave") {
  const std::string folder = "tests/fixtures/checkpoints/";
  const TensorMap seen = load_safetensors(folder + "logits.safetensors");
  for (const std::string name : {"gpt_layer_norm", "gpt_crms_norm", "gpt_mapped", "vit_layer_norm", "vit_crms_norm"}) {
    INFO(name);
    const ModelFile file = load_model_file(folder + name + ".safetensors");
    CHECK_FALSE(file.description.contains("model.connection"));
    CHECK_FALSE(file.description.contains("model.precision"));
    CHECK(ModelOptions(file.description).transformer().connection == nn::kPreLn);
    CHECK(ModelOptions(file.description).transformer().precision == nn::MixedPrecision{});
    const Tensor expected = seen.at(name + ".logits");
    // The same sums, at most in another order: some ten in turn, of at most 12 terms.
    check_close(logits(file.description, file.state, seen.at(name + ".inputs")), expected, 10 * 16 * 0x1p-52 * 3.5);
    const Metadata now = ModelOptions(file.description).description();
    CHECK(now.size() == file.description.size() + std::size(kLaterOptions));
    CHECK(now.at("model.connection") == "pre_ln");
    CHECK(now.at("model.precision") == "full");
    CHECK(now.at("model.stream_precision") == "full");
    CHECK(now.at("model.kv_heads") == now.at("model.heads"));
    CHECK(now.at("model.norm_bias") == "true");
    CHECK(now.at("model.initialisation") == "by_layer");
    check_close(logits(now, file.state, seen.at(name + ".inputs")), expected, 10 * 16 * 0x1p-52 * 3.5);
  }
}

TEST_CASE("a file under the names of an older program is read under those of today") {
  const TempFolder folder;
  const std::string path = (folder.path / "old.safetensors").string();
  manual_seed(1);
  for (const bool post : {false, true}) {
    const nn::Gpt model(test::small_gpt({.connection = post ? nn::kPostLn : nn::kPreLn}));
    const Metadata now = describe(model);
    Metadata old = now;
    CHECK(old.erase("model.connection") == 1);
    old["model.residual"] = post ? "post_norm" : "pre_norm";
    save_safetensors(path, model.state_dict(), old);
    CHECK(load_model_file(path).description == now);
    old["model.residual"] = "pre_ln ";
    save_safetensors(path, model.state_dict(), old);
    CHECK_THROWS_WITH(ModelOptions(load_model_file(path).description),
                      "model file: entry 'model.connection' is 'pre_ln ', which it cannot be");
    old["model.connection"] = "pre_ln";
    save_safetensors(path, model.state_dict(), old);
    CHECK_THROWS(ModelOptions(load_model_file(path).description));
  }
}
