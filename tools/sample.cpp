// isonorm sample MODEL PROMPT: continues a text by a language model.

#include <cstdio>

#include "core/printed.h"
#include "core/system/file.h"
#include "core/system/terminal.h"
#include "equivalence/services/named_files.h"
#include "tools/interrupt.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/verb.h"
#include "training/fields.h"
#include "training/model_file.h"
#include "training/run/continue_text.h"

namespace isonorm::tools {
namespace {

constexpr int64_t kMostPrompt = 1 << 24;  // limit for the bytes of a prompt from standard input

struct SampleOptions : training::TextContinuation {
  bool quiet = false;
  std::string json;
};

const reports::Schema<training::ContinuedTexts>& sample_schema() {
  using training::ContinuedTexts;
  static const reports::Schema<ContinuedTexts> schema{
      "sample", "Texts that a language model continued: `isonorm sample`.",
      reports::Fields<ContinuedTexts>()
          .add("texts", &ContinuedTexts::texts, "the prompt with each continuation")
          .add("tokens", &ContinuedTexts::tokens, "number of tokens that were added to all texts")
          .add(
              "tokens_per_second", [](const ContinuedTexts& c) { return static_cast<double>(c.tokens) / c.seconds; },
              "speed")};
  return schema;
}

int run_sample(SampleOptions o, const CLI::App& command) {
  const std::string from = o.prompt == "-" ? "/dev/stdin" : "";  // file of the prompt
  check_outputs({{"--json", o.json}},
                {{"MODEL", o.model}, {"--tokenizer", o.tokenizer}, data_input(o.data), {"PROMPT", from}});
  if (!from.empty()) o.prompt = read_text(from, kMostPrompt);
  o.print = [](std::string_view more) {
    print_text(more);
    flush_output();
  };
  o.go_on = [] {
    catch_interrupt();  // the prompt may take long; now there is output to keep
    return !interrupted();
  };
  const training::ContinuedTexts made = continue_text(o);
  for (size_t i = 0; i < made.texts.size(); ++i)
    print_text(text(o.count == 1 ? "" : text(i > 0 ? "\n" : "", made.texts[i]), "\n"));
  std::string all;
  for (const std::string& one : made.texts) all += text(all.empty() ? "" : "\n", one, "\n");
  write_json(o.json, sample_schema()(made), all, command);
  training::warn_of_averages(SafetensorsFile(o.model), o.model);
  if (!o.quiet)
    std::fputs(
        printed("%d tokens, %.1f tokens/s\n", made.tokens, static_cast<double>(made.tokens) / made.seconds).c_str(),
        stderr);
  return interrupted() ? kInterrupted : kOk;
}

}  // namespace

Verb add_sample(CLI::App& app) {
  CLI::App* command = app.add_subcommand("sample", "Print how a trained language model continues a text");
  auto o = std::make_shared<SampleOptions>();
  o->prompt = "-";
  command->add_option("MODEL", o->model, "a checkpoint of isonorm train, or a file of isonorm import")->required();
  command->add_option("PROMPT", o->prompt, "the text to continue (default: -, standard input)");
  command
      ->add_option("--tokenizer", o->tokenizer,
                   "tokenizer of a model of tokens, as isonorm tokenize takes it (default: the one in MODEL)")
      ->check(CLI::ExistingPath);
  command->add_option("--data", o->data,
                      "the text that a model of bytes was trained on, if MODEL does not have its alphabet");
  command->add_flag("--ids", o->are_ids, "read and print ids, \"17 4 256\"");
  nn::GenerateOptions& g = o->generate;
  add_number(*command, "length", g.length,
             "largest number of tokens to add; the bytes of an unfinished UTF-8 character at the end are left out",
             training::from(1));
  add_number(*command, "count", o->count, "number of texts that continue PROMPT", training::from(1));
  command->add_option("--stop", o->stop, "end a text before this word; may be given several times")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_flag("--ignore-eos", o->ignore_eos,
                    "continue after the tokenizer's end token, such as <|endoftext|>, which ends a text otherwise");
  add_number(*command, "temperature", g.temperature, "divides the logits; 0: always the most likely token");
  add_number(*command, "top_k", g.top_k, "choose among this many most likely tokens; 0: all");
  add_number(*command, "top_p", g.top_p, "choose among the fewest tokens whose probabilities add up to this",
             {.most = 1, .above = true});
  add_number(*command, "min_p", g.min_p, "choose among tokens with at least this share of the largest probability",
             training::kShare);
  add_number(*command, "repetition_penalty", g.repetition_penalty,
             "above 1, tokens that are already in the text get less likely; 1: off", training::above(0));
  add_seed(*command, o->seed, "seed of the random choices");
  add_json(*command, o->json);
  command->add_flag("-q,--quiet", o->quiet, "do not print the speed to standard error");
  add_device(*command, o->device);
  command->footer(exit_codes("0 printed", "6 numbers are not finite"));
  return {command, [o, command] { return run_sample(*o, *command); }, {&sample_schema()}};
}

}  // namespace isonorm::tools
