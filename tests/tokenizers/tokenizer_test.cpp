// Tokens equal the results of the package tokenizers (tests/fixtures/tokenizer_files.py), and decode to the text.
#include "io/tokenizers/tokenizer.h"

#include <filesystem>

#include "io/safetensors.h"
#include "tests/support/catch.h"
#include "tests/support/read_text.h"
#include "tests/support/temp_folder.h"

using namespace isonorm;
using Catch::Matchers::Contains;
using test::read_text;
using tokenizers::Tokenizer;

namespace {

const std::string kFolder = "tests/fixtures/tokenizers/";
using Ids = std::vector<uint32_t>;

// The lines that the fixture draws: Knuth's MMIX generator, up to 23 pieces each.
class Lines {
 public:
  explicit Lines(const TensorMap& fixture) {
    const auto bytes = fixture.at("pieces").to_vector<uint8_t>();
    auto at = bytes.begin();
    for (uint8_t length : fixture.at("lengths").to_vector<uint8_t>())
      pieces_.emplace_back(at, at + length), at += length;
  }
  std::string next() {
    std::string line;
    for (uint64_t n = below(24); n > 0; --n) line += pieces_[below(pieces_.size())];
    return line;
  }

 private:
  uint64_t below(uint64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % n;
  }
  std::vector<std::string> pieces_;
  uint64_t state_ = 2;
};

// FNV-1a of ids, folded to 16 bits.
uint32_t hash_of(const Ids& ids) {
  uint32_t h = 2166136261;
  for (uint32_t id : ids) h = (h ^ id) * 16777619;
  return (h ^ h >> 16) & 0xffff;
}

// A tokenizer like GPT-2's with one place of its file changed.
Tokenizer with(const std::string& place, const std::string& other, const std::string& kind = "gpt2") {
  std::string json = read_text(kFolder + kind + "/tokenizer.json");
  const size_t at = json.find(place);
  REQUIRE(at != json.npos);
  const TempFolder f;
  write_text(f / "tokenizer.json", json.replace(at, place.size(), other));
  return Tokenizer(f / "tokenizer.json");
}

}  // namespace

TEST_CASE("tokenizer: the ids of 10,000 lines equal the package tokenizers', and their bytes are the line") {
  const TensorMap fixture = load_safetensors(kFolder + "lines.safetensors");
  for (const std::string kind : {"gpt2", "gpt2_pair", "gpt_neox", "starcoder", "llama3"}) {
    INFO(kind);
    Tokenizer tokenizer(kFolder + kind);
    const std::string theirs = kind == "gpt2_pair" ? "gpt2" : kind;
    const auto hashes = fixture.at(theirs).to_vector<uint8_t>();
    const bool exact = theirs == "gpt2" || theirs == "llama3";  // gpt_neox normalizes, starcoder strips white space
    Lines lines(fixture);
    Ids first;
    for (size_t i = 0; i < 10'000; ++i) {
      const std::string line = lines.next();
      const Ids ids = tokenizer.encode(line);
      if (i < 20) first.insert(first.end(), ids.begin(), ids.end());
      INFO("line " << i << ": " << line);
      if (hash_of(ids) != hashes[2 * i] + 256u * hashes[2 * i + 1]) FAIL("other ids");
      if (exact && tokenizer.decode(ids) != line) FAIL("other bytes: " << tokenizer.decode(ids));
    }
    const auto expected = fixture.at(theirs + ".first").to_vector<int64_t>();
    CHECK(first == Ids(expected.begin(), expected.end()));
  }
}

TEST_CASE("tokenizer: a pair whose right half became part of another token waits for its own merge") {
  const TempFolder f;
  write_text(f / "vocab.json", R"({"t":0,"h":1,"e":2,"th":3,"he":4,"the":5})");
  write_text(f / "merges.txt", "h e\nt h\nt he\n");
  Tokenizer tokenizer(f / "vocab.json");
  CHECK(tokenizer.encode("the") == Ids{5});  // by "h e", then "t he"; "t h" has priority between them, but finds no h
  CHECK(tokenizer.encode("thh") == Ids{3, 1});
}

