// The checkpoint of a training: several models, optimizers, an average and the user's data go on to the same bits; what
// does not fit changes nothing.
#include "training/run/saved_training.h"

#include <cmath>

#include "autograd/engine.h"
#include "autograd/ops/create.h"
#include "autograd/ops/loss.h"
#include "autograd/ops/pointwise.h"
#include "autograd/ops/random.h"
#include "autograd/ops/reduce.h"
#include "core/random.h"
#include "io/checkpoint.h"
#include "nn/container.h"
#include "nn/linear.h"
#include "nn/parameter_free.h"
#include "optim/adam.h"
#include "optim/schedule.h"
#include "optim/sgd.h"
#include "tests/support/catch.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thrown.h"
#include "training/model_file.h"
#include "training/steps/loop.h"

using namespace isonorm;
using namespace isonorm::training;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

// A class of the user with a state.
struct Counter {
  int64_t count = 0;
  TensorMap state_dict() const {
    TensorMap state;
    state.add("count", from_vector<int64_t>({count}, Dims()));
    return state;
  }
  void load_state_dict(const TensorMap& state) { count = state.at("count").to_vector<int64_t>()[0]; }
};

struct Gan {
  nn::Sequential generator{nn::Linear(2, 4), nn::Relu(), nn::Linear(4, 2)};
  nn::Sequential critic{nn::Linear(2, 4), nn::Relu(), nn::Linear(4, 1)};
  optim::Adam opt_g{generator.parameters(), {.lr = 0.01}};
  optim::Sgd opt_c{critic.parameters(), {.lr = 0.01, .momentum = 0.9}};
  optim::Ema average{generator.parameters(), {.decay = 0.9, .warmup = true}};
  optim::ReduceOnPlateau plateau{0.01, {.factor = 0.5, .patience = 0}};
  BestLoss best{100};
  Counter counter;
  Tensor centre = zeros({2});
  int seen = 0;
  bool odd = false;
  float last = 0;
  std::string note = "none";
  std::vector<double> losses;

  std::vector<Content> contents() {
    return {{"generator", generator},
            {"critic", critic},
            {"opt_g", opt_g},
            {"opt_c", opt_c},
            {"average", average},
            {"plateau", plateau},
            {"best", best},
            {"counter", counter},
            {"centre", centre},
            {"seen", seen},
            {"odd", odd},
            {"last", last},
            {"note", note},
            {"losses", [this] { return from_vector(losses, {static_cast<int64_t>(losses.size())}); },
             [this](const Tensor& x) { losses = x.to_vector<double>(); }}};
  }

  // Steps from + 1 to `to`.
  void train(int from, int to) {
    for (int t = from + 1; t <= to; ++t) {
      const Tensor real = randn({8, 2}) + 2.0, fake = generator(dropout(randn({8, 2}), 0.5));
      opt_c.zero_grad();
      (critic(detach(fake)).mean() - critic(real).mean()).backward();
      opt_c.set_lr(plateau.lr() / (1 + average.averages()[0].square().sum().item()));
      opt_c.step();
      opt_g.zero_grad();
      const Tensor loss = -critic(fake).mean();
      loss.backward();
      opt_g.set_lr(plateau.lr());
      opt_g.step();
      average.update();
      centre = centre * 0.5 + detach(fake).mean(0);  // another tensor than before
      plateau.take(loss.item());
      best.take(t, loss.item());
      seen += 8, odd = !odd, last = static_cast<float>(loss.item()), note = text("step ", t, " \"\\\n"),
                 ++counter.count;
      losses.push_back(loss.item());
    }
  }
};

std::vector<uint8_t> saved_bytes(const TempFolder& f, Gan& gan, int step) {
  std::filesystem::remove(f / "bytes");
  SavedTraining(f / "bytes", gan.contents()).save(step);
  std::vector<uint8_t> bytes = read_bytes(f / "bytes");
  std::filesystem::remove(f / "bytes");
  std::filesystem::remove(f / "bytes.previous");
  return bytes;
}

}  // namespace

