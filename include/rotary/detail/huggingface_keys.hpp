// Strict reading of config.json: text with a bounded depth and without repeated keys, values of the type asked for, and
// a record of what was read, so that what nobody read can be refused.
#ifndef ROTARY_DETAIL_HUGGINGFACE_KEYS_HPP
#define ROTARY_DETAIL_HUGGINGFACE_KEYS_HPP

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../rope.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Text of a config for an error message, with '?' for what a terminal should not be sent.
inline std::string harmless(std::string text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
  return text;
}

[[noreturn]] inline void refuse(const std::string& key, const std::string& value, const std::string& permitted) {
  fail("rotary::from_huggingface: %.90s is %.60s; %.200s.", harmless(key).c_str(), harmless(value).c_str(),
       harmless(permitted).c_str());
}

[[noreturn]] inline void refuse_missing(const std::string& key, const std::string& remedy) {
  fail("rotary::from_huggingface: %.90s is missing; %.240s.", harmless(key).c_str(), harmless(remedy).c_str());
}

/// A value for an error's text. Not dump(), which descends as deep as the value is nested.
inline std::string shown(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_number_float() && !is_finite(value.get<double>())) return "not finite";
  if (!value.is_array()) return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string text = "[";
  for (std::size_t i = 0; i < value.size() && i < 4; ++i) {
    text += (i == 0 ? "" : ", ") + (value[i].is_array() ? std::string("a list") : shown(value[i]));
  }
  return text + (value.size() > 4 ? ", ...]" : "]");
}

/// How deep a config may nest, so that what walks over it needs no more stack.
inline constexpr std::size_t most_levels = 64;

[[noreturn]] inline void refuse_depth(const std::string& path) {
  refuse(path, "nested deeper than " + std::to_string(most_levels) + " levels",
         "configs have fewer than ten. Remove the key");
}

/// Refuses a config that the caller parsed, with no bound on its depth.
inline void require_shallow(const nlohmann::json& value, const std::string& path, std::size_t levels = most_levels) {
  if (!value.is_structured()) return;
  if (levels == 0) refuse_depth(path.empty() ? "the config" : path);
  for (const auto& item : value.items()) {
    const bool names_it = path.empty() && value.is_object();  // the outermost key will do
    require_shallow(item.value(), names_it ? item.key() : path, levels - 1);
  }
}

/// Refuses text that is not JSON, or repeats a key, or holds a number beyond double; names the key it happened at.
class text_check {
 public:
  /// `path` leads to the text where it is a string in a config; empty for the config itself.
  text_check(const std::string& text, const std::string& path) : text_(text), path_(path) {}

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(std::int64_t) { return true; }
  bool number_unsigned(std::uint64_t) { return true; }
  bool number_float(double value, const std::string& digits) {
    // The parser has refused these unless -ffast-math took its test away.
    if (!is_finite(value)) refuse(path(), "\"" + digits + "\"", "it must be a number that a double can hold");
    return true;
  }
  bool string(std::string&) { return true; }
  bool binary(nlohmann::json::binary_t&) { return true; }
  bool start_object(std::size_t) { return enter(); }
  bool start_array(std::size_t) { return enter(); }
  bool end_object() { return leave(); }
  bool end_array() { return leave(); }
  bool key(std::string& name) {
    open_.back().key = name;
    if (!open_.back().seen.insert(name).second) refuse(path(), "stated twice", "each key may appear once");
    return true;
  }
  /// `position` counts the bytes read, with the end as one more.
  template <class Error>
  bool parse_error(std::size_t position, const std::string&, const Error&) {
    constexpr const char* permitted = "it must be complete JSON, with numbers that a double can hold (no NaN)";
    if (text_.find_first_not_of(" \t\r\n") == std::string::npos) refuse(path(), "empty", permitted);
    if (ended_) {
      const std::size_t first = text_.find_first_not_of(" \t\r\n", end_of_root());
      refuse(path(), "followed by \"" + text_.substr(first, 30) + "\"" + at_byte(first),
             "there must be nothing behind its end");
    }
    if (position > text_.size()) refuse(path(), "cut off" + at_byte(text_.size()), permitted);
    const std::size_t before = position == 0 ? std::string::npos : text_.find_last_of(",:[{\n", position - 1);
    const std::size_t first = before == std::string::npos ? 0 : before + 1;
    const std::string value = text_.substr(first, text_.find_first_of(",:]}\n", first) - first);
    refuse(path(), "\"" + value.substr(0, 30) + "\"" + at_byte(first), permitted);
  }