TEST_CASE("tokenizer: bytes that are no UTF-8 are a word by themselves, and come back") {
  for (const char* kind : {"gpt2", "llama3"}) {
    Tokenizer tokenizer(kFolder + kind);
    const auto whole = [&](std::initializer_list<std::string> words) {
      Ids all;
      for (const std::string& word : words) {
        const Ids ids = tokenizer.encode(word);
        all.insert(all.end(), ids.begin(), ids.end());
      }
      return all;
    };
    // A lone continuation byte, a surrogate, an overlong form, a truncated character.
    for (const std::string bad : {"\x80", "\xed\xa0\x80", "\xc0\xaf", "\xf0\x9f\x98", "\xff\xfe\xff"}) {
      const std::string text = "the end " + bad + " of it";
      CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
      CHECK(tokenizer.encode(text) == whole({"the end ", bad, " of it"}));
      CHECK(tokenizer.encode("<|endoftext|>" + bad + "<|endoftext|>") ==
            whole({"<|endoftext|>", bad, "<|endoftext|>"}));
    }
    std::string all;
    for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
    CHECK(tokenizer.decode(tokenizer.encode(all)) == all);
    CHECK(tokenizer.encode("").empty());
  }
}

TEST_CASE("tokenizer: added tokens are found as the file says") {
  Tokenizer gpt2(kFolder + "gpt2");
  CHECK(gpt2.vocab() == 701);
  CHECK(gpt2.encode("<|endoftext|>") == Ids{700});
  CHECK(gpt2.bytes_of(700) == "<|endoftext|>");
  CHECK_THROWS_WITH(gpt2.bytes_of(701), Contains("no token has the id 701; they go from 0 to 700"));
  CHECK_THROWS_WITH(gpt2.bytes_of(-1), Contains("no token has the id -1"));
  // <both> takes the white space around it, <mask> the white space before it.
  Tokenizer stripping(kFolder + "starcoder");
  CHECK(stripping.decode(stripping.encode("a \u3000<mask> b \n<both> \u2028c\u200b<both>")) ==
        "a<mask> b<both>c\u200b<both>");
}

TEST_CASE("tokenizer: normalization form C, of every piece between two ASCII characters") {
  Tokenizer plain(kFolder + "gpt2"), nfc = with(R"("normalizer":null)", R"("normalizer":{"type":"NFC"})");
  for (const auto& [written, composed] : {std::pair{"e\u0301a", "\u00e9a"},
                                          {"xe\u0323\u0301", "x\u1eb9\u0301"},
                                          {"q\u0307\u0323 \u212b", "q\u0323\u0307 \u00c5"},
                                          {"\u1112\u1161\u11ab.", "\ud55c."},
                                          {"\u0301\u00e9", "\u0301\u00e9"},
                                          {"\u2126 e\u0301 \u00e9", "\u03a9 \u00e9 \u00e9"}})
    CHECK(nfc.encode(written) == plain.encode(composed));
  Tokenizer none = with(R"("normalizer":null)",
                        R"("normalizer":{"type":"Sequence","normalizers":[{"type":"Sequence","normalizers":[]}]})");
  CHECK(none.encode("e\u0301a") == plain.encode("e\u0301a"));
}

TEST_CASE("tokenizer: a word of a megabyte takes n log n steps; one over 16 MiB is refused") {
  Tokenizer tokenizer(kFolder + "gpt2");
  const std::string word(1 << 20, 'e');
  CHECK(tokenizer.decode(tokenizer.encode(word)) == word);
  CHECK_THROWS_WITH(tokenizer.encode(std::string((1 << 24) + 1, 'e')),
                    Contains("a word of 16777217 bytes, over the limit"));
}

// Ids of the package tokenizers 0.23.3, read from the same files.
TEST_CASE("tokenizer: ids may have holes in the vocabulary; added tokens have the ids that the package gives them") {
  Tokenizer holes = with(R"("!":0)", R"("!":4294967295)");
  CHECK(holes.vocab() == int64_t{1} << 32);
  CHECK(holes.encode("!<|endoftext|>") == Ids{4294967295, 700});
  CHECK_THROWS_WITH(holes.bytes_of(0), Contains("no token has the id 0"));
  CHECK_THROWS_WITH(with(R"("id":700,)", R"("id":704,)"),
                    Contains("added token '<|endoftext|>' has id 704, expected 700: the `tokenizers` package "
                             "numbers added tokens consecutively, from the vocabulary's size"));
  const std::string first = R"("added_tokens":[)";
  Tokenizer two = with(R"(}],"normalizer")", R"(},{"id":701,"content":"<b>"}],"normalizer")");
  CHECK(two.encode("<b><|endoftext|>") == Ids{701, 700});
  CHECK_THROWS_WITH(with(first, first + R"({"id":701,"content":"<b>"},)"), Contains("'<b>' has id 701, expected 700"));
  CHECK_THROWS_WITH(with(R"(}],"normalizer")", R"(},{"id":705,"content":"<b>"}],"normalizer")"),
                    Contains("'<b>' has id 705, expected 701"));
  CHECK_THROWS_WITH(with(R"("!":0)", R"("!":700)"), Contains("both have the id 700"));
}