TEST_CASE("saved training: two models, two optimizers, an average and the user's data go on to the same bits") {
  const TempFolder f;
  constexpr int kSteps = 9;
  manual_seed(7);
  Gan whole;
  whole.train(0, kSteps);
  const std::vector<uint8_t> expected = saved_bytes(f, whole, kSteps);
  const std::vector<float> weights = whole.generator.parameters()[0].to_vector<float>();
  for (int stop = 0; stop < kSteps; ++stop) {
    INFO("interrupted after step " << stop);
    const std::string path = f / text("gan", stop);
    {
      manual_seed(7);
      Gan begun;
      SavedTraining saved(path, begun.contents());
      CHECK(saved.done() == 0);
      begun.train(0, stop);
      saved.save(stop);
      begun.train(stop, kSteps);  // and was lost
    }
    manual_seed(stop);
    Gan resumed;
    SavedTraining saved(path, resumed.contents());
    REQUIRE(saved.done() == stop);
    CHECK(resumed.losses.size() == static_cast<size_t>(stop));
    resumed.train(saved.done(), kSteps);
    CHECK(resumed.generator.parameters()[0].to_vector<float>() == weights);
    CHECK(resumed.note == whole.note);
    CHECK((saved_bytes(f, resumed, kSteps) == expected));
  }
}

TEST_CASE("saved training: each content is loaded; without any one of them the state differs") {
  const TempFolder f;
  manual_seed(7);
  Gan whole;
  whole.train(0, 3);
  SavedTraining(f / "gan", whole.contents()).save(3);
  const Checkpoint file = load_checkpoint(f / "gan");
  const std::vector<uint8_t> expected = saved_bytes(f, whole, 3);
  for (const Content& left_out : whole.contents()) {
    manual_seed(1);
    Gan resumed;
    std::vector<Content> contents = resumed.contents();
    std::erase_if(contents, [&](const Content& c) { return c.name() == left_out.name(); });
    Checkpoint part{{}, {}, file.values};
    part.values.erase(left_out.name() == "best" ? kTests : "content." + left_out.name());
    const auto keeps = [&](const std::string& name) {
      return name != left_out.name() && !name.starts_with(left_out.name() + ".");
    };
    for (const auto& [name, x] : file.weights)
      if (keeps(name)) part.weights.add(name, x);
    for (const auto& [name, x] : file.optimizer)
      if (keeps(name)) part.optimizer.add(name, x);
    save_checkpoint(f / "part", part);
    SavedTraining(f / "part", contents);
    INFO("without " << left_out.name());
    CHECK((saved_bytes(f, resumed, 3) != expected));
  }
}

