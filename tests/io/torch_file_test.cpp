// Files of torch.save: as PyTorch writes them, and hostile ones.
#include "io/torch_file.h"

#include "core/memory/allocator.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/same_bytes.h"
#include "tests/support/zip.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

namespace {

io::TorchFile opened(const std::string& s) { return io::TorchFile(memory_bytes(s, "x")); }

std::string file_of(const std::string& pickle, const std::string& storage = std::string(24, '\1')) {
  return zip(
      {{.name = "a/data.pkl", .bytes = pickle, .method = 0}, {.name = "a/data/0", .bytes = storage, .method = 0}});
}

std::string word(const std::string& s) { return "X" + little(s.size(), 4) + s; }
std::string number(int64_t n) { return "\x8a\x08" + little(static_cast<uint64_t>(n), 8); }
std::string tuple(const std::vector<int64_t>& v) {
  std::string s = "(";
  for (int64_t n : v) s += number(n);
  return s + "t";
}
const std::string kDict = "ccollections\nOrderedDict\n)R", kTensor = "ctorch._utils\n_rebuild_tensor_v2\n",
                  kFloats = "ctorch\nFloatStorage\n";

struct View {
  std::string type = kFloats, key = "0";
  int64_t numel = 6, offset = 0;
  std::vector<int64_t> shape = {2, 3}, strides = {3, 1};
};
std::string storage(const View& v) {
  return "(" + word("storage") + v.type + word(v.key) + word("cpu") + number(v.numel) + "tQ";
}
std::string tensor(const View& v) {
  return kTensor + "(" + storage(v) + number(v.offset) + tuple(v.shape) + tuple(v.strides) + "\x89" + kDict + "tR";
}
std::string state(const std::string& entries) { return "\x80\2}(" + entries + "u."; }
std::string one(const View& v) { return file_of(state(word("w") + tensor(v))); }

}  // namespace

TEST_CASE("torch: what PyTorch writes is what safetensors has") {  // tests/fixtures/python_files.py
  const io::TorchFile file("tests/fixtures/python_torch.bin");
  const SafetensorsFile expected("tests/fixtures/python_torch.safetensors");
  REQUIRE(file.entries().size() == 20);
  REQUIRE(expected.entries().size() == 20);
  for (const io::TensorEntry& e : expected.entries()) {
    INFO(e.name);
    const auto found = std::ranges::find(file.entries(), e.name, &io::TensorEntry::name);
    REQUIRE(found != file.entries().end());
    CHECK(found->foreign == e.foreign);
    CHECK(same_bytes(file.read(*found), expected.read(e)));
  }
}

TEST_CASE("torch: other ways to say the same") {
  const std::string shared = word("w") + tensor({}) + "r" + little(0, 4);
  const std::string stack_global =
      "\x8c\x05torch\x8c\x0c"
      "FloatStorage\x93";
  for (const std::string& pickle :
       {state(word("w") + tensor({})), state(word("w") + tensor({.type = stack_global})),
        "\x80\4\x95" + little(0, 8) + kDict + word("w") + tensor({}) + "s}" + word("_metadata") + kDict + "sb.",
        state(word("w") + "ctorch._utils\n_rebuild_parameter\n(" + tensor({}) + "\x88" + kDict + "tR"),
        state(shared + word("v") + "j" + little(0, 4)), "\x80\2}" + word("w") + tensor({}) + "s."}) {
    const std::string bytes = file_of(pickle);
    const io::TorchFile file = opened(bytes);
    CHECK(file.entries().front().name == "w");
    for (const io::TensorEntry& e : file.entries()) CHECK(file.read(e).shape() == Dims{2, 3});
  }
}

