// isonorm compare and perturb as a person runs them: exit codes, messages, maps and what a map file may not say.
#include "autograd/ops/norm.h"
#include "autograd/ops/random.h"
#include "core/random.h"
#include "streams/coordinates.h"
#include "tests/tools/small_run.h"

namespace {

void save(const std::string& path, std::initializer_list<std::pair<const char*, Tensor>> tensors) {
  TensorMap m;
  for (const auto& [name, tensor] : tensors) m.add(name, tensor);
  save_safetensors(path, m);
}

}  // namespace

TEST_CASE("compare: 0, 1, 2, 3 and 4, each with its one line") {
  const Folder f;
  manual_seed(1);
  const Tensor w = randn({4, 3}, {DType::f64});
  for (const char* name : {"a", "twin"}) save(f / name, {{"proj.weight", w}});
  save(f / "mapped", {{"c_proj.weight", streams::recentre(w, 0)}});
  save(f / "other", {{"proj.weight", w * 2.0}});
  write_text(f / "map.json", R"([{"a": "proj.*", "b": "c_proj.*", "map": "recentre", "dim": 0}])");
  write_text(f / "bad.json", R"([{"a": "proj.*", "map": "project"}])");

  CHECK_THAT(f.succeeds("compare @a @mapped --map @map.json").out, Contains("equivalent: 1 tensor"));
  CHECK_THAT(f.succeeds("compare @a @twin").out, Contains("equal to the last bit"));
  CHECK_THAT(f.gives(1, "compare @a @other --json @r.json").out,
             Contains("  proj.weight [4, 3]  1.0e+00\ndifferent: proj.weight[0, 1] is ") &&
                 Contains("likely cause: a factor of 2"));
  CHECK(f.json("r.json")["verdict"] == "different");
  f.gives(1, "compare @a @mapped");

  f.refuses("compare @a @a", 2, "are one file");  // no verdict: nothing was compared
  f.refuses("compare @a", 2, "");
  for (const std::string tolerance : {"-1", "1", "nan", "inf"})  // of 1, anything is the same
    f.refuses("compare @a @other --tolerance " + tolerance, 2, "--tolerance");
  f.refuses("compare @a @mapped --map @bad.json", 3, "bad.json: parameter map: no map is called 'project'");
  f.refuses("compare @a @map.json", 3, "map.json");
  f.refuses("compare @a @missing", 4, "missing");
}

TEST_CASE("compare: tensors of F16 and BOOL and F8 and of integers of every size are compared and end no comparison") {
  const Folder f;
  using Bytes = std::vector<uint8_t>;
  struct Case {
    const char* dtype;
    Bytes a, b;  // an element each
    std::string said;
  };
  const Case cases[] = {{"F16", {0, 0x3c}, {0, 0x3e}, "x[1] is 1.5, in the reference 1"},
                        {"BOOL", {1}, {0}, "x has 0 at [1], in the reference 1 (integers must be equal)"},
                        {"I8", {0xff}, {1}, "x has 1 at [1], in the reference -1"},
                        {"I16", {0, 0x80}, {0, 0}, "x has 0 at [1], in the reference -32768"},
                        {"U16", {0, 0x80}, {0, 0}, "x has 0 at [1], in the reference 32768"},
                        {"I32", {1, 0, 0, 0}, {2, 0, 0, 0}, "x has 2 at [1], in the reference 1"},
                        {"U32", {0, 0, 0, 0x80}, {0, 0, 0, 0}, "x has 0 at [1], in the reference 2147483648"},
                        {"U64", {1, 0, 0, 0, 0, 0, 0, 0}, {2, 0, 0, 0, 0, 0, 0, 0}, "x has 2 at [1, 0], in"},
                        {"C64", {1, 0, 0, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0, 0, 9}, "x has 9 at [1, 7], in"},
                        {"F8_E4M3", {0x38}, {0xb8}, "x[1] is -1, in the reference 1"},
                        {"F8_E5M2", {0x3c}, {0x38}, "x[1] is 0.5, in the reference 1"}};
  for (const Case& c : cases) {
    const auto save_case = [&](const char* name, const Bytes& element) {
      Bytes bytes(element.size(), 0);  // x[0] is 0
      bytes.insert(bytes.end(), element.begin(), element.end());
      const Dims shape = element.size() == 1 ? Dims{2} : Dims{2, std::ssize(element)};
      const Tensor x = from_vector(bytes, shape), y = from_vector(std::vector<float>{1, 2}, {2});
      save_safetensors(f / name, {{"x", DType::u8, shape, 0, 0, c.dtype}, {"y", DType::f32, {2}}}, {},
                       [&](const std::string& tensor) { return tensor == "x" ? x : y; });
    };
    save_case("a", c.a), save_case("twin", c.a), save_case("b", c.b);
    INFO(c.dtype);
    CHECK_THAT(f.succeeds("compare @a @twin").out, Contains("equivalent: 2 tensors, equal to the last bit"));
    CHECK_THAT(f.gives(1, "compare @a @b").out, Contains("different: " + c.said) && Contains("(1 of 2 tensors"));
  }
}

