#include "io/tokenizers/steps.h"

#include <algorithm>

#include "core/system/foreign_text.h"

namespace isonorm::tokenizers {
namespace {

// True if the character (UTF-8) has Unicode's property White_Space.
bool is_white_space(std::string_view character) {
  if (character.size() == 1) return character == " " || (character[0] >= '\t' && character[0] <= '\r');
  constexpr std::string_view kWide[] = {"\u0085", "\u00a0", "\u1680", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};
  return (character >= "\u2000" && character <= "\u200a") || std::ranges::count(kWide, character) > 0;
}

size_t white_space_at_front(std::string_view text) {
  size_t end = 0;
  for (int n = 0; (n = utf8_length(text.substr(end))) > 0 && is_white_space(text.substr(end, static_cast<size_t>(n)));)
    end += static_cast<size_t>(n);
  return end;
}

size_t white_space_at_back(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    size_t at = begin - 1;
    while (at > 0 && (text[at] & 0xc0) == 0x80) --at;
    if (!is_white_space(text.substr(at, begin - at))) break;
    begin = at;
  }
  return text.size() - begin;
}

uint64_t step(uint64_t node, char byte) { return node << 8 | static_cast<uint8_t>(byte); }

}  // namespace

void AddedTokens::add(const AddedToken& token) {
  begins_[static_cast<uint8_t>(token.content[0])] = true;
  uint64_t node = 0;
  for (char byte : token.content) node = nodes_.emplace(step(node, byte), nodes_.size() + 1).first->second;
  complete_.emplace(node, tokens_.size());
  tokens_.push_back(token);
}

const AddedToken* AddedTokens::longest(std::string_view text) const {
  if (!begins_[static_cast<uint8_t>(text[0])]) return nullptr;
  const AddedToken* found = nullptr;
  uint64_t node = 0;
  for (char byte : text) {
    const auto next = nodes_.find(step(node, byte));
    if (next == nodes_.end()) break;
    node = next->second;
    if (const auto token = complete_.find(node); token != complete_.end()) found = &tokens_[token->second];
  }
  return found;
}

void AddedTokens::split(std::string_view text, const std::function<void(std::string_view)>& take_text,
                        const std::function<void(uint32_t)>& take_id) const {
  size_t taken = 0;
  size_t space_end = 0;  // end of the last white space taken; tokens inside it take up to the same end
  for (size_t at = 0; at < text.size() && !tokens_.empty();) {
    const AddedToken* token = longest(text.substr(at));
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t begin = at, end = at + token->content.size();
    at = end;
    if (token->lstrip && begin > taken) begin -= white_space_at_back(text.substr(taken, begin - taken));
    if (token->rstrip) end = space_end = end <= space_end ? space_end : end + white_space_at_front(text.substr(end));
    if (begin > taken) take_text(text.substr(taken, begin - taken));
    take_id(token->id);
    taken = end;
  }
  if (taken < text.size()) take_text(text.substr(taken));
}

}  // namespace isonorm::tokenizers
