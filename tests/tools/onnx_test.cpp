// isonorm export IN OUT.onnx: what a program that runs ONNX files (onnx_runtime.h) computes of the file is what the
// model computes. The same files in onnxruntime against transformers: tests/fixtures/run_onnx.py.
#include "autograd/grad_mode.h"
#include "autograd/ops/random.h"
#include "exchange/onnx/graph.h"
#include "nn/residual/all.h"
#include "tests/tools/onnx_runtime.h"
#include "tests/tools/small_run.h"

namespace {

double off(const Tensor& ours, const Tensor& theirs) {
  REQUIRE(ours.shape() == theirs.shape());
  const Tensor a = ours.to(DType::f64), b = theirs.to(DType::f64);
  return amax(abs(a - b)).item() / amax(abs(b)).item();
}

// The model that the file holds, in the file's dtype and as ONNX in f32 and f64: in both opsets, for two shapes of the
// input.
void check_exports(const Folder& f, const std::string& name) {
  const NoGrad no_grad;
  const training::OpenModelFile file = training::open_model_file(f / name);
  training::ModelOptions options(file.description), stored = options;
  if (training::stored_form(options) == streams::Form::layer_norm) stored.stream() = {};
  const Metadata said = stored.description();
  const auto model = training::load_model(f / name);
  model->to(DType::f64);
  const bool ids = options.row().input == training::Input::text;
  const Tensor all = options.inputs(3, 5),
               some = ids ? narrow(narrow(all, 1, 0, all.size(1) - 2), 0, 0, 2) : narrow(all, 0, 0, 1);
  for (const char* opset : {"17", "23"})
    for (const DType dtype : {DType::f32, DType::f64}) {
      INFO(name << " opset " << opset << ' ' << name_of(dtype));
      f.succeeds(text("export @", name, " @out.onnx --opset ", opset, " --dtype ", name_of(dtype)));
      const onnx_runtime::Model exported = onnx_runtime::open(f / "out.onnx");
      CHECK(exported.opset == std::stoi(opset));
      CHECK_FALSE(exported.apart);
      CHECK(exported.metadata == said);
      for (const Tensor& x : {all, some}) {
        const Tensor y = onnx_runtime::run(exported, ids ? x : x.to(dtype));
        CHECK(y.dtype() == dtype);
        // Sums of at most 64 products in two blocks; 100 roundings are more than they give.
        CHECK(off(y, (*model)(ids ? x : x.to(DType::f64))) < 100 * epsilon(dtype));
      }
    }
}

// Writes a model with random numbers in every parameter.
void make(const Folder& f, const std::string& name, const training::ModelOptions& options) {
  const auto model = options.make();
  Generator generator{7, 0};
  const NoGrad no_grad;
  for (const nn::NamedParameter& p : model->named_parameters())
    copy_into(p.tensor, p.tensor + 0.3 * randn(p.tensor.shape(), p.tensor.options(), generator));
  training::save_model(f / name, *model);
}

}  // namespace

TEST_CASE("onnx: published models and their converted forms") {
  const Folder f;
  for (const char* name : {"gpt2", "gpt2_untied", "gpt_neox", "llama", "qwen3", "stablelm", "gpt_bigcode", "phi",
                           "falcon", "mpt", "opt", "vit"}) {
    const std::string ports = text("tests/fixtures/ports/", name);
    f.succeeds(
        text("import ", std::filesystem::exists(ports) ? ports : text("tests/fixtures/families/", name), " @", name));
    check_exports(f, name);
    if (training::open_model_file(f / name).description.at("model.form") != "layer_norm") continue;
    for (const char* form : {"rms_norm", "crms_norm", "crms_isometric"}) {
      const std::string converted = text(name, '.', form);
      f.succeeds(text("convert @", name, " @", converted, " --to ", form, " -q"));
      check_exports(f, converted);
    }
  }
}

