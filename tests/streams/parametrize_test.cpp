// Layouts: models that are put on one stream after another, and layouts that are refused.
#include "streams/parametrize.h"

#include "nn/linear.h"
#include "streams/plan.h"
#include "tests/equivalence/room.h"

using namespace isonorm::nn;
using streams::Layout;
using streams::parametrize;
using streams::Stream;
using streams::stream_of;

namespace {

constexpr int64_t kWidth = 8;
constexpr double kClose = 64 * 12 * 0x1p-52;  // sums of 12 terms after norms, which divide by deviations of order 1
const TransformerOptions kOneBlock{.width = kWidth, .depth = 1, .heads = 2};

Stream on(Form form) { return Stream(form, kWidth); }

// x <- x + down(relu(up(norm1(x)))), a norm, and a head.
template <class N> struct Net : Module {
  Linear& entry = add("entry", Linear(5, kWidth));
  N& norm1 = add("norm1", N(kWidth));
  Linear& up = add("up", Linear(kWidth, 12));
  Linear& down = add("down", Linear(12, kWidth));
  N& norm = add("norm", N(kWidth));
  Linear& head = add("head", Linear(kWidth, 3));
  Net() {
    to(DType::f64);
    manual_seed(3);
    for (const Tensor& p : parameters()) copy_into(p, randn(p.shape(), {DType::f64}) * 0.4 + 0.2);
  }
  Tensor forward(const Tensor& in) override {
    Residual x = entry(in);
    x += down(relu(up(norm1(x))));
    return head(norm(x));
  }
};

Layout layout() { return Layout().writes("entry").writes("down").reads("up", "norm1").reads("head", "norm"); }

struct Nets : Module {
  Net<LayerNorm>& a = add("a", Net<LayerNorm>());
  Net<LayerNorm>& b = add("b", Net<LayerNorm>());
  Tensor forward(const Tensor& x) override { return a(x) + b(x); }
};

struct Exp : Parametrisation {
  Tensor operator()(const Tensor& stored) const override { return exp(stored); }
};

}  // namespace

TEST_CASE("layout: a plain model is one function on every stream, and on one after the other") {
  Net<LayerNorm> net;
  const Tensor x = randn({6, 5}, {DType::f64}), plain = net(x);
  const std::vector<double> stored = net.entry.weight.to_vector<double>();
  for (const bool centred : {false, true})
    for (const Form form : {Form::crms_norm, Form::rms_norm, Form::crms_isometric, Form::layer_norm, Form::crms_norm}) {
      INFO(name_of(form) << (centred ? ", centred readers" : ""));
      parametrize(net, layout(), Stream(form, kWidth, Stored::raw, centred));
      CHECK(stream_of(net)->form() == form);
      check_close(net(x), plain, kClose);
      CHECK(net.entry.weight.to_vector<double>() == stored);
    }
}

TEST_CASE("layout: removing a stream removes everything that it attached") {
  Net<LayerNorm> net;
  const Tensor x = randn({6, 5}, {DType::f64}), plain = net(x);
  for (const Form form : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
    INFO(name_of(form));
    parametrize(net, layout(), on(form));
    CHECK_THROWS_WITH(parametrize(net, layout().writes("typo"), on(Form::layer_norm)), Contains("\"typo\""));
    CHECK(stream_of(net)->form() == form);  // nothing has changed
    check_close(net(x), plain, kClose);
    CHECK_THROWS_WITH(parametrize(net, layout(), Stream(Form::crms_norm, kWidth, Stored::mapped)),
                      Contains("use raw storage"));
    check_close(net(x), plain, kClose);
    CHECK_THROWS_WITH(parametrize(net, Layout(), on(form)),
                      Contains("layout: it is empty, so " + std::string(name_of(form))));
    parametrize(net, Layout(), on(Form::layer_norm));
    CHECK(stream_of(net) == nullptr);
    check_close(net(x), plain, 0);
  }
}

TEST_CASE("layout: two streams of a model, and a norm that no layout names, are not mixed up") {
  Nets two;
  const auto of = [](const std::string& net) {
    return Layout()
        .writes(net + "entry")
        .writes(net + "down")
        .reads(net + "up", net + "norm1")
        .reads(net + "head", net + "norm");
  };
  const Tensor x = randn({6, 5}, {DType::f64}), plain = two(x);
  parametrize(two, of("a."), on(Form::rms_norm));
  parametrize(two, of("b."), on(Form::rms_norm));
  check_close(two(x), plain, 2 * kClose);
  // A norm of compressed rows that the layout does not name is an error, not another function.
  Net<LayerNorm> net;
  parametrize(net, Layout().writes("entry").writes("down").reads("up", "norm1"), on(Form::crms_norm));
  CHECK_THROWS_WITH(net(x), Contains("norm: rows of shape [6, 7], its width is 8"));
}