TEST_CASE("torch: nothing but tensors is read, and nothing is run") {
  constexpr int64_t kHuge = INT64_MAX;
  const std::string w = word("w");
  const auto entry = [&](const std::string& value) { return file_of(state(w + value)); };
  struct Case {
    std::string file;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"", "not a zip archive"},
      {"\x80\2.", "before PyTorch 1.6"},
      {zip({{.name = "a/data.pkl", .bytes = "", .method = 8}}), "is deflated"},
      {zip({{.name = "data.pkl", .bytes = "", .method = 0}}), "are not in one folder"},
      {zip({{.name = "a/x", .bytes = "", .method = 0}, {.name = "b/x", .bytes = "", .method = 0}}),
       "are not in one folder"},
      {zip({{.name = "a/x", .bytes = "", .method = 0}, {.name = "a/x", .bytes = "", .method = 0}}), "is there twice"},
      {zip({{.name = "a/x", .bytes = "", .method = 0}}), "there is no member 'a/data.pkl'"},
      {zip({{.name = "a/byteorder", .bytes = "big", .method = 0}}), "not little-endian"},
      {zip({{.name = "a/data.pkl", .bytes = state(w + tensor({})), .method = 0, .crc_flip = 1}}), "CRC-32"},
      // Calls, and values that a state dict cannot have
      {entry("cos\nsystem\n" + word("echo") + "\x85R"),
       "byte 21: global 'os.system' is refused, only plain tensors are read; nothing was run"},
      {entry("cposix\nsystem\n"), "global 'posix.system'"},
      {entry("\x8c\x08"
             "builtins\x8c\x04"
             "eval\x93"),
       "global 'builtins.eval'"},
      {entry(kFloats + ")R"), "it calls torch.FloatStorage"},
      {entry("\x81"), "opcode 129 is none that torch.save writes"},  // NEWOBJ
      {entry("\x82\1"), "opcode 130 is none"},                       // EXT1
      {entry("(ios\nsystem\n"), "opcode 105 is none"},               // INST
      {entry("]"), "opcode 93 is none"},                             // EMPTY_LIST
      {entry("K\1"), "x.w: pickle: byte 14: the entry is a number, expected a tensor"},
      {entry("}"), "the entry is a dict, expected a tensor"},
      {file_of(state("K\1" + tensor({}))), "a key is a number, expected a string"},
      {file_of(state(w + tensor({}) + w + tensor({}))), "x.w: pickle: it is there twice"},
      {file_of("\x80\2K\1."), "the state is a number, expected a dict"},
      {file_of("\x80\6."), "protocol 6"},
      {file_of(state(w + tensor({})) + "."), "1 bytes after its end"},
      {file_of("\x80\2}}."), "1 values too many"},
      {file_of("\x80\2}"), "ends inside of a value of 1 bytes"},
      {file_of("\x80\2}X\xff\xff\xff\xff."), "ends inside of a value of 4294967295 bytes"},
      {file_of("\x80\2}ctorch"), "ends inside of a line"},
      // Stack, marks and memo
      {file_of("\x80\2."), "a value is missing"},
      {file_of("\x80\2}(."), "a value is missing"},
      {file_of("\x80\2K\1\x86."), "a value is missing"},
      {file_of("\x80\2t."), "a mark is missing"},
      {file_of("\x80\2s."), "a value is missing"},
      {file_of("\x80\2K\1K\1s."), "a dict is missing"},
      {file_of("\x80\2}(K\1K\1s."), "a dict is missing"},
      {file_of("\x80\2}(" + w + "u."), "a key without a value"},
      {file_of("\x80\2}q\5."), "place 5 of 0 in the memo"},
      {file_of("\x80\2h\1."), "place 1 of 0 in the memo"},
      {entry("\x8a\x09"), "a number of 9 bytes"},
      {file_of("\x80\2" + std::string((1 << 21) + 1, '}')), "more than 2097152 values"},
      {file_of("\x80\2" + std::string((1 << 21) + 1, '(')), "more than 2097152 values"},
      {file_of("\x80\2}" + std::string((1 << 21) + 1, '\x94')), "more than 2097152 values"},
      {file_of("\x80\2)" + std::string((1 << 21) + 1, '\x85')), "more than 2097152 values"},  // nested tuples
      // Tensors and storages
      {entry(kTensor + "(" + storage({}) + number(0) + "tR"), "a tensor has 2 parts, expected 6"},
      {entry(kTensor + "K\1R"), "what a call is given is a number, expected a tuple"},
      {entry("ctorch._utils\n_rebuild_parameter\n(K\1\x88" + kDict + "tR"), "what a parameter holds is a number"},
      {entry("(" + word("storage") + kFloats + "tQ"), "what names a storage has 2 parts, expected 5"},
      {one({.type = kTensor}), "is no type of a storage"},
      {one({.type = word("FloatStorage")}), "the type of a storage is a string, expected a global"},
      {one({.key = "1"}), "there is no member 'a/data/1'"},
      {one({.key = "../data.pkl"}), "there is no member 'a/data/../data.pkl'"},
      {one({.numel = 7}), "has 24 bytes, expected 7 elements of 4"},
      {one({.numel = 5, .shape = {5}, .strides = {1}}), "has 24 bytes, expected 5 elements of 4"},
      {one({.type = "ctorch\nHalfStorage\n"}), "has 24 bytes, expected 6 elements of 2"},
      {one({.numel = kHuge}), "storage"},
      {one({.numel = -6}), "a storage of -6"},
      {one({.offset = -1}), "begins at -1"},
      {one({.offset = 1}), "from element 1 does not fit a storage of 6 elements"},
      {one({.offset = kHuge}), "does not fit a storage of 6"},
      {one({.shape = {2, 4}, .strides = {4, 1}}), "does not fit a storage of 6"},
      {one({.shape = {2, 3}, .strides = {4, 1}}), "does not fit a storage of 6"},
      {one({.shape = {7}, .strides = {0}}), "does not fit a storage of 6"},  // larger than its storage
      {one({.shape = {kHuge, kHuge}}), "shape"},
      {one({.shape = {2, 3}, .strides = {kHuge, kHuge}}), "strides"},
      {one({.shape = {-2, 3}}), "a size is -2"},
      {one({.strides = {-3, 1}}), "a stride is -3"},
      {one({.shape = {6}}), "shape [6] with strides [3, 1]"},
      {one({.shape = {1, 1, 1, 1, 1, 1, 1, 1, 1}}), "rank is over the limit"},
  };
  host_allocator().reset_peak();
  const int64_t before = host_allocator().stats().peak;
  for (const Case& c : cases) {
    INFO(c.says);
    CHECK_THROWS_WITH(opened(c.file), Contains(c.says) && StartsWith("x"));
  }
  CHECK(host_allocator().stats().peak == before);
}

TEST_CASE("torch: whatever byte is another one, it is an error or tensors within the file") {
  const std::string good = test::read_text("tests/fixtures/python_torch.bin");
  for (size_t i = 0; i < good.size(); ++i)
    for (int flip : {1, 0x80, 0xff}) {
      std::string s = good;
      s[i] = static_cast<char>(s[i] ^ flip);
      try {
        const io::TorchFile file = opened(s);
        for (const io::TensorEntry& e : file.entries()) CHECK(file.read(e).shape() == e.shape);
      } catch (const Error&) {
      }
    }
}