 private:
  struct level {
    std::string key;
    std::set<std::string> seen;
  };

  bool enter() {
    if (open_.size() == most_levels) refuse_depth(path());
    open_.emplace_back();
    return true;
  }
  bool leave() {
    open_.pop_back();
    ended_ = open_.empty();
    return true;
  }
  /// Of an object or list that has been parsed.
  std::size_t end_of_root() const {
    std::size_t depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (quoted && c == '\\') ++i;
      if (c == '"') quoted = !quoted;
      if (quoted) continue;
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) return i + 1;
    }
    return text_.size();
  }
  std::string at_byte(std::size_t n) const {
    return " at byte " + std::to_string(n) + (path_.empty() ? "" : " of the string");
  }
  std::string path() const {
    std::string joined = path_;
    for (const level& at : open_) {
      if (!at.key.empty()) joined += (joined.empty() ? "" : ".") + at.key;
    }
    return joined.empty() ? "the text" : joined;
  }

  const std::string& text_;
  const std::string path_;
  std::vector<level> open_;
  bool ended_ = false;  // the object or list that the text is
};

/// `path` as for text_check. The parser takes a NUL for the end; in UTF-16 every second byte is one.
inline nlohmann::json parse_config(const std::string& text, const std::string& path = "") {
  const std::size_t nul = text.find('\0');
  if (nul != std::string::npos) {
    refuse(path.empty() ? "the text" : path, "no UTF-8: it has a NUL at byte " + std::to_string(nul),
           "it must be JSON in UTF-8");
  }
  text_check check(text, path);
  nlohmann::json::sax_parse(text, &check);
  return nlohmann::json::parse(text);
}

/// An object of the config, with the path to it for errors. A null value counts as absent. Getters throw error naming
/// path, value and what is permitted.
class config_object {
 public:
  config_object(const nlohmann::json& object, std::string path) : object_(&object), path_(std::move(path)) {
    if (!object.is_object()) refuse(path_.empty() ? "the config" : path_, shown(object), "it must be an object");
  }

  const nlohmann::json& raw() const { return *object_; }
  std::string path_of(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  const std::string& path() const { return path_; }
  bool has(const char* key) const { return find(key) != nullptr; }
  /// Throws error that the value of `key`, which is there, is not permitted.
  [[noreturn]] void refuse_value(const std::string& key, const std::string& permitted) const {
    refuse(path_of(key), shown(object_->at(key)), permitted);
  }

  std::optional<double> number(const char* key) const {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) return std::nullopt;
    const nlohmann::json parsed = as_number(*value);
    if (!parsed.is_number() || !is_finite(parsed.get<double>())) {
      refuse_value(key, "it must be a finite number");
    }
    if (!is_moderate(parsed.get<double>())) refuse_value(key, std::string("it must be ") + moderate_range);
    return parsed.get<double>();
  }
  std::optional<double> positive(const char* key) const {
    const std::optional<double> value = number(key);
    if (value && *value <= 0.0) refuse_value(key, "it must be greater than 0");
    return value;
  }

  /// Whole numbers may be written as 128.0.
  std::optional<std::int64_t> integer(const char* key, std::int64_t least, std::int64_t most) const {
    const std::optional<double> value = number(key);
    if (!value) return std::nullopt;
    if (*value != floor(*value)) refuse_value(key, "it must be a whole number");
    if (*value < static_cast<double>(least) || *value > static_cast<double>(most)) {
      refuse_value(key, "it must be in [" + std::to_string(least) + ", " + std::to_string(most) + "]");
    }
    return static_cast<std::int64_t>(*value);
  }
  /// A number of tokens.
  std::optional<std::int64_t> length(const char* key) const { return integer(key, 1, std::int64_t{1} << 40); }

