// SPDX-License-Identifier: Apache-2.0
#include "base/yaml/value.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace gantry::yaml {
namespace {

constexpr std::string_view kTextTag = "tag:yaml.org,2002:str";

struct RejectedText : std::exception {
  RejectedText(int at, std::string why) : line(at), text(std::move(why)) {}
  const char* what() const noexcept override { return text.c_str(); }
  int line;
  std::string text;
};

// Uses the events of yaml-cpp, not its nodes, so that the limits apply while the text is read.
class Builder : public YAML::EventHandler {
 public:
  Builder(std::shared_ptr<const std::string> file, const Limits& limits)
      : file_(std::move(file)), limits_(limits) {}

  // The document that was read last. Starts the next one; `values` go on counting.
  Value take() {
    anchors_.clear();
    if (root_.kind == Value::Kind::Null) root_.kind = Value::Kind::Map;
    root_.file = file_;
    return std::exchange(root_, Value());
  }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(begin(mark, "", anchor, Value::Kind::Null));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (limits_.aliases == AliasPolicy::Refuse) {
      throw RejectedText(mark.line + 1, "aliases (*name) are not allowed here");
    }
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) {
      throw RejectedText(mark.line + 1, "an alias (*name) inside its own value");
    }
    count(known->second, mark.line + 1, levels_.size());
    add(known->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto scalar = begin(mark, tag, anchor, Value::Kind::Scalar);
    scalar.text = value;
    scalar.quoted = tag == "!" || tag == kTextTag;
    keep(anchor, scalar);
    add(std::move(scalar));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(begin(mark, tag, anchor, Value::Kind::List), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(begin(mark, tag, anchor, Value::Kind::Map), anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    Value value;
    std::string key;
    bool has_key = false;
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::set<std::string> keys = {};  // so that a map with many keys is not searched for each
  };

  Value begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
              Value::Kind kind) {
    const int line = mark.line + 1;
    if (anchor != YAML::NullAnchor && limits_.aliases == AliasPolicy::Refuse) {
      throw RejectedText(line, "anchors (&name) are not allowed here");
    }
    if (limits_.tags == TagPolicy::Refuse && !tag.empty() && tag != "?" && tag != "!")
      throw RejectedText(line, "tags (!name) are not allowed");
    count_one(line);
    Value value;
    value.kind = kind;
    value.file = file_;
    value.line = line;
    return value;
  }

  void count_one(int line) {
    if (++count_ > limits_.values) {
      throw RejectedText(line, fmt::format("more than {} values", limits_.values));
    }
  }

  // Called before a copy is made: a few nested aliases can stand for millions of values.
  void count(const Value& value, int line, std::size_t depth) {
    count_one(line);
    check_depth(depth, line);
    count_copied(value.text, line);
    for (const auto& item : value.items) count(item, line, depth + 1);
    for (const auto& [key, item] : value.entries) {
      count_copied(key, line);
      count(item, line, depth + 1);
    }
  }

  void count_copied(const std::string& text, int line) {
    copied_ += text.size();
    if (copied_ > limits_.bytes) {
      throw RejectedText(
          line, fmt::format("aliases (*name) repeat more than {} KiB", limits_.bytes >> 10U));
    }
  }

  void check_depth(std::size_t depth, int line) const {
    if (depth > limits_.depth) {
      throw RejectedText(line, fmt::format("nested deeper than {} levels", limits_.depth));
    }
  }

  void keep(YAML::anchor_t anchor, const Value& value) {
    if (anchor == YAML::NullAnchor) return;
    count(value, value.line, levels_.size());
    anchors_[anchor] = value;
  }

  void open(Value value, YAML::anchor_t anchor) {
    check_depth(levels_.size() + 1, value.line);
    levels_.push_back({std::move(value), {}, false, anchor});
  }

  void close() {
    Level done = std::move(levels_.back());
    levels_.pop_back();
    keep(done.anchor, done.value);
    add(std::move(done.value));
  }

  void add(Value value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = levels_.back();
    if (level.value.kind == Value::Kind::List) {
      level.value.items.push_back(std::move(value));
    } else if (!level.has_key) {
      if (value.kind != Value::Kind::Scalar)
        throw RejectedText(value.line, "a key must be plain text");
      if (!level.keys.insert(value.text).second) {
        throw RejectedText(value.line, fmt::format("key \"{}\" is given twice", value.text));
      }
      level.key = std::move(value.text);
      level.has_key = true;
    } else {
      level.value.entries.push_back({std::move(level.key), std::move(value)});
      level.has_key = false;
    }
  }

  std::shared_ptr<const std::string> file_;
  const Limits& limits_;
  std::map<YAML::anchor_t, Value> anchors_;
  std::vector<Level> levels_;
  std::size_t count_ = 0;
  std::size_t copied_ = 0;  // bytes
  Value root_;
};

std::string_view line_at(std::string_view text, int number) {
  for (; number > 1; --number) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// The parser's message says what it expected instead of a tab.
std::string explain_error(std::string_view text, int line, std::string message) {
  const auto wrong = line_at(text, line);
  const auto indentation = wrong.substr(0, wrong.find_first_not_of(" \t"));
  if (contains(indentation, "\t"))
    return "the line is indented with a tab; YAML takes spaces only: write two spaces for each tab";
  if (contains(wrong, "{{")) return message + "; {{ is a template, which must be rendered first";
  return message;
}

Result<std::vector<Value>> read_documents(std::string_view text, std::string_view file,
                                          const Limits& limits, std::size_t most) {
  if (text.size() > limits.bytes) {
    return Error(Errc::Corrupt, fmt::format("{}: larger than {} KiB", file, limits.bytes >> 10U));
  }
  if (text.find('\0') != std::string_view::npos) {
    return Error(Errc::Corrupt, fmt::format("{}: contains a NUL byte, so it is not YAML", file));
  }
  auto fail = [&](std::int64_t line, std::string_view why) {
    return Error(Errc::Corrupt, fmt::format("{}:{}: {}", file, line, why));
  };
  if (const auto valid = utf8_prefix(text); valid < text.size())
    return fail(
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(valid), '\n'),
        "a byte that is not UTF-8");
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(std::make_shared<const std::string>(file), limits);
    std::vector<Value> documents;
    while (parser.HandleNextDocument(builder)) {
      if (documents.size() == most)
        return fail(1, most == 1 ? std::string("has more than one document")
                                 : fmt::format("has more than {} documents", most));
      documents.push_back(builder.take());
    }
    return documents;
  } catch (const RejectedText& refused) {
    return fail(refused.line, explain_error(text, refused.line, refused.text));
  } catch (const YAML::Exception& error) {
    return fail(error.mark.line + 1, explain_error(text, error.mark.line + 1, error.msg));
  } catch (const std::exception& error) {
    return fail(1, error.what());
  }
}

}  // namespace

