// A file of a training in a program: evaluate_file() compared with the test pass of the training, continue_text() with
// nn::generate().
#include "io/data/text.h"
#include "nn/generate.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "training/model_file.h"
#include "training/run/continue_text.h"
#include "training/run/evaluate_file.h"
#include "training/run/trainer.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;

namespace {

struct TrainedFile {
  TempFolder f;
  std::string data = f / "words.txt", path = f / "words.ckpt";
  Evaluation tested;

  TrainedFile() {
    write_text(data, data::made_text(1, 2000));
    TrainerOptions o;
    o.training.model = {kGpt, {.width = 8, .depth = 1, .heads = 2}, {{"context", 8}}};
    o.training.data = data, o.training.steps = 5, o.training.threads = 1;
    o.checkpoint = path, o.quiet = true;
    Trainer trainer(o);
    trainer.train();
    tested = trainer.result().evaluations.back();
  }
};

}  // namespace

TEST_CASE("evaluate_file: the held-out share has the loss of the training's last test pass") {
  const TrainedFile t;
  const EvaluatedFile e = evaluate_file({.model = t.path, .data = t.data});
  CHECK(e.loss == t.tested.loss);
  CHECK(e.right == t.tested.right);
  CHECK(e.predictions == t.tested.predictions);
  CHECK_THAT(e.data_text, Contains("the last 10 %, which the model was not trained on"));
  CHECK(evaluate_file({.model = t.path, .test_data = t.data}).predictions == 1999);
  CHECK_THROWS_WITH(evaluate_file({.model = t.path, .data = t.data, .test_data = t.data}),
                    Contains("--test-data excludes --data"));
}

TEST_CASE("continue_text: the ids of generate() as a text, and the text is printed") {
  const TrainedFile t;
  const nn::GenerateOptions greedy{.length = 12, .temperature = 0};
  std::string printed;
  const auto print = [&](std::string_view more) { printed += more; };
  const ContinuedTexts one = continue_text({.model = t.path, .prompt = "the ", .generate = greedy, .print = print});

  const std::unique_ptr<nn::Module> model = load_model(t.path);
  const data::Alphabet alphabet = data::Text(t.data).alphabet();
  const Tensor prompt = alphabet.encode("the ");
  const Tensor ids = nn::generate(dynamic_cast<nn::Gpt&>(*model), prompt, greedy);
  CHECK(one.texts == std::vector<std::string>{alphabet.decode(ids)});
  CHECK(printed == one.texts[0]);
  CHECK(one.tokens == 12);

  const std::string word = one.texts[0].substr(6, 1);
  const ContinuedTexts two =
      continue_text({.model = t.path, .prompt = "the ", .count = 2, .stop = {word}, .generate = greedy});
  const std::string cut = one.texts[0].substr(0, one.texts[0].find(word, 4));
  CHECK(two.texts == std::vector<std::string>{cut, cut});
  CHECK(continue_text({.model = t.path, .prompt = "the ", .go_on = [] { return false; }}).texts[0] == "the ");
  CHECK_THROWS_WITH(continue_text({.model = t.path}), Contains("PROMPT is empty"));
}
