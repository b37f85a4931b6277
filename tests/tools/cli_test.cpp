// The command line: every misuse is one line on stderr and exit code 2; help and version are 0.
#include "tests/tools/small_run.h"

TEST_CASE("cli: help and version are no errors") {
  const Folder f;
  const std::string help = f.succeeds("--help").out;
  for (const std::string verb :
       {"prove", "train", "explain", "table", "experiment", "convert", "verify", "compare", "audit"}) {
    CHECK(contains(help, verb));
    CHECK_FALSE(contains(f.succeeds(verb + " --help").out, "{false}"));  // users must not see how a flag is bound
  }
  for (const char* line : {"--version", "prove --version"}) CHECK(f.succeeds(line).out.starts_with("isonorm "));
  const std::string prove = f.succeeds("prove --help").out;
  for (const std::string& option : f.words(
           "--model --data --forms --optimizer --lr --warmup --weight-decay --clip --steps --batch --width --depth "
           "--heads --patch --context --affine --controls --dtype --eps --seed --threads --report --json --log --quiet "
           "--help --version --head-width --mlp-width --activation --positions --tied --mean-pool --no-bias "
           "--certificate --architectures"))
    CHECK(contains(prove, option));
}

TEST_CASE("cli: usage errors exit with 2 and name the fault") {
  const Folder f;
  f.refuses("", 2, "isonorm: a verb");
  f.refuses("walk", 2, "isonorm: there is no verb \"walk\"");
  f.refuses("trian", 2, "isonorm: there is no verb \"trian\"");
  CHECK(contains(f.run("trian").err, "or man (is train meant?); see"));
  f.refuses("train --widht=8", 2, "not expected: --widht=8 (is --width meant?); ");
  f.refuses("train --zzz", 2, "not expected: --zzz; ");
  f.refuses("train a --width 8 b --c=3", 2, "not expected: a b --c=3; ");
  // prove names the first wrong option.
  for (const std::string words : {"--lr fast",    "--lr -1",
                                  "--lr nan",     "--lr 0",
                                  "--lr",         "--steps 0",
                                  "--steps 1.5",  "--steps 99999999999",
                                  "--batch -3",   "--warmup -1",
                                  "--clip -0.5",  "--weight-decay inf",
                                  "--eps 0",      "--width 1",
                                  "--heads 0",    "--depth 0",
                                  "--patch 0",    "--context 9",
                                  "--controls 0", "--threads 0",
                                  "--seed -1",    "--seed 18446744073709551616",
                                  "stray",        "--architectures gpt1"})
    f.refuses("prove " + words, 2, words.substr(0, words.find(' ')));
  for (const std::string words : {"--model gpt", "--forms rms_norm", "--dtype f32", "--log x.jsonl", "--affine"})
    f.refuses("prove --certificate " + words, 2, words.substr(0, words.find(' ')));
  for (const std::string words : {"--steps 0", "--seeds -1", "--threads 0"})
    f.refuses("table " + words, 2, words.substr(0, words.find(' ')));
  const std::pair<const char*, const char*> wrong[] = {
      {"prove --speed 9", "not expected: --speed 9 (is --seed meant?); see"},
      {"prove --heads 5", "5 heads"},
      {"prove --heads 5", "give head_width"},
      {"prove --head-width -2", "--head-width: \"-2\""},
      {"prove --mlp-width -1", "--mlp-width: \"-1\""},
      {"prove --activation step", "gelu|gelu_tanh|relu|silu|swiglu"},
      {"prove --positions absolute", "learned|rotary|none|rotary_halves|alibi"},
      {"prove --positions alibi", "--positions alibi: a "},
      {"train --model gpt --data README.md --positions alibi --precision bf16",
       "ALiBi's scores are too coarse in bf16"},
      {"prove --positions rotary --heads 3 --head-width 5", "width 5 gives 5 entries to rotate"},
      {"prove --tied", "--tied requires --model gpt"},
      {"prove --qk-norm crms_norm", "none|layer_norm|rms_norm"},
      {"prove --shared-norm", "--shared-norm requires --parallel"},
      {"prove --qkv-bias", "--qkv-bias requires --no-bias"},
      {"prove --rotary-base 100", "--rotary-base requires --positions rotary or rotary_halves"},
      {"prove --no-norm-bias", "--no-norm-bias requires --affine"},
      {"prove --model gpt --data x --mean-pool", "--mean-pool requires --model vit"},
      {"prove --forms rms_norm,layer_norm", "layer_norm is the reference"},
      {"prove --forms rms_norm,batch_norm", "batch_norm"},
      {"prove --forms rms_norm,crms_norm,rms_norm", "twice"},
      {"prove --model rnn", "vit|gpt|translator"},
      {"prove --model gpt", "--data"},
      {"prove --dtype bf16", "f32|f64"},
      {"prove --optimizer newton", "adamw"},
      {"prove --against gpu", "--against: \"gpu\" is not a device, expected cpu, cuda or cuda:N"},
      {"prove --against cpu", "--against: cpu is the device that trains the reference"},
      {"prove --json x --log x", "--log"},
      {"prove --certificate --against cuda", "--against cannot be used with --certificate"},
      {"prove --certificate --lr 0.1", "--lr cannot be used with --certificate"},
      {"prove --certificate --steps 0", "--steps: \"0\""},
      {"prove --certificate --controls 0", "--controls: \"0\""},
      {"prove --certificate --threads 0", "--threads: \"0\""},
      {"prove --certificate --threads 40000", "--threads: \"40000\" is not a whole number from 1 to 1024"},
      {"prove --certificate --architectures gpt99", "gpt99"},
      {"prove --certificate --architectures gpt1,gpt1", "twice"},
      {"table --optimizers sgd,gradient", "gradient"},
      {"table --optimizers sgd,adam,sgd", "twice"},
      {"table --model mlp", "mlp"},
      {"table --full --model vit", "--model"}};
  for (const auto& [line, says] : wrong) f.refuses(line, 2, says);
  // Verbs that compare rounding in one dtype have no --precision.
  for (const std::string verb : {"prove", "table", "audit"}) {
    f.refuses(verb + " --precision bf16", 2, "not expected: --precision bf16");
    f.refuses(verb + " --threads 40000", 2, "--threads: \"40000\" is not a whole number from 1 to 1024");
  }
  f.refuses("train --threads 40000", 2, "--threads: \"40000\" is not a whole number from 1 to 1024");
  for (const char* words : {"--tied=maybe", "--no-bias=99999999999999999999", "--affine=2"})
    f.refuses(std::string("train +small ") + words, 2, "isonorm train: --");
  for (const char* option : {"--steps", "--weight-decay"})
    check_refusal(run_child(f.words("train +small") + Words{option, ""}), 2, "train", option);
}