TEST_CASE("saved training: a file with other contents is refused in one line, and nothing changes") {
  const TempFolder f;
  manual_seed(7);
  Gan gan;
  gan.train(0, 3);
  SavedTraining(f / "gan", gan.contents()).save(3);
  gan.train(3, 5);

  nn::Sequential wide(nn::Linear(2, 5), nn::Relu(), nn::Linear(5, 1)), flat(nn::Linear(2, 4));
  nn::Sequential doubles(nn::Linear(2, 4), nn::Relu(), nn::Linear(4, 1));
  doubles.to(DType::f64);
  optim::Adam other_kind(gan.critic.parameters());
  optim::Adam fewer({gan.generator.parameters()[0]}, {.lr = 0.01});
  optim::Ema other_average(gan.critic.parameters());
  int8_t small = 0;
  double number = 0;
  Tensor three = zeros({3}), f64 = zeros({2}, {DType::f64}), undefined;
  const std::vector<uint8_t> before = saved_bytes(f, gan, 5);
  const auto with = [&](const std::string& name, const std::vector<Content>& instead) {
    std::vector<Content> contents = gan.contents();
    std::erase_if(contents, [&](const Content& c) { return c.name() == name; });
    contents.insert(contents.end(), instead.begin(), instead.end());
    return contents;
  };
  const std::pair<std::vector<Content>, const char*> cases[] = {
      {with("critic", {{"judge", gan.critic}}),
       "saved training: other contents: model 'judge' is missing, model 'critic' is unexpected"},
      {with("critic", {}), "saved training: other contents: model 'critic' is unexpected"},
      {with("", {{"third", wide}}), "saved training: other contents: model 'third' is missing"},
      {with("opt_c", {}), "saved training: other contents: sgd 'opt_c' is unexpected"},
      {with("", {{"opt_d", other_kind}}), "saved training: other contents: adam 'opt_d' is missing"},
      {with("opt_c", {{"opt_c", other_kind}}), "saved training: other contents: 'opt_c' is 'sgd', expected adam"},
      {with("seen", {{"seen", number}}), "saved training: other contents: 'seen' is 'integer', expected number"},
      {with("note", {{"note", gan.best}}), "saved training: other contents: 'note' is 'text', expected best"},
      {with("critic", {{"critic", wide}}), "model 'critic': load_state_dict: the tensors do not fit this module"},
      {with("critic", {{"critic", flat}}), "model 'critic': load_state_dict: the tensors do not fit this module"},
      {with("critic", {{"critic", doubles}}), "model 'critic': load_state_dict: 0.weight is f32, this module's is f64"},
      {with("opt_g", {{"opt_g", fewer}}), "adam 'opt_g': adam: the state '1.step' is unknown to these 1 parameters"},
      {with("average", {{"average", other_average}}),
       "average 'average': ema: the state '2.average' is f32 [2, 4], expected f32 [1, 4]"},
      {with("centre", {{"centre", three}}), "tensor 'centre': it is f32 [2], expected f32 [3]"},
      {with("centre", {{"centre", f64}}), "tensor 'centre': it is f32 [2], expected f64 [2]"},
      {with("last", {{"last", [] { return 1.0; }, [](double) { check(false, "no such number"); }}}),
       "number 'last': no such number"},
  };
  for (const auto& one : cases) {
    const std::vector<Content>& contents = one.first;
    const Generator random = default_generator();
    const std::string message = test::thrown([&] { SavedTraining(f / "gan", contents); });
    INFO(message);
    CHECK_THAT(message, StartsWith(f / "gan: "));
    CHECK_THAT(message, Contains(one.second));
    CHECK(default_generator() == random);
    CHECK((saved_bytes(f, gan, 5) == before));
  }
  CHECK_NOTHROW(SavedTraining(f / "gan", gan.contents()));

  manual_seed(1);
  int big = 300;
  nn::Linear net(1, 1);
  SavedTraining(f / "big", {{"net", net}, {"big", big}}).save(1);
  CHECK_THROWS_WITH(SavedTraining(f / "big", {{"net", net}, {"big", small}}),
                    f / "big: integer 'big': it is 300, expected an integer of 1 bytes");
  CHECK(small == 0);
}

TEST_CASE("saved training: names of contents are checked when they are given") {
  nn::Linear net(1, 1);
  for (const char* name : {"", "a.b", "a b", "ä"})
    CHECK_THROWS_WITH(Content(name, net), Contains("expected letters, digits, _ and -"));
  CHECK_THROWS_WITH(SavedTraining("none", {{"net", net}, {"net", net}}),
                    "saved training: two contents have the name 'net'");
}

TEST_CASE("saved training: contents without a model or tensor are refused when they are given") {
  const TempFolder f;
  nn::Linear net(1, 1);
  nn::Sequential empty{nn::Relu()};
  optim::Sgd sgd(net.parameters());
  int seen = 0;
  CHECK_THROWS_WITH(SavedTraining(f / "c", {{"opt", sgd}, {"seen", seen}, {"net", empty}}),
                    "saved training: a checkpoint needs a model with parameters or a tensor, the contents are "
                    "sgd 'opt', integer 'seen', model 'net'");
  CHECK_THROWS_WITH(SavedTraining(f / "c", std::vector<Content>()), Contains("the contents are none"));
  SavedTraining(f / "c", {{"opt", sgd}, {"x", [] { return ones({2}); }, [](const Tensor&) {}}}).save(1);
  CHECK(f.files() == 1);
}