TEST_CASE("onnx: weights too large for protobuf are in a second file") {
  const Folder f;
  f.succeeds("import tests/fixtures/families/gpt2 @model");
  const training::OpenModelFile file = training::open_model_file(f / "model");
  onnx::Graph graph(DType::f64, 17);
  const onnx::Value x = graph.input("x", DType::f64, {"rows", 12});
  const std::string one = "blocks.0.mlp.fc1.weight", other = "blocks.1.mlp.fc1.weight";
  const onnx::Value y = graph.add("MatMul", {x, graph.weight(one, true)});
  graph.output("y", graph.add("Add", {y, graph.add("MatMul", {x, graph.weight(other, true)})}), {"rows", 48});
  const Tensor rows = randn({3, 12}, {.dtype = DType::f64});
  const Tensor sum = file.state.read(one).to(DType::f64) + file.state.read(other).to(DType::f64);
  for (const int64_t most : {100'000, 10'000}) {
    graph.save(f / "out.onnx", file.state, {}, most);
    const onnx_runtime::Model exported = onnx_runtime::open(f / "out.onnx");
    CHECK(exported.apart == (most == 10'000));
    CHECK(off(onnx_runtime::run(exported, rows), matmul(rows, transpose(sum, 0, 1))) < 100 * epsilon(DType::f64));
  }
  graph.save(f / "out.onnx", file.state, {}, 10'000);  // replaces its own data file, but not another program's
  for (const char* model : {"", "of another program"}) {
    if (*model) write_text(f / "other.onnx", model);
    write_text(f / "other.onnx.data", "somebody's");
    CHECK_THROWS_WITH(graph.save(f / "other.onnx", file.state, {}, 10'000), Contains("other.onnx.data: is in the way"));
    CHECK(read(f / "other.onnx.data") == "somebody's");
    graph.save(f / "other.onnx", file.state, {}, 100'000);  // this call writes no data file
    std::filesystem::remove(f / "other.onnx");
  }
}

TEST_CASE("onnx: a context of one id takes only one, because its position would be broadcast") {
  const Folder f;
  training::ModelOptions options(training::kGpt, {.width = 12, .depth = 1, .heads = 2});
  options.fit({{"vocab", 9}, {"context", 1}});
  make(f, "model", options);
  f.succeeds("export @model @o.onnx");
  const onnx_runtime::Model exported = onnx_runtime::open(f / "o.onnx");
  CHECK(onnx_runtime::run(exported, from_vector(std::vector<int64_t>{3, 4}, {2, 1})).shape() == Dims{2, 1, 9});
  CHECK_THROWS_WITH(onnx_runtime::run(exported, from_vector(std::vector<int64_t>{3, 4}, {1, 2})),
                    Contains("the input's axis 1 has 2"));
}

TEST_CASE("onnx: options without a graph, or for a folder, are refused in a line") {
  const Folder f;
  f.succeeds("import tests/fixtures/families/gpt2 @model");
  const auto small = [&](const char* name, const training::ModelRow& row, const nn::TransformerOptions& t) {
    nn::TransformerOptions o = t;
    o.width = 12, o.heads = 2, o.depth = 2;
    training::ModelOptions options(row, o);
    options.fit({{"vocab", 9}, {"context", 7}});
    make(f, name, options);
  };
  small("translator", training::kTranslator, {});
  small("post", training::kGpt, {.connection = nn::kPostLn});
  f.refuses("export @translator @o.onnx", 3, "no graph is known of a model of kind translator, expected gpt or vit");
  f.refuses("export @post @o.onnx", 3, "no graph is known of a model with connection post_ln, expected pre_ln");
  f.refuses("export @model @o.onnx --dtype bf16", 2, "--dtype bf16: an ONNX file has f32 or f64");
  f.refuses("export @model @o.onnx --opset 18", 2, "--opset: 18 not in {17,23}");
  f.refuses("export @model @o.onnx --family gpt2", 2, "--family is not for an ONNX file");
  f.refuses("export @model @o.onnx --max-shard-size 1KB", 2, "--max-shard-size is not for an ONNX file");
  f.refuses("export @model @o --opset 23", 2, "--opset is for an ONNX file, whose name ends with .onnx");
  f.refuses("export @model @no/o.onnx", 4, "no/o.onnx");
  CHECK_FALSE(std::filesystem::exists(f / "o.onnx"));
}
