// Internal: the regular expression by which a pre-tokenizer cuts a text into words, run by PCRE2 with Unicode's classes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace isonorm::tokenizers {

// Takes what means the same to PCRE2 and to the engine for which files are written, Oniguruma: characters, escaped
// punctuation, \r \n \t \d, \s and \S (Unicode's White_Space), \p{..} and \P{..} of general categories, sets without sets in
// them, | ( (?: (?i: (?= (?! and the quantifiers ? * + {n} {n,} {n,m}, of which the first three may be lazy or possessive.
class Pattern {
 public:
  // Throws, naming it, where the expression has anything else, is none, or could match nothing.
  explicit Pattern(const std::string& expression);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  struct Match {
    size_t begin, end;  // bytes; both are the text's size where there is no match
  };
  // The first match that begins at byte `from` or behind. The text has to be UTF-8: it is not checked. Throws where PCRE2
  // gives up, which it does after 10^7 steps.
  Match find(std::string_view text, size_t from);

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace isonorm::tokenizers