TEST_CASE("saved training: a number beyond the range of float is refused") {
  const TempFolder f;
  nn::Linear net(1, 1);
  float small = 3;
  auto check_refused = [&](double number, const std::string& said) {
    SavedTraining(f / said, {{"net", net}, {"x", number}}).save(1);
    CHECK_THROWS_WITH(SavedTraining(f / said, {{"net", net}, {"x", small}}), Contains("number 'x': it is " + said));
    CHECK_THROWS_WITH(
        SavedTraining(f / said, {{"net", net}, {"x", [] { return 0.f; }, [](float) { FAIL("it was taken"); }}}),
        Contains("it is " + said));
    CHECK(small == 3);
  };
  check_refused(1e300, "1e+300, which is inf in f32");
  check_refused(1e-300, "1e-300, which is 0 in f32");
  for (double number : {HUGE_VAL, 0.1}) {
    std::filesystem::remove(f / "y");
    SavedTraining(f / "y", {{"net", net}, {"x", number}}).save(1);
    SavedTraining(f / "y", {{"net", net}, {"x", small}});
    CHECK(small == static_cast<float>(number));
  }
}

TEST_CASE("saved training: a model and its optimizer have the file of earlier versions, which others read") {
  const TempFolder f;
  manual_seed(7);
  nn::Linear net(2, 3);
  optim::AdamW adamw(net.parameters());
  BestLoss best;
  for (const Tensor& p : net.parameters()) set_grad(p, ones_like(p));
  adamw.step();
  best.take(4, 0.5);
  const Checkpoint earlier{net.state_dict(),
                           adamw.state_dict(),
                           {{"step", "5"},
                            {"optimizer", "adamw"},
                            {"random seed", text(default_generator().seed)},
                            {"random offset", text(default_generator().offset)},
                            {"tests", best.written()}}};
  save_checkpoint(f / "earlier", earlier);
  SavedTraining(f / "now", net, adamw, best).save(5);
  CHECK((read_bytes(f / "now") == read_bytes(f / "earlier")));

  nn::Linear other(2, 3);
  optim::AdamW adamw_of_other(other.parameters());
  BestLoss none;
  CHECK(SavedTraining(f / "earlier", other, adamw_of_other, none).done() == 5);
  CHECK(none.written() == best.written());
  CHECK(other.weight.to_vector<float>() == net.weight.to_vector<float>());
  CHECK(adamw_of_other.state_dict().at("0.exp_avg").to_vector<float>() ==
        adamw.state_dict().at("0.exp_avg").to_vector<float>());
  CHECK_THROWS_WITH(SavedTraining(f / "earlier", other, adamw_of_other),
                    f / "earlier: saved training: other contents: best 'best' is unexpected");
  nn::Linear named(2, 3);
  optim::AdamW adamw_of_named(named.parameters());
  CHECK(SavedTraining(f / "earlier", {{"model", named}, {"optimizer", adamw_of_named}, {"best", none}}).done() == 5);
  CHECK(named.bias.to_vector<float>() == net.bias.to_vector<float>());
  CHECK_THROWS_WITH(SavedTraining(f / "earlier", {{"net", named}, {"optimizer", adamw_of_named}, {"best", none}}),
                    Contains("model 'net' is missing, model 'model' is unexpected"));

  // Before the first test there is no best loss.
  BestLoss first;
  SavedTraining(f / "short", net, adamw).save(1);
  CHECK(SavedTraining(f / "short", net, adamw, first).done() == 1);
  SavedTraining(f / "first", net, adamw, first).save(1);
  CHECK((read_bytes(f / "first") == read_bytes(f / "short")));
  CHECK(SavedTraining(f / "first", net, adamw, none).done() == 1);
  CHECK(none.written() == first.written());
  first.take(2, NAN);
  SavedTraining(f / "nan", {{"net", net}, {"best", first}}).save(2);
  SavedTraining(f / "nan", {{"net", net}, {"best", none}});
  CHECK((none.since() == 1 && none.last_step() == 2 && none.step() == 0));
}

