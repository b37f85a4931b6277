// Internal: the regular expression that a pre-tokenizer splits text with, executed by PCRE2 with Unicode classes.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace isonorm::tokenizers {

// Accepts only syntax with the same meaning in PCRE2 and in Oniguruma, for which these files are written: characters,
// escaped punctuation, \r \n \t \d, \s and \S (Unicode's White_Space), \p{..} and \P{..} of general categories, sets
// that are not nested, | ( (?: (?i: (?= (?! and the quantifiers ? * + {n} {n,} {n,m}. The first three may be lazy or
// possessive.
class Pattern {
 public:
  // Throws, naming the expression, if it contains anything else, is invalid, or could match the empty text.
  explicit Pattern(const std::string& expression);
  ~Pattern();
  Pattern(Pattern&&) noexcept;

  struct Match {
    size_t begin, end;  // bytes; both are the text's size if there is no match
  };
  // The first match that begins at byte `from` or later. The text must be UTF-8; this is not checked. Throws if PCRE2
  // gives up, after 10^7 steps.
  Match find(std::string_view text, size_t from);

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace isonorm::tokenizers
