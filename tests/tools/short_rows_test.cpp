// --context below the context of the model that a training begins with: the rows of the training are shorter, the model
// stays whole.
#include "autograd/grad_mode.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/shape.h"
#include "core/view.h"
#include "io/data/text.h"
#include "nn/gpt.h"
#include "tests/tools/small_run.h"

namespace {

// Gradient descent at a constant rate: what a training computes is written out in two lines.
const std::string kDescent =
    " --optimizer sgd --lr 0.1 --schedule constant --warmup 0 --clip 0 --weight-decay 0 --dtype f64 --threads 1 -q ";

// The losses of such a training of the model in `file` on rows of `length` tokens, with all rows of its table of
// positions.
std::vector<double> naive_losses(const std::string& file, const data::Text& text, int64_t length, int steps) {
  const auto model = training::load_model(file);
  model->to(DType::f64);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const data::TextBatch batch = text.batch(4, length, step);
    const Tensor logits = (*model)(batch.x);
    const Tensor loss = cross_entropy(reshape(logits, {-1, logits.size(2)}), reshape(batch.y, {-1}));
    losses.push_back(loss.item());
    model->zero_grad();
    loss.backward();
    const NoGrad no_grad;
    for (const nn::NamedParameter& p : model->named_parameters())
      if (p.tensor.grad().defined()) copy_into(p.tensor, p.tensor - 0.1 * p.tensor.grad());
  }
  return losses;
}

std::vector<double> logged_losses(const Folder& f, const std::string& log) {
  std::vector<double> losses;
  for (const nlohmann::json& line : f.lines(log))
    if (line.contains("lr")) losses.push_back(line["loss"]);
  return losses;
}

}  // namespace

TEST_CASE("rows: a --context below the model's gives the losses of the whole model on shorter rows") {
  const Folder f;
  f.succeeds("train +small --context 16 --positions learned --steps 2 -q --checkpoint @full --seed 3");
  f.succeeds("train --init @full --data @text.txt --context 6 --batch 4 --steps 4 --checkpoint @c --log @log" +
             kDescent);
  const uint64_t seed = std::stoull(load_checkpoint(f / "c").values.at("seed"));
  const std::vector<double> ours = logged_losses(f, "log"),
                            theirs = naive_losses(f / "full", data::Text(f / "text.txt", seed, 0.1), 6, 4);
  REQUIRE(ours.size() == 4);
  // Sums of 24 losses, of which each is a few dozen operations.
  for (size_t i = 0; i < 4; ++i) CHECK(std::abs(ours[i] - theirs[i]) < 1e4 * 2.3e-16 * theirs[i]);

  const TensorMap before = load_checkpoint(f / "full").weights, after = load_checkpoint(f / "c").weights;
  const Tensor then = before.at("position.weight").to(DType::f64), now = after.at("position.weight");
  CHECK(now.shape() == Dims{16, 8});
  CHECK_THAT(
      f.succeeds("evaluate @c --data @text.txt").out,
      Contains(" bytes; the last 10 %, which the model was not trained on, in rows of 6 tokens as in the training; the "
               "model's context is 16\n"));
  CHECK_THAT(f.succeeds("evaluate @full --data @text.txt").out, !Contains("in rows of"));
  CHECK(same_bytes(detached::contiguous(detached::narrow(then, 0, 6, 10)),
                   detached::contiguous(detached::narrow(now, 0, 6, 10))));
  CHECK_FALSE(same_bytes(detached::contiguous(detached::narrow(then, 0, 0, 6)),
                         detached::contiguous(detached::narrow(now, 0, 0, 6))));
  CHECK_THAT(f.succeeds("info @c").out, Contains("context 16"));
  f.succeeds("export @c @folder");
  CHECK(nlohmann::json::parse(read(f / "folder/config.json"))["n_positions"] == 16);
  f.succeeds("sample @c abcabcabcabc --length 3 -q");  // a prompt that is longer than a row of the training
}