TEST_CASE("saved training: a file of earlier versions that names the model and the optimizer is read") {
  const TempFolder f;
  manual_seed(7);
  nn::Linear net(2, 3), other(2, 3);
  optim::AdamW adamw(net.parameters()), adamw_of_other(other.parameters());
  for (const Tensor& p : net.parameters()) set_grad(p, ones_like(p));
  adamw.step();
  Checkpoint earlier{{},
                     {},
                     {{"step", "5"},
                      {"random seed", "1"},
                      {"random offset", "2"},
                      {"content.model", "model"},
                      {"content.optimizer", "adamw"},
                      {"content.best", "best 0.5 4 0 4"}}};
  for (const auto& [name, x] : net.state_dict()) earlier.weights.add("model." + name, x);
  for (const auto& [name, x] : adamw.state_dict()) earlier.optimizer.add("optimizer." + name, x);
  save_checkpoint(f / "earlier", earlier);
  BestLoss best;
  SavedTraining saved(f / "earlier", other, adamw_of_other, best);
  CHECK(saved.done() == 5);
  CHECK(best.step() == 4);
  CHECK(other.weight.to_vector<float>() == net.weight.to_vector<float>());
  saved.save(6);
  const Checkpoint now = load_checkpoint(f / "earlier");
  CHECK(now.weights.at("weight").to_vector<float>() == net.weight.to_vector<float>());
  CHECK(now.optimizer.find("0.exp_avg") != nullptr);
  CHECK(SavedTraining(f / "earlier", net, adamw, best).done() == 6);
}

TEST_CASE("saved training: a content may not have the name of a part of the model") {
  const TempFolder f;
  nn::Sequential net{nn::Linear(2, 3)};
  Tensor x = ones({2});
  CHECK_THROWS_WITH(SavedTraining(f / "c", {{"model", net}, {"0", x}}).save(1),
                    "saved training: '0' is the name of a content and of a part of another one");
  SavedTraining(f / "c", {{"net", net}, {"0", x}}).save(1);
  CHECK(f.files() == 1);
}

TEST_CASE("saved training: what cannot be saved leaves the file and the one before it") {
  const TempFolder f;
  manual_seed(7);
  nn::Linear net(2, 3);
  optim::Ema average(net.parameters());
  bool fails = false;
  const auto number = [&] {
    check(!fails, "no number");
    return 1;
  };
  const std::vector<Content> contents = {{"net", net}, {"average", average}, {"n", number, [](int) {}}};
  SavedTraining saved(f / "c", contents);
  saved.save(1), saved.save(2);
  const std::vector<uint8_t> file = read_bytes(f / "c"), previous = read_bytes(f / "c.previous");
  CHECK((file != previous));
  fails = true;
  CHECK_THROWS_WITH(saved.save(3), "no number");
  fails = false;
  average.apply();
  CHECK_THROWS_WITH(saved.save(3), Contains("the averages are in the parameters; call restore()"));
  average.restore();
  CHECK((read_bytes(f / "c") == file));
  CHECK((read_bytes(f / "c.previous") == previous));
  CHECK(f.files() == 2);
  CHECK(SavedTraining(f / "c", contents).done() == 2);
  Tensor none;
  std::string bytes = "\xff";
  for (const Content& wrong : {Content("x", none), Content("x", bytes)})
    CHECK_THROWS(SavedTraining(f / "other", {{"net", net}, wrong}).save(1));
  CHECK(f.files() == 2);
  CHECK_THROWS_WITH(saved.save(-1), "saved training: save(-1), expected the number of steps done");
}

TEST_CASE("saved training: the tensors of a single content, for a program that does not train") {
  const TempFolder f;
  nn::Linear a(2, 3), b(3, 1), other(3, 1);
  optim::Sgd sgd(a.parameters());
  SavedTraining(f / "two", {{"a", a}, {"b", b}}).save(1);
  other.load_state_dict(saved_tensors(f / "two", "b"));
  CHECK(other.weight.to_vector<float>() == b.weight.to_vector<float>());
  CHECK_THROWS_WITH(saved_tensors(f / "two", "c"), f / "two: saved training: there is no content 'c' among a, b");
  SavedTraining(f / "one", a, sgd).save(1);
  CHECK(saved_tensors(f / "one", "model").at("bias").to_vector<float>() == a.bias.to_vector<float>());
  CHECK_THROWS_WITH(saved_tensors(f / "one", "a"), Contains("no content 'a' among model, optimizer"));
}