TEST_CASE("compare: U64 against another integer dtype is named, not a shape with the bytes of an element") {
  const Folder f;
  const Tensor bytes = from_vector(std::vector<uint8_t>(16), {2, 8}), x = from_vector(std::vector<int64_t>{1, 2}, {2});
  save_safetensors(f / "u", {{"x", DType::u8, {2, 8}, 0, 0, "U64"}}, {}, [&](const std::string&) { return bytes; });
  save_safetensors(f / "i", {{"x", DType::i64, {2}}}, {}, [&](const std::string&) { return x; });
  for (const char* line : {"compare @u @i", "compare @i @u"})
    CHECK_THAT(f.gives(1, line).out,
               Contains("(one is U64 or C64, whose bytes are compared with the same dtype only)"));
}

TEST_CASE("compare: the first tensor that differs in the order of execution, and why") {
  const Folder f;
  manual_seed(3);
  const Tensor x = randn({9, 6}, {DType::f64}) * 0.1, w = randn({4, 6}, {DType::f64}), g = randn({6, 4}, {DType::f64});
  const auto write = [&](const char* name, double eps) {
    const Tensor y = layer_norm(x, {}, {}, {.eps = eps});
    save(f / name, {{"h.0.attn.output", y * 2.0},  // in the order of names, as the safetensors library has it
                    {"h.0.mlp.down.weight.grad", g},
                    {"h.0.norm.input", x},
                    {"h.0.norm.output", y}});
  };
  write("a", 1e-5), write("b", 1e-6);
  write_text(f / "spec.json", R"({"width": 6, "norms": {"h.*.norm": 1e-5}, "writers": {"h.*.mlp.down.weight": 0},
                                  "readers": {"h.*.attn.qkv.weight": {"dim": 1, "norm": "h.*.norm"}}})");
  write_text(f / "order.txt", "h.*.norm\nh.*.attn\nh.*.mlp\n");
  CHECK_THAT(f.gives(1, "compare @a @b").out,
             Contains("different: h.0.attn.output[") && Contains("in the order of names"));
  for (const std::string order : {"--spec @spec.json", "--order @order.txt", "--order h.*.norm,h.*.attn"}) {
    const std::string out = f.gives(1, "compare @a @b --json @r.json " + order).out;
    CHECK_THAT(out, Contains("different: h.0.norm.output[") &&
                        Contains("the last before it that agrees is h.0.norm.input, in the order of") &&
                        Contains("(2 of 4 tensors differ)") &&
                        Contains("likely cause: another eps: B has 1e-06, A 1e-05"));
  }
  CHECK(f.json("r.json")["last_equivalent"] == "h.0.norm.input");
  TensorMap reversed;
  for (const char* name : {"h.0.norm.output", "h.0.norm.input"}) reversed.add(name, x);
  save_safetensors(f / "c", reversed, {{"order", R"(["h.0.norm.input", "h.0.norm.output"])"}});
  save(f / "d", {{"h.0.norm.input", x * 2.0}, {"h.0.norm.output", x * 2.0}});
  CHECK_THAT(f.gives(1, "compare @c @d").out,
             Contains("different: h.0.norm.input[") && Contains("order of its metadata"));
  save_safetensors(f / "e", reversed, {{"order", R"(["nothing"])"}});
  f.refuses("compare @e @d", 3, "e: its metadata: order: no tensor is of 'nothing'");
  save_safetensors(f / "g", reversed, {{"order", "of another program"}});
  f.gives(1, "compare @g @d");
  f.refuses("compare @a @b --order nothing", 3, "--order: order: no tensor is of 'nothing'");
  f.refuses("compare @a @b --spec @order.txt", 3, "order.txt");
  f.refuses("compare @a @b --spec @order.json", 4, "order.json");
}