Value::Value() = default;
Value::~Value() = default;
Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name == key) return &value;
  }
  return nullptr;
}

Value* Value::find(std::string_view key) {
  return const_cast<Value*>(static_cast<const Value*>(this)->find(key));
}

std::string Value::where() const {
  return fmt::format("{}:{}", file ? std::string_view(*file) : "text", line);
}

Result<Value> parse(std::string_view text, std::string_view file, const Limits& limits) {
  GANTRY_TRY(auto documents, read_documents(text, file, limits, 1));
  if (documents.empty()) {
    Value empty;
    empty.kind = Value::Kind::Map;
    empty.file = std::make_shared<const std::string>(file);
    return empty;
  }
  return std::move(documents.front());
}

Result<std::vector<Value>> parse_all(std::string_view text, std::string_view file,
                                     const Limits& limits) {
  return read_documents(text, file, limits, limits.documents);
}

void merge(Value& base, const Value& over) {
  if (base.kind != Value::Kind::Map || over.kind != Value::Kind::Map) {
    base = over;
    return;
  }
  for (const auto& [key, value] : over.entries) {
    if (Value* old = base.find(key)) {
      merge(*old, value);
    } else {
      base.entries.push_back({key, value});
    }
  }
  base.line = over.line;
  base.file = over.file;
}

}  // namespace gantry::yaml