TEST_CASE(
    "tokenizer: a run of a million marks is ordered, white space is taken and added tokens are found in one pass") {
  // Marks above the letter have combining class 230, marks below it 220 (Unicode 14), so the latter come first.
  Tokenizer plain(kFolder + "gpt2"), nfc = with(R"("normalizer":null)", R"("normalizer":{"type":"NFC"})");
  const int n = 500'000;
  std::string written = "q", ordered = "q";
  for (int i = 0; i < n; ++i) written += "\u0301\u0323";
  for (int i = 0; i < n; ++i) ordered += "\u0323";
  for (int i = 0; i < n; ++i) ordered += "\u0301";
  CHECK(nfc.encode(written) == plain.encode(ordered));
  // Every space is a token, and strips the spaces after it.
  Tokenizer stripping = with(R"(}],"normalizer")", R"(},{"id":701,"content":" ","rstrip":true}],"normalizer")");
  CHECK(stripping.encode(std::string(n, ' ')) == Ids(n, 701));
  // The search from a byte stops after the length of the longest token.
  const auto of_length = [](size_t length) {
    return with(R"(}],"normalizer")", R"(},{"id":701,"content":")" + std::string(length, 'e') + R"("}],"normalizer")");
  };
  CHECK(of_length(256).encode(std::string(256, 'e')) == Ids{701});
  CHECK_THROWS_WITH(of_length(257), Contains("added token 'eee") && Contains("has 257 bytes, over the limit of 256"));
}

TEST_CASE("tokenizer: what would change ids in a way that is not here is refused by name") {
  const std::string split =
      R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  const auto pre = [](const std::string& s) { return R"("pre_tokenizer":)" + s; };
  const auto regex = [&](const std::string& s) {
    return pre(
        R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":")" + s +
        R"("},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"use_regex":false}]})");
  };
  std::string deep = R"({"type":"NFC"})";
  for (int i = 0; i < 10; ++i) deep = R"({"type":"Sequence","normalizers":[)" + deep + "]}";
  deep = R"("normalizer":)" + deep;
  const std::tuple<std::string, std::string, const char*> cases[] = {
      {R"("type":"BPE")", R"("type":"WordPiece")", "model 'WordPiece' is not supported, expected BPE"},
      {R"("type":"BPE")", R"("type":"Unigram")", "model 'Unigram'"},
      {R"("dropout":null)", R"("dropout":0.1)", "dropout 0.1"},
      {R"("end_of_word_suffix":null)", R"("end_of_word_suffix":"</w>")", "end_of_word_suffix '</w>'"},
      {R"("normalizer":null)", R"("normalizer":{"type":"Lowercase"})", "normalizer 'Lowercase' is not supported"},
      {R"("normalizer":null)", R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"NFKC"}]})",
       "'NFKC'"},
      {R"("normalizer":null)", deep, "a Sequence of Sequences, over 8 deep"},
      {split, pre(R"({"type":"Metaspace"})"),
       "pre_tokenizer 'Metaspace' is not supported, expected ByteLevel or Split or Digits"},
      {split, pre("null"), "pre_tokenizer without ByteLevel"},
      {split, pre(R"({"type":"ByteLevel"})"), "add_prefix_space"},
      {split, pre(R"({"type":"Split","pattern":{"String":"x"},"behavior":"Isolated"})"), "kind 'String'"},
      {split, pre(R"({"type":"Split","pattern":{"Regex":"x"},"behavior":"Removed"})"), "behavior 'Removed'"},
      {split, regex("(a"), "is no regular expression: "},
      {split, regex("a*"), "can match nothing"},
      {split, regex("\\\\w+"), "the pattern has '\\w' at byte 0"},
      {split, regex("x\\\\p{Han}"), "the pattern has '\\p{Han}' at byte 1"},
      {split, regex("[a[b]]"), "has '[b' at byte 2"},
      {split, regex("a{2}+"), "has '{2}+'"},
      {split, regex("(?<=a)b"), "has '(?<='"},
      {R"("post_processor":null)", R"("post_processor":{"type":"BertProcessing"})", "post_processor 'BertProcessing'"},
      {R"("decoder":{"type":"ByteLevel")", R"("decoder":{"type":"WordPiece")", "decoder 'WordPiece'"},
      {R"("truncation":null)", R"("truncation":{"max_length":4})", "truncation is not supported"},
      {R"("single_word":false)", R"("single_word":true)", "single_word is not supported"},
  };
  for (const auto& [place, other, why] : cases) {
    INFO(other);
    CHECK_THROWS_WITH(with(place, other), Contains("tokenizer.json: ") && Contains(why));
  }
}