TEST_CASE("layout: a handle of a reader outlives its model") {
  Parameter weight, bias;
  Tensor seen, added;
  {
    Net<LayerNorm> net;
    parametrize(net, layout(), on(Form::crms_norm));
    weight = net.up.weight, bias = net.up.bias;
    seen = weight(), added = bias();
  }
  CHECK(weight().to_vector<double>() == seen.to_vector<double>());
  CHECK(bias().to_vector<double>() == added.to_vector<double>());
}

TEST_CASE("layout: a pattern matches parameters outside of layers, and no layer's own") {
  struct Placed : Net<LayerNorm> {
    Parameter& entry_shift = add_parameter("entry_shift", randn({kWidth}, {DType::f64}));
    Tensor forward(const Tensor& in) override {
      Residual x = entry(in) + entry_shift();
      x += down(relu(up(norm1(x))));
      return head(norm(x));
    }
  } net;
  const Tensor x = randn({6, 5}, {DType::f64}), plain = net(x);
  const auto rest = [](Layout l) { return l.writes("down").reads("up", "norm1").reads("head", "norm"); };
  parametrize(net, rest(Layout().writes("entr*")), on(Form::rms_norm));
  check_close(net(x), plain, kClose);
}

TEST_CASE("layout: mapped storage holds the forward's values") {
  for (const Form form : {Form::crms_norm, Form::rms_norm, Form::crms_isometric}) {
    INFO(name_of(form));
    Net<LayerNorm> seen, net;
    for (Net<LayerNorm>* n : {&seen, &net})
      for (LayerNorm* norm : {&n->norm1, &n->norm}) fill(norm->weight, 1), fill(norm->bias, 0);
    parametrize(seen, layout(), on(form));
    struct Bare : LayerNorm {
      explicit Bare(int64_t width) : LayerNorm(width, {.affine = false}) {}
    };
    Net<Bare> bare;
    bare.load_state_dict(seen.state_dict(), {.strict = false});
    const Tensor x = randn({6, 5}, {DType::f64}), y = seen(x);
    CHECK_THROWS_WITH(streams::bake(bare), "bake: the model was not put on a stream as a whole");
    parametrize(bare, layout(), on(form));
    streams::bake(bare);
    CHECK(stream_of(bare)->storage() == Stored::mapped);
    CHECK(bare.entry.weight.to_vector<double>() == seen.entry.weight().to_vector<double>());
    CHECK(bare.down.bias.to_vector<double>() == seen.down.bias().to_vector<double>());
    check_close(bare(x), y, kClose);
    CHECK_THROWS_WITH(parametrize(bare, layout(), on(form)), Contains("mapped to a stream already"));
    if (form != Form::rms_norm)
      CHECK_THROWS_WITH(parametrize(net, layout(), Stream(form, kWidth, Stored::mapped)),
                        Contains("take up its learned gain"));
  }
}

TEST_CASE("layout: a model that it does not fit is refused in one line") {
  const Stream stream(Form::crms_norm, kWidth);
  const auto refused = [&](const Layout& l, const Stream& s, const char* line) {
    Net<LayerNorm> net;
    CHECK_THROWS_WITH(parametrize(net, l, s), Contains(line));
  };
  refused(Layout().writes("entrance"), stream, "no tensor is called \"entrance\"");
  refused(Layout().writes("*"), stream, "head writes 3, the stream's width is 8");
  refused(layout().writes("entr*"), stream, "tensor 'entry.weight' is \"entry\" and \"entr*\" at once");
  refused(layout().reads("dow*", "norm"), stream, "tensor 'down.weight' is \"down\" and \"dow*\" at once");
  refused(Layout().reads("norm1", "norm"), stream, "no tensor is called \"norm1\"");
  refused(Layout().writes("down.weight"), stream, "'down.weight' is a writer, and 'down.bias' is none");
  refused(Layout().writes("down.bias"), stream, "'down.bias' is a writer, and 'down.weight' is none");
  refused(Layout().writes("down", 1), stream,
          "the stream is dimension 1 of 'down.weight', of its layer's weight it is 0");
  refused(Layout().reads("up", "norm1", 0), stream, "the stream is dimension 0 of 'up.weight'");
  refused(layout().width(9), stream, "its width is 9, the stream's 8");
  refused(layout().norm("norm1", 1e-6), stream, "norm 'norm1' has eps 1e-06, in the model 1e-05");
  refused(layout().scale("down.weight", "gamma"), stream,
          "the layer scale 'gamma' does not belong to a BranchOutput 'down'");
  refused(layout().tied({"entry.weight", "out.weight", "", "norm"}), stream, "the model has no head 'out.weight'");
  refused(Layout().reads("up", "norm2"), stream, "'up' reads through 'norm2', which is not a norm of this model");
  refused(Layout().reads("up", "*"), stream, "more stars");
  refused(Layout().writes("up"), stream, "up writes 12, the stream's width is 8");
  refused(layout(), Stream(Form::rms_norm, 9), "the stream's width is 9");
  Gpt gpt({.vocab = 5, .context = 4, .transformer = kOneBlock});
  CHECK_THROWS_WITH(parametrize(gpt, Layout().writes("token"), Stream(Form::rms_norm, 9)),
                    Contains("token writes 8, the stream's width is 9"));
  refused(layout(), on(Form::none), "is layer_norm; none is another function's form");
  Net<RMSNorm> rms;
  CHECK_THROWS_WITH(parametrize(rms, layout(), stream),
                    Contains("is rms_norm, which sees the mean of its rows; crms_norm is LayerNorm's model"));
}

