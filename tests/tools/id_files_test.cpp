// Files that hold token ids in another form than train reads, or that look like something else: each is read as ids, or
// refused with the command that makes ids of it.
#include <cstdlib>

#include "tests/tools/small_run.h"

namespace {

// Ids as integers of `width` bytes, little-endian.
std::string ids_of(const std::string& bytes, size_t width) {
  std::string ids;
  for (const char c : bytes) ids += c + std::string(width - 1, '\0');
  return ids;
}

// What numpy.save writes of a vector of int64 (NEP 1).
std::string npy_of(const std::string& bytes) {
  std::string header = text("{'descr': '<i8', 'fortran_order': False, 'shape': (", bytes.size(), ",), }");
  header.resize(117, ' ');
  return "\x93NUMPY\x01" + std::string(1, '\0') + "\x76" + std::string(1, '\0') + header + "\n" + ids_of(bytes, 8);
}

// The command that a refusal names.
std::string command_in(const std::string& message) {
  const size_t begin = message.find("python3 -c"), end = message.find("; isonorm train --");
  REQUIRE(begin != message.npos);
  return message.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("id files: numpy's int64 arrays are refused with the command that makes ids of them") {
  const Folder f;
  const std::string bytes = read(f / "text.txt");
  write_text(f / "ids", ids_of(bytes, 2));
  write_text(f / "wide.bin", ids_of(bytes, 8));
  write_text(f / "array.npy", npy_of(bytes));
  f.succeeds("train +small --data @ids --token-vocab 256 --ids u16 --steps 1 -q --checkpoint @c");
  const bool numpy = std::system("python3 -c 'import numpy' 2>/dev/null") == 0;
  for (const auto& [file, made, what] :
       {std::tuple{"wide.bin", "wide-2.bin", "is an array of 8-byte integers, and token ids are read from a file "},
        {"array.npy", "array.bin", "is an array of numpy, and token ids are read from a file "}}) {
    INFO(file);
    const std::string data = text(" --data @", file), says = text(f / file, ": ", what);
    f.refuses("train +small -q --token-vocab 256" + data, 3, says);
    f.refuses("train -q --init @c" + data, 3, says);
    f.refuses("evaluate @c" + data, 3, says);
    const ChildResult unknown = f.gives(3, "train +small -q" + data);
    CHECK_THAT(unknown.err, Contains("; isonorm train --token-vocab N reads these; isonorm train --text reads it as"));
    const std::string command = command_in(unknown.err);
    CHECK_THAT(command, Contains(".astype(\"uint16\").tofile(sys.argv[2])' " + f / file + " " + f / made));
    CHECK_THAT(f.gives(3, "train +small -q --token-vocab 70000" + data).err, Contains(".astype(\"uint32\").tofile("));
    if (!numpy) continue;
    REQUIRE(std::system(command.c_str()) == 0);
    CHECK(read(f / made) == read(f / "ids"));
  }
}

TEST_CASE("id files: a file of torch.save is no archive of texts") {
  const Folder f;
  write_text(f / "ids.pt", "PK\x03\x04" + std::string(26, '\0') + "ids/data.pkl" + std::string(40, '\x80'));
  f.refuses(
      "train +small -q --token-vocab 256 --data @ids.pt", 3,
      "is a file of torch.save, and token ids are read from a file without a header: python3 -c 'import sys, torch; "
      "torch.load(sys.argv[1]).numpy().astype(\"uint16\").tofile(sys.argv[2])' " +
          f / "ids.pt" + " " + f / "ids.bin" + "; isonorm train --ids u16 reads it as it is");
}

TEST_CASE("id files: ids of bytes look like UTF-16, and are ids for a model of so few tokens") {
  const Folder f;
  const std::string ids = ids_of(read(f / "text.txt"), 2);
  write_text(f / "ids", ids);
  write_text(f / "val", ids.substr(0, 100));
  for (const char* vocab : {"256", "384"}) {
    INFO(vocab);
    const std::string line = text("train +small --steps 1 --data @ids --test-data @val --token-vocab ", vocab);
    CHECK_THAT(f.succeeds(line + " --checkpoint @c" + vocab).err,
               Contains("ids: 800 token ids, u16\n") && Contains("val: 50 token ids, u16\n"));
  }
  CHECK_THAT(f.succeeds("evaluate @c256 --test-data @ids").out, Contains("ids: 800 token ids, u16; "));
  f.succeeds("train -q --batch 4 --threads 1 --steps 1 --init @c256 --data @ids --test-share 0");
  // Without tokens, and if the model has many others, it is a text of letters.
  f.refuses("train +small -q --data @ids", 3, "ids: is encoded in UTF-16LE, and a text is expected: iconv ");
  f.refuses("train +small -q --data @ids --token-vocab 50257", 3,
            "ids: is encoded in UTF-16LE, and token ids are expected: iconv ");
  CHECK_THAT(f.gives(3, "train +small -q --data @ids --token-vocab 50257").err,
             Contains("; isonorm train --ids u16 reads it as it is\n"));
  f.succeeds("train +small -q --data @ids --token-vocab 50257 --ids u16 --steps 1");
}

TEST_CASE("id files: --ids needs the number of tokens, and says what gives it") {
  const Folder f;
  f.succeeds("train +small --steps 1 -q --checkpoint @c");
  const std::string says = ": --ids u16 needs the number of tokens: --token-vocab N, or --tokenizer TOKENIZER";
  f.refuses("train +small -q --ids u16", 3, "text.txt" + says);
  f.refuses("evaluate @c --ids u16 --data @text.txt", 3, "text.txt" + says);
}

TEST_CASE("a text's byte order mark is left out, and said") {
  const Folder f;
  const std::string words = read(f / "text.txt"), mark = "\xef\xbb\xbf";
  write_text(f / "marked", mark + words);
  const auto head = [&](const std::string& data, const std::string& options) {
    const std::string said = f.succeeds("train +small --steps 2 --checkpoint @c --data " + data + options).err;
    const bool marked = data == "@marked";
    CHECK(contains(said, ", its byte order mark left out\n") == marked);
    const std::vector<float> weights = load_checkpoint(f / "c").weights.find("head.weight")->to_vector<float>();
    std::filesystem::remove(f / "c");
    return weights;
  };
  CHECK(head("@marked", "") == head("@text.txt", ""));
  const std::string tokenizer = " --tokenizer tests/fixtures/tokenizers/gpt2";
  CHECK(head("@marked", tokenizer) == head("@text.txt", tokenizer));
  f.succeeds("tokenize tests/fixtures/tokenizers/gpt2 @marked @a");
  f.succeeds("tokenize tests/fixtures/tokenizers/gpt2 @text.txt @b");
  CHECK(read(f / "a") == read(f / "b"));
  // Pairs.
  for (const char* folder : {"with", "without"}) {
    std::filesystem::create_directory(f / folder);
    const std::string begin = folder == std::string("with") ? mark : "";
    std::string source, target;
    for (int i = 0; i < 20; ++i) source += text("a", i, "\n"), target += text("b", i, "\n");
    write_text(f / folder + "/source.txt", begin + source);
    write_text(f / folder + "/target.txt", begin + target);
    f.succeeds(text("train --model translator --width 8 --heads 2 --depth 1 --context 8 --batch 4 --threads 1 -q ",
                    "--steps 1 --data @", folder, " --checkpoint @", folder, ".c"));
  }
  const TensorMap a = load_checkpoint(f / "with.c").weights, b = load_checkpoint(f / "without.c").weights;
  for (const auto& [name, tensor] : a) CHECK(tensor.to_vector<float>() == b.at(name).to_vector<float>());
}

TEST_CASE("a folder with train.bin or train.txt is refused with the options that read its files") {
  const Folder f;
  std::filesystem::create_directory(f / "nano");
  write_text(f / "nano/train.txt", "abcabc");
  f.refuses("train -q --data @nano", 2,
            text("--data: ", f / "nano", " is a folder: isonorm train --data ", f / "nano/train.txt reads its texts"));
  write_text(f / "nano/train.bin", "abcabc");
  write_text(f / "nano/val.bin", "abcabc");
  const std::string says = text(f / "nano", " is a folder: isonorm train --data ", f / "nano/train.bin",
                                " --test-data ", f / "nano/val.bin", " --token-vocab N reads its token ids");
  f.refuses("train -q --data @nano", 2, says);
  f.refuses("train +small -q --data @nano", 2, says);
  f.refuses("train +small -q --test-data @nano", 2, "--test-data: " + says);
}

TEST_CASE("evaluate and train --init: another tokenizer than the one that a model holds is refused") {
  const Folder f;
  const std::string tokenizer = "tests/fixtures/tokenizers/gpt2";
  f.succeeds("train +small --steps 1 -q --tokenizer " + tokenizer + " --checkpoint @c");
  f.succeeds("evaluate @c --data docs/ops.md --tokenizer " + tokenizer);
  // The same tokens with other ids.
  const nlohmann::json own = nlohmann::json::parse(load_checkpoint(f / "c").values.at("tokenizer"));
  nlohmann::json other = own;
  std::swap(other["model"]["vocab"]["a"], other["model"]["vocab"]["b"]);
  REQUIRE(other != own);
  write_text(f / "other.json", other.dump());
  const std::string says = f / "other.json" + ": it is not the tokenizer that " + f / "c" + " holds";
  f.refuses("evaluate @c --data docs/ops.md --tokenizer @other.json", 3, says);
  const std::string train = "train -q --batch 4 --threads 1 --steps 1 --init @c --data @text.txt --tokenizer ";
  f.refuses(train + "@other.json", 3, f / "other.json" + ": " + f / "c" + " has another tokenizer");
  f.succeeds(train + tokenizer);
}

TEST_CASE("the command in a refusal writes no file that exists, and verbs without options of texts name none") {
  const Folder f;
  f.succeeds("train +small --steps 1 -q --checkpoint @c");
  write_text(f / "a.txt.gz", "\x1f\x8b");
  const std::string data = " --data @a.txt.gz", gz = f / "a.txt.gz";
  f.refuses("train +small -q" + data, 3, text("zcat ", gz, " > ", f / "a.txt", "; isonorm train --text"));
  write_text(f / "a.txt", "mine");
  f.refuses("train +small -q" + data, 3, text("zcat ", gz, " > ", f / "a-2.txt", "; isonorm train --text"));
  write_text(f / "a-2.txt", "mine");
  f.refuses("train +small -q" + data, 3, text("zcat ", gz, " > ", f / "a-3.txt", "; isonorm train --text"));
  const std::string said = f.gives(3, "verify @c @c" + data).err;
  CHECK(said.ends_with(text("zcat ", gz, " > ", f / "a-3.txt", "\n")));
}

TEST_CASE("a model of bytes without an alphabet reports that it takes the bytes of the data") {
  const Folder f;
  f.succeeds("train +small --steps 1 -q --checkpoint @c --ema 0.5 --ema-file @model");
  const std::string said = "the model has no alphabet: its tokens are the bytes of the data, in ascending order";
  CHECK_THAT(f.succeeds("evaluate @model --test-data @text.txt").err, !Contains(said));
  // The same weights without the entry.
  std::string bytes = read(f / "model");
  const size_t at = bytes.find("\"characters\"");
  REQUIRE(at != bytes.npos);
  bytes[at + 1] = 'k';  // an unknown entry
  write_text(f / "model", bytes);
  CHECK_THAT(f.succeeds("evaluate @model --test-data @text.txt").err, Contains(said));
  const std::string train = "train --batch 4 --threads 1 --steps 1 --data @text.txt --init ";
  CHECK_THAT(f.succeeds(train + "@model").err, Contains(said));
  CHECK_THAT(f.succeeds(train + "@c").err, !Contains(said));
}

TEST_CASE("a text for a model of tokens that holds no tokenizer is refused with the number of its bytes") {
  const Folder f;
  f.succeeds("import tests/fixtures/ports/llama @llama");
  std::string data;
  for (int c = 'a'; c <= 'z'; ++c) data += text(static_cast<char>(c), " of twenty tokens\n");
  write_text(f / "t", data);
  const std::string says = ": is a text of 28 different bytes, and the model has 20 tokens and holds no tokenizer: ";
  f.refuses("train -q --batch 4 --init @llama --data @t", 3, says);
  f.refuses("evaluate @llama --data @t", 3, says);
  f.refuses("verify @llama @llama --data @t", 3, says);
}