TEST_CASE("compare: with several streams the encoder's comes before its decoder's") {
  const Folder f;
  const std::string whisper = "tests/fixtures/families/whisper";
  const auto differs = [&](const std::string& file, const std::vector<std::string>& doubled, const std::string& more) {
    TensorMap tensors;
    for (const auto& [name, tensor] : load_safetensors(file))
      tensors.add(name, std::ranges::count(doubled, name) ? tensor * 2.0 : tensor);
    save_safetensors(f / "b", tensors);
    return f.gives(1, "compare " + file + " @b" + more).out;
  };
  const std::vector<std::string> weights = {"model.decoder.layers.0.fc1.weight", "model.encoder.layers.0.fc2.weight"};
  CHECK_THAT(differs(whisper + "/model.safetensors", weights, ""), Contains("different: " + weights[0]));
  CHECK_THAT(differs(whisper + "/model.safetensors", weights, " --spec " + whisper),
             Contains("different: " + weights[1]) && Contains("in the order of the layout"));
  // The program that `isonorm hooks` prints records the order of calls.
  const std::vector<std::string> rows = {"decoder/model.decoder.layers.0.fc1.weight.output",
                                         "encoder/model.encoder.layers.0.fc2.weight.output"};
  CHECK_THAT(differs(whisper + ".rows", rows, ""),
             Contains("different: " + rows[1]) && Contains("in the order of its metadata"));
}

TEST_CASE("compare: exit code 5 if a small gradient differs, 0 if --noise names it") {
  const Folder f;
  for (const auto& [name, bias] : {std::pair{"a", 1e-15}, {"b", -1e-16}})
    save(f / name, {{"h.0.attn.bias", from_vector<double>({bias, -bias}, {2})},
                    {"h.0.attn.weight", from_vector<double>({1, 2}, {2})}});
  CHECK_THAT(f.gives(5, "compare --gradients @a @b --json @r.json").out,
             Contains("  h.0.attn.bias [2]  not comparable: below 2.2e-13") &&
                 Contains("\nundecided: h.0.attn.bias is not comparable") &&
                 Contains("(1 of 2 tensors; the others agree)"));
  CHECK(f.json("r.json")["verdict"] == "undecided");
  f.gives(1, "compare @a @b");
  CHECK_THAT(f.succeeds("compare --gradients --noise h.*.attn.bia* --noise h.*.attn.bias @a @b").out,
             Contains("1 taken for noise as named"));
  f.refuses("compare --noise * @a @b", 2, "--noise");
  CHECK(run_child(f.words("compare @a @b --gradients --noise") + Words{""}).code == 2);
  CHECK_THAT(f.succeeds("compare --help", {.environment = {"COLUMNS=300"}}).out, Contains("5 undecided"));
}

TEST_CASE("perturb and compare: a file with controls") {
  const Folder f;
  Generator g{2, 0};
  const Tensor w = randn({6, 5}, {DType::f32}, g), ids = from_vector<int64_t>({1, 2}, {2});
  save(f / "a", {{"w", w}, {"ids", ids}});
  save(f / "off", {{"w", w * (1 + 5e-5)}, {"ids", ids}});
  for (const std::string seed : {"1", "2", "3"})
    CHECK_THAT(f.succeeds("perturb @a @c" + seed + " --seed " + seed).out,
               Contains("1 tensors moved by 1 ulp, 1 of other dtypes as they were."));
  f.succeeds("compare @a @off");  // by the tolerance that knows no control
  f.gives(1, "compare @a @off --control @c1 --control @c2");
  f.succeeds("compare @a @c3 --control @c1 --control @c2");
  f.gives(5, "compare @a @off --control @a");
  f.refuses("compare @a @c3 --control @c1 --tolerance 1e-3", 2, "--tolerance");
  f.refuses("compare @a @c3 --control @none", 4, "none");
  f.refuses("perturb @a @a", 2, "");
  f.refuses("perturb @a @d --ulp 0", 2, "--ulp");
}