TEST_CASE("tokenizer: files that contradict themselves") {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {R"("id":700,)", R"("id":1099511627776,)", "has the id 1099511627776, expected 0 to 4294967295"},
      {R"("id":700,)", R"("id":7,)", "has id 7, expected 700: the `tokenizers` package"},
      {R"("!":0)", R"("!":1)", "both have the id 1"},
      {R"("!":0)", R"("!":0,"!":900)", "token '!' is in the vocabulary twice"},
      {R"("!":0)", R"("!":-1)", "expected a whole number"},
      {R"("!":0)", R"("!":0.5)", "expected a whole number"},
      {R"("merges":[)", R"("merges":["a",)", "merge 0 is 'a', expected two tokens"},
      {R"("merges":[)", R"("merges":[["a","b","c"],)", "merge 0 is of 3 tokens"},
      {R"("merges":[)", R"("merges":["nothing such",)",
       "merge 0 is of 'nothing' and 'such', but 'nothing' is no token"},
      {R"("merges":[)", R"("merges":["! !",)", "but '!!' is no token"},
      {R"("added_tokens":[)", R"("added_tokens":[{"id":700,"content":"<|endoftext|>"},)",
       "added token '<|endoftext|>' is there twice"},
      {R"("content":"<|endoftext|>")", R"("content":"")", "added token 0 has no content"},
      {R"("content":"<|endoftext|>")", R"("content":"!")", "added token '!' has the id 700, but 0 in the vocabulary"},
  };
  for (const auto& [place, other, why] : cases) {
    INFO(other);
    CHECK_THROWS_WITH(with(place, other), Contains("tokenizer.json: ") && Contains(why));
  }
  const TempFolder f;
  CHECK_THROWS_WITH(Tokenizer(f / "none.json"), Contains("none.json: cannot open"));
  for (const std::string& json : {std::string("{}"), std::string("[]"), std::string("{\"added_tokens\":["),
                                  std::string(1'000'000, '['), "{\"version\":" + std::string(1'000'000, '[')}) {
    write_text(f / "tokenizer.json", json);
    CHECK_THROWS_AS(Tokenizer(f / "tokenizer.json"), Error);
  }
  std::filesystem::copy(kFolder + "gpt2_pair/vocab.json", f / "vocab.json");
  std::filesystem::remove(f / "tokenizer.json");
  CHECK_THROWS_WITH(Tokenizer(f / ""), Contains("merges.txt: cannot open"));
  write_text(f / "merges.txt", "#version: 0.2\r\ne t h\n");
  CHECK_THROWS_WITH(Tokenizer(f / ""), Contains("merge 0 is 'e t h'"));
  write_text(f / "merges.txt", "#version: 0.2\r\n! !\r\n");
  CHECK_THROWS_WITH(Tokenizer(f / ""), Contains("'!!' is no token"));
}

TEST_CASE("tokenizer: a byte that is no token, and a pattern that takes too long, end in a line") {
  Tokenizer lacking = with(R"(,"b":)", R"(,"unreachable":)");
  CHECK_THROWS_WITH(lacking.encode("abc"), Contains("byte 98 is no token of the vocabulary; it is in the word 'abc'"));
  Tokenizer slow = with(R"("Regex":")", R"("Regex":"(?:a|a|aa)+[0-9]|)", "llama3");
  CHECK_THROWS_WITH(slow.encode(std::string(200, 'a')),
                    Contains("the pattern gave up on the words from 'aaa") && Contains("limit"));
}