  std::optional<bool> flag(const char* key) const {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->is_number_integer()) return value->get<std::int64_t>() != 0;  // Llama-4 has attn_temperature_tuning: 4
    if (!value->is_boolean()) refuse_value(key, "it must be true or false");
    return value->get<bool>();
  }

  std::optional<std::string> word(const char* key) const {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) refuse_value(key, "it must be a string");
    return value->get<std::string>();
  }

  /// The list under `key`; each entry is one of its own, not a numeric string.
  const nlohmann::json* array(const char* key) const {
    const nlohmann::json* const value = find(key);
    if (value != nullptr && !value->is_array()) refuse_value(key, "it must be a list");
    return value;
  }
  std::optional<std::vector<double>> numbers(const char* key) const {
    const nlohmann::json* const values = array(key);
    if (values == nullptr) return std::nullopt;
    std::vector<double> result;
    for (std::size_t i = 0; i < values->size(); ++i) {
      const nlohmann::json& value = (*values)[i];
      if (!value.is_number() || !is_finite(value.get<double>())) {
        refuse(path_of(key) + "[" + std::to_string(i) + "]", shown(value), "it must be a finite number");
      }
      if (!is_moderate(value.get<double>())) {
        refuse(path_of(key) + "[" + std::to_string(i) + "]", shown(value), std::string("it must be ") + moderate_range);
      }
      result.push_back(value.get<double>());
    }
    return result;
  }
  std::optional<std::vector<std::size_t>> counts(const char* key, double most) const {
    const std::optional<std::vector<double>> values = numbers(key);
    if (!values) return std::nullopt;
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < values->size(); ++i) {
      const double value = (*values)[i];
      if (value != floor(value) || value < 0.0 || value > most) {
        refuse(path_of(key) + "[" + std::to_string(i) + "]", shown((*find(key))[i]),
               "it must be a whole number from 0 to " + std::to_string(static_cast<std::int64_t>(most)));
      }
      result.push_back(static_cast<std::size_t>(value));
    }
    return result;
  }

  /// The object under `key`, also one that is written as a string of JSON.
  std::optional<config_object> object(const char* key) const {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) return std::nullopt;
    std::shared_ptr<const nlohmann::json> owner = owner_;
    const nlohmann::json* object = value;
    if (value->is_string()) {
      const std::string& text = value->get_ref<const std::string&>();
      const std::size_t blanks = text.find_first_not_of(" \t\r\n");
      const char first = blanks == std::string::npos ? ' ' : text[blanks];
      if ((first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z')) {  // the name of a type, most likely
        refuse_value(key, "it must be an object, or the JSON text of one");
      }
      owner = std::make_shared<const nlohmann::json>(parse_config(text, path_of(key)));
      object = owner.get();
    }
    config_object result(*object, path_of(key));
    result.owner_ = std::move(owner);
    return result;
  }

  /// Marks a key as read: the caller knows that it does not bear on the rotation.
  void pass_over(const std::string& key) const { read_.insert(key); }
  bool was_read(const std::string& key) const { return read_.count(key) != 0; }

 private:
  const nlohmann::json* find(const char* key) const {
    read_.insert(key);
    const auto found = object_->find(key);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
  }

  static nlohmann::json as_number(const nlohmann::json& value) {
    if (value.is_number()) return value;
    if (!value.is_string()) return nullptr;
    const std::string& text = value.get_ref<const std::string&>();
    if (text.find('\0') != std::string::npos) return nullptr;  // the parser would take it for the end
    return nlohmann::json::parse(text, nullptr, false);
  }

  const nlohmann::json* object_;
  std::string path_;
  std::shared_ptr<const nlohmann::json> owner_;
  mutable std::set<std::string> read_;
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