TEST_CASE("rows: --context below the model's: resuming, extending and the file of options agree") {
  const Folder f;
  f.succeeds("train +small --context 16 --steps 2 -q --checkpoint @full");
  const std::string train = "train --init @full --data @text.txt --batch 4" + kDescent;
  f.succeeds(train + "--context 6 --steps 4 --checkpoint @whole");
  f.succeeds(train + "--context 6 --steps 2 --checkpoint @two");
  std::filesystem::copy_file(f / "two", f / "same");
  f.refuses("train --checkpoint @two --data @text.txt --context 5 -q", 3, "was trained with --row-length 6, not 5");
  f.refuses("train --checkpoint @two --data @text.txt --context 16 -q", 3, "was trained with --row-length 6, not 0");
  f.succeeds("train --checkpoint @two --data @text.txt --steps 4 --extend -q");
  f.succeeds(train + "--checkpoint @same --context 6 --steps 4 --extend");
  f.succeeds("train --config @whole.toml --checkpoint @again -q");
  const TensorMap whole = load_checkpoint(f / "whole").weights;
  for (const char* other : {"two", "same", "again"}) {
    INFO(other);
    const TensorMap its = load_checkpoint(f / other).weights;
    for (const auto& [name, tensor] : whole) CHECK(same_bytes(tensor, its.at(name)));
  }
  f.refuses(train + "--row-length 17", 2, "--row-length: 17 is above the model's context of 16");
  f.refuses(train + "--context 17", 3, "its model.context is 16, not 17");
  // The whole context is no shorter row: the checkpoint is that of a training without --context.
  f.succeeds(train + "--context 16 --steps 1 --checkpoint @equal");
  f.succeeds(train + "--steps 1 --checkpoint @none");
  CHECK(read(f / "equal") == read(f / "none"));
}

TEST_CASE(
    "rows: --context below the model's: files of averages and converted files are tested on rows of the same length") {
  const Folder f;
  f.succeeds("train +small --context 16 --steps 2 -q --checkpoint @full");
  f.succeeds(
      "train --init @full --data @text.txt --batch 4 --context 6 --steps 3 --ema 0.5 --ema-file @ema "
      "--checkpoint @c --json @train" +
      kDescent);
  f.succeeds("convert @c @converted --to layer_norm");
  const auto loss = [&](const char* file) {
    f.succeeds(text("evaluate ", file, " --data @text.txt --json @json"));
    return f.json("json")["loss"].get<double>();
  };
  CHECK(loss("@ema") == f.json("train")["test"]["loss"]);
  CHECK(std::abs(loss("@converted") - loss("@c")) < 1e-12);  // of rows of 16 it differs in the third digit
  Metadata metadata;
  const TensorMap weights = load_safetensors(f / "ema", &metadata);
  CHECK(metadata.at("row_length") == "6");
  for (const auto& [word, says] : {std::pair{"17", "ema: its rows have 17 tokens, its context is 16"},
                                   {"-1", "its entry 'row_length' is '-1', expected a number of tokens"}}) {
    metadata["row_length"] = word;
    save_safetensors(f / "ema", weights, metadata);
    f.refuses("evaluate @ema --data @text.txt", 3, says);
  }
}

TEST_CASE("rows: --context below the model's: a published model with rotary positions, and what lr-find takes") {
  const Folder f;
  std::string ids;
  for (int i = 0; i < 300; ++i) ids += {static_cast<char>(i * i % 20), '\0'};
  write_text(f / "ids", ids);
  f.succeeds("import tests/fixtures/ports/llama @llama");
  const std::string data = " --data @ids --token-vocab 20 --batch 4 --context 3 --threads 1 -q ";
  f.succeeds("train --init @llama" + data + "--steps 2 --checkpoint @c");
  CHECK(load_checkpoint(f / "c").values.at("model.context") == "8");
  f.succeeds("lr-find --init @llama" + data + "--steps 11");
  f.succeeds("export @c @folder --like tests/fixtures/ports/llama");
  CHECK(nlohmann::json::parse(read(f / "folder/config.json"))["max_position_embeddings"] == 8);
}