TEST_CASE("layout: a program's own parametrisation is applied before the stream's, or refused") {
  for (const Form form : {Form::rms_norm, Form::crms_norm, Form::crms_isometric}) {
    INFO(name_of(form));
    Net<LayerNorm> net;
    for (Parameter* p : {&net.entry.bias, &net.down.weight}) p->parametrize(std::make_shared<Exp>());
    const Tensor x = randn({6, 5}, {DType::f64}), plain = net(x);
    parametrize(net, layout(), on(form));
    check_close(net(x), plain, 4 * kClose);
    const Tensor before = net.down.weight();
    parametrize(net, layout(), on(form));  // the stream's are replaced
    CHECK(net.down.weight.parametrisations().size() == 2);
    check_close(net.down.weight(), before, 0);
    CHECK_THROWS_WITH(streams::plan_of(net), Contains("'entry.bias' has a parametrisation of its own"));
    CHECK_THROWS_WITH(parametrize(net, layout(), Stream(form, kWidth, Stored::mapped)), Contains("of its own"));
    parametrize(net, Layout(), on(Form::layer_norm));
    check_close(net(x), plain, 0);
    // Readers that fold a norm's gain read stored values.
    net.up.weight.parametrize(std::make_shared<Exp>());
    if (form == Form::rms_norm)
      CHECK_NOTHROW(parametrize(net, layout(), on(form)));
    else
      CHECK_THROWS_WITH(parametrize(net, layout(), on(form)),
                        Contains("a parameter of 'up' has a parametrisation of its own"));
  }
}

TEST_CASE("layout: statements that hold for no model are refused when they are made") {
  CHECK_THROWS_WITH(Layout().writes(""), Contains("a pattern is empty"));
  CHECK_THROWS_WITH(layout().writes("entry"), Contains("\"entry\" has two roles on the stream"));
  CHECK_THROWS_WITH(layout().reads("down", "norm"), Contains("\"down\" has two roles"));
  CHECK_THROWS_WITH(Layout().writes("*.*.*.*"), Contains("more than three stars"));
  CHECK_THROWS_WITH(Layout().norm("norm", 1e-5).norm("norm", 1e-5), Contains("norm \"norm\" is there twice"));
}

TEST_CASE("layout: a description of a file puts the model on a stream as lines of a program do") {
  Net<LayerNorm> by_lines, by_file;
  const Tensor x = randn({6, 5}, {DType::f64});
  const Layout file = Layout::from_json(R"({"width": 8, "norms": {"norm*": "1e-5"},
      "writers": {"entry.weight": 0, "entry.bias": 0, "down": 0},
      "readers": {"up.weight": {"dim": 1, "norm": "norm1"}, "head": {"dim": 1, "norm": "norm"}}})");
  for (const Form form : {Form::rms_norm, Form::crms_norm}) {
    INFO(name_of(form));
    parametrize(by_lines, layout(), on(form));
    parametrize(by_file, file, on(form));
    check_close(by_file(x), by_lines(x), 0);
    CHECK(streams::named_parameters(by_file)[7].role == streams::Role::writer);  // down.bias
  }
}

TEST_CASE("layout: a copy of a model is on its stream, and a layer of such a model is not replaced") {
  Net<LayerNorm> net;
  const Tensor x = randn({6, 5}, {DType::f64});
  net.replace("head", [] {
    Linear head(kWidth, 3);
    head.to(DType::f64);
    return head;
  }());
  const Tensor plain = net(x);
  for (const Form form : {Form::rms_norm, Form::crms_norm}) {
    INFO(name_of(form));
    parametrize(net, layout(), on(form));
    auto copy = nn::clone(net);
    REQUIRE(stream_of(copy) != nullptr);
    CHECK(stream_of(copy)->form() == form);
    CHECK(copy.norm.spec().kind == net.norm.spec().kind);
    check_close(copy(x), net(x), 0);
    fill(net.norm.weight, 2);  // the copy has its own norm
    check_close(copy(x), plain, kClose);
    fill(net.norm.weight, 1);
    copy_into(net.norm.weight, copy.norm.weight);
    CHECK_THROWS_WITH(net.replace("head", Linear(kWidth, 3)),
                      Contains("'head' is part of a model that was parametrized as a whole"));
  }
  struct Whole : Module {
    Net<LayerNorm>& net = add("net", Net<LayerNorm>());
    Tensor forward(const Tensor& in) override { return net(in); }
  } whole;
  parametrize(whole.net, layout(), on(Form::crms_norm));
  CHECK(stream_of(nn::clone(whole)) != nullptr);
}