TEST_CASE("load_model explains how a user's model is loaded, and that loads it") {
  const TempFolder f;
  nn::Linear net(2, 3), other(2, 3), trained(2, 3);
  save_model(f / "net.safetensors", net);
  CHECK_THROWS_WITH(load_model(f / "net.safetensors"),
                    f / "net.safetensors: load_model: the file does not say what model it holds (no entry "
                        "'model.kind'); load it into a model of your own: "
                        "model.load_state_dict(training::load_model_file(path).state)");
  other.load_state_dict(load_model_file(f / "net.safetensors").state);
  CHECK(other.weight.to_vector<float>() == net.weight.to_vector<float>());
  optim::Sgd sgd(net.parameters());
  SavedTraining(f / "net.ckpt", net, sgd).save(1);
  CHECK_THROWS_WITH(load_model(f / "net.ckpt"), Contains("net.ckpt: load_model: the file does not say what model"));
  trained.load_state_dict(load_model_file(f / "net.ckpt").state);
  CHECK(trained.weight.to_vector<float>() == net.weight.to_vector<float>());
}

TEST_CASE("saved training: a loop whose rate falls on a plateau resumes with the same bits") {
  const TempFolder f;
  struct Run {
    nn::Linear net{2, 1};
    optim::Sgd sgd{net.parameters(), {.momentum = 0.5}};
    optim::ReduceOnPlateau plateau{0.1, {.factor = 0.5, .patience = 0, .threshold = 0.5}};
    BestLoss best;
    std::vector<double> rates;
    Step step{net, sgd, [](nn::Module& m, const Examples& e) { return mse_loss(m(e.inputs), e.targets); }};
    Loop loop{step,
              [](int64_t t) {
                Generator g{3, static_cast<uint64_t>(t) << 20};
                return Examples{randn({4, 2}, {}, g), ones({4, 1})};
              },
              std::ref(plateau)};
    SavedTraining saved;
    explicit Run(const std::string& path)
        : saved(path, {{"net", net}, {"sgd", sgd}, {"plateau", plateau}, {"best", best}}) {
      loop.every(1, [this](const TrainingStep& s) { return rates.push_back(s.lr), true; });
      loop.every(2, [this](const TrainingStep& s) {
        plateau.take(s.loss);
        return best.take(s.step, s.loss), true;
      });
      loop.every(1, std::ref(saved));
    }
  };
  manual_seed(7);
  Run whole(f / "whole");
  whole.loop.run(12);
  CHECK(whole.rates.front() == 0.1);
  CHECK(whole.rates.back() < 0.03);  // it fell more than once
  for (const int stop : {1, 6, 11}) {
    manual_seed(7);
    Run begun(f / text("part", stop));
    begun.loop.run(stop);
    Run resumed(f / text("part", stop));
    REQUIRE(resumed.saved.done() == stop);
    resumed.loop.run(12, stop);
    CHECK(resumed.rates == std::vector<double>(whole.rates.begin() + stop, whole.rates.end()));
    CHECK((read_bytes(f / text("part", stop)) == read_bytes(f / "whole")));
  }
  static_assert(!std::is_copy_constructible_v<optim::ReduceOnPlateau>);
}

TEST_CASE("saved training: tensors alone, and a tensor that an optimizer holds stays its own") {
  const TempFolder f;
  const Tensor w = full({2}, 3).require_grad();
  optim::Sgd sgd({w}, {.lr = 1, .momentum = 0.5});
  SavedTraining(f / "w", {{"w", w}, {"sgd", sgd}}).save(1);
  copy_into(detach(w), zeros({2}));
  const SavedTraining saved(f / "w", {{"w", w}, {"sgd", sgd}});
  CHECK(w.to_vector<float>() == std::vector<float>{3, 3});
  set_grad(w, ones({2}));
  sgd.step();
  CHECK(w.to_vector<float>() == std::vector<float>{2, 2});
}