TEST_CASE("cli: explain prints a norm with its numbers") {
  const Folder f;
  const ChildResult r = f.succeeds("explain layer_norm 1,2,3");
  CHECK(r.err.empty());
  CHECK(contains(r.out, "(-1.22474, 0, 1.22474)") != contains(r.out, "(-1.22473, 0, 1.22473)"));
  CHECK(run_child({"explain", "rms_norm", "-1, 2,3e0", "--grad", "-1,0,1"}).code == 0);
  f.succeeds("explain crms_norm 0.5");
  f.succeeds("explain crms_isometric 0.5,-1");
  f.refuses("explain rms_norm 0,0 --eps 0", 3, "a row of mean square 0");
  f.succeeds("explain batch_norm 1,2 --gain 2 --bias 1 --gradcheck");
  f.refuses("explain batch_norm 1,2 --gain 2,3", 3, "the gain has 2 entries, expected 1");
  f.refuses("explain group_norm 1,2", 2, "group_norm");
  f.refuses("explain rms_norm 1,two", 2, "two");
  f.refuses("explain rms_norm 1,,2", 2, "not a finite number");
  f.refuses("explain rms_norm nan", 2, "nan");
  f.refuses("explain rms_norm 1,2 --grad 1", 2, "--grad");
  f.refuses("explain rms_norm", 2, "ROW");
}

TEST_CASE("cli: standard output on a full disk is an error") {
  const Folder f;
  for (const char* line : {"explain rms_norm 1,2", "--help", "--version", "prove --help"})
    CHECK(contains(f.gives(4, line, {.close_stdout = true}).err, "standard output"));
}