TEST_CASE("layout: norms must be those that the form's plain model has") {
  Net<RMSNorm> rms;
  for (const Form form : {Form::layer_norm, Form::crms_norm, Form::none})
    CHECK_THROWS_WITH(parametrize(rms, layout(), on(form)), Contains("is rms_norm"));
  const Tensor x = randn({6, 5}, {DType::f64}), plain = rms(x);
  parametrize(rms, layout(), on(Form::uncentred_rms_norm));
  check_close(rms(x), plain, 0);
  for (const Form form : {Form::uncentred_rms_norm, Form::none})
    CHECK_THROWS_WITH(Stream(form, kWidth, Stored::raw, true), Contains("have a mean"));
  Gpt bare({.vocab = 5, .context = 4, .transformer = {.width = 8, .depth = 1, .heads = 2, .norm = NormKind::none}});
  CHECK_THROWS_WITH(parametrize(bare, streams::layout_of(bare), on(Form::rms_norm)),
                    "layout: no norm of the model normalizes; rms_norm is another function's form");
}

TEST_CASE("layout: parts that it does not name are unchanged, and parts on different streams are kept apart") {
  struct Pair : Module {
    Net<LayerNorm>& a = add("a", Net<LayerNorm>());
    TransformerStack& b = add("b", TransformerStack({.width = kWidth, .depth = 2, .heads = 2}));
  } pair;
  pair.b.to(DType::f64);
  const Tensor x = randn({6, 5}, {DType::f64}), rows = randn({2, 3, kWidth}, {DType::f64});
  const Tensor a = pair.a(x), b = pair.b(rows);
  for (const Form form : {Form::rms_norm, Form::crms_norm}) {
    INFO(name_of(form));
    parametrize(pair, Layout().with("a", layout()), on(form));
    check_close(pair.a(x), a, kClose);
    check_close(pair.b(rows), b, 0);
  }
  Nets nets;
  for (const Form first : {Form::layer_norm, Form::crms_norm, Form::crms_isometric}) {
    INFO(name_of(first));
    parametrize(nets.a, layout(), on(first));
    parametrize(nets.b, layout(), on(Form::rms_norm));
    CHECK_THROWS_WITH(stream_of(nets), Contains("parts of the model are on different streams"));
    parametrize(nets, Layout(), on(Form::layer_norm));
    CHECK(stream_of(nets) == nullptr);
    check_close(nets.a(x), a, kClose);
    check_close(nets.b(x), a, kClose);
  }
  nets.replace("a", Net<LayerNorm>());  // this child is on no stream
}

TEST_CASE("layout: what would be another function unseen is refused") {
  struct Matrix : Module {
    Parameter& square = add_parameter("square", randn({kWidth, kWidth}));
  } matrix;
  CHECK_THROWS_WITH(parametrize(matrix, Layout().writes("square"), on(Form::rms_norm)),
                    Contains("which dimension of 'square' of shape [8, 8] is the stream is not said"));
  parametrize(matrix, Layout().writes("square", 0), on(Form::rms_norm));
  Gpt whole = streams::make<Gpt>({.vocab = 5, .context = 4, .transformer = kOneBlock}, {.form = Form::rms_norm});
  CHECK_THROWS_WITH(nn::clone(static_cast<TransformerStack&>(*whole.children()[2]), kOneBlock),
                    Contains("'blocks' is part of a model that was parametrized as a whole"));
  struct Branch : Module {
    BranchOutput& up = add("up", BranchOutput(kWidth, kWidth, true, {.dropout = 0.1}));
    LayerNorm& norm = add("norm", LayerNorm(kWidth));
  } branch;
  CHECK_THROWS_WITH(parametrize(branch, Layout().reads("up", "norm"), on(Form::rms_norm)),
                    Contains("'up' ends a branch"));
  Layout same = layout();
  CHECK(same.with("x", same)
            .entries_of(std::vector<std::string>{"x.entry.weight", "entry.weight", "down.weight", "x.down.weight",
                                                 "up.weight", "x.up.weight", "head.weight", "x.head.weight"})[0]
            .role == streams::Role::writer);
}
