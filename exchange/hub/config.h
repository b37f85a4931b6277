// Internal: config.json of a Hugging Face model folder, the description that transformers reads.
#pragma once

#include <string>
#include <string_view>

#include "io/json_text.h"

namespace isonorm::hub {

class Config {
 public:
  // If a key has a second name that the program of "model_type" accepts (attribute_map), the key replaces it, so each
  // value has one name. A key or second name with the value null counts as absent. Throws if the text is no JSON
  // object, and if a key and its second name have different values.
  explicit Config(std::string_view text);

  // All of these throw, naming the key, if the value has another type. integer() also throws if the key is missing.
  int64_t integer(std::string_view key) const;
  double number(std::string_view key, double otherwise) const;
  bool flag(std::string_view key, bool otherwise) const;
  // architecture(): the first of "architectures". Both return "" if there is none.
  std::string architecture() const;
  std::string word(std::string_view key) const;
  // Returns the object with this name as a Config. Throws if the object is missing.
  Config part(std::string_view key) const;
  // Returns the value as JSON; empty if the value is missing or null.
  std::string text_of(std::string_view key) const;
  // True if "auto_map" names a class in the model's own code.
  bool own_code() const;

  const json& values() const { return values_; }

 private:
  const json* find(std::string_view key) const;
  void rename(std::string_view alias, std::string_view name);

  json values_;
};

}  // namespace isonorm::hub
