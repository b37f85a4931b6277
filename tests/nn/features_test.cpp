// Options of the Transformer that are refused. tests/model_cases has a row for each that is not.
#include "streams/transformer.h"
#include "tests/nn/models.h"

using namespace isonorm;
using namespace isonorm::nn;
using Catch::Matchers::Contains;
using streams::Form;
using streams::Stored;

TEST_CASE("options that do not fit are refused in one line") {
  const auto build = [](TransformerOptions t) { Gpt({.vocab = 5, .context = 4, .transformer = t}); };
  CHECK_THROWS_WITH(build({.width = 10, .heads = 4}), Contains("width 10") && Contains("4 heads"));
  CHECK_THROWS_WITH(build({.width = 8, .heads = 4, .kv_heads = 3}),
                    Contains("4 heads cannot share 3 of keys and values"));
  CHECK_THROWS_WITH(build({.width = 8, .heads = 4, .kv_heads = -1}), Contains("share -1"));
  CHECK_THROWS_WITH(build({.width = 9, .heads = 3, .positions = Positions::rotary}),
                    Contains("head_width 3 gives 3 entries to rotate"));
  CHECK_THROWS_WITH(build({.width = 8, .positions = Positions::rotary, .rotary_base = 0}), Contains("rotary base 0"));
  CHECK_THROWS_WITH(build({.width = 8, .shared_norm = true}), Contains("a shared norm needs parallel branches"));
  CHECK_THROWS_WITH(Vit({.transformer = {.positions = Positions::alibi}}),
                    Contains("ALiBi needs causal attention"));
  CHECK_THROWS_WITH(build({.width = 8, .mlp_width = -2}), Contains("mlp_width -2"));
  CHECK_THROWS_WITH(build({.width = 8, .branch = {.dropout = 1}}), Contains("dropout 1"));
  CHECK_THROWS_WITH(build({.width = 8, .branch = {.stochastic_depth = 1.5}}), Contains("stochastic depth"));
  CHECK_THROWS_WITH(build({.width = 8, .branch = {.layer_scale = NAN}}), Contains("layer scale"));
  CHECK_THROWS_WITH(build({.width = 8, .norm = NormKind::crms}), Contains("crms_norm, expected layer_norm"));
  const auto mapped = [](TransformerOptions t, bool tied, bool centred) {
    t.width = 8;
    streams::make<Gpt>({.vocab = 5, .context = 4, .tied = tied, .transformer = t},
                       {.form = Form::rms_norm, .storage = Stored::mapped, .centre_readers = centred});
  };
  CHECK_THROWS_WITH(mapped({.branch = {.dropout = 0.1}}, false, false),
                    Contains("dropout 0.1") && Contains("raw storage"));
  CHECK_THROWS_WITH(mapped({.branch = {.layer_scale = 0.1}}, false, false),
                    Contains("layer scale 0.1") && Contains("raw storage"));
  CHECK_NOTHROW(mapped({.branch = {.stochastic_depth = 0.1}}, false, false));
  CHECK_THROWS_WITH(mapped({.affine = true}, false, true), Contains("gain") && Contains("raw storage"));
  CHECK_THROWS_WITH(mapped({.affine = true}, true, false), Contains("tied") && Contains("gain"));
}
