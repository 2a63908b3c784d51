// SPDX-License-Identifier: Apache-2.0
#include "base/yaml/value.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <cstdint>
#include <exception>
#include <map>
#include <sstream>

namespace gantry::yaml {
namespace {

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

  Value take() { return std::move(root_); }

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
    scalar.quoted = tag == "!";
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
  };

  Value begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
              Value::Kind kind) {
    const int line = mark.line + 1;
    if (anchor != YAML::NullAnchor && limits_.aliases == AliasPolicy::Refuse) {
      throw RejectedText(line, "anchors (&name) are not allowed here");
    }
    if (!tag.empty() && tag != "?" && tag != "!")
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
    for (const auto& item : value.items) count(item, line, depth + 1);
    for (const auto& [key, item] : value.entries) count(item, line, depth + 1);
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
      if (level.value.find(value.text) != nullptr) {
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
  Value root_;
};

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
  if (text.size() > limits.bytes) {
    return Error(Errc::Corrupt, fmt::format("{}: larger than {} KiB", file, limits.bytes >> 10U));
  }
  if (text.find('\0') != std::string_view::npos) {
    return Error(Errc::Corrupt, fmt::format("{}: contains a NUL byte, so it is not YAML", file));
  }
  const auto name = std::make_shared<const std::string>(file);
  auto fail = [&](int line, std::string_view why) {
    return Error(Errc::Corrupt, fmt::format("{}:{}: {}", file, line, why));
  };
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(name, limits);
    parser.HandleNextDocument(builder);
    Builder rest(name, limits);
    if (parser.HandleNextDocument(rest)) return fail(1, "has more than one document");
    Value root = builder.take();
    root.file = name;
    if (root.kind == Value::Kind::Null) root.kind = Value::Kind::Map;
    return root;
  } catch (const RejectedText& refused) {
    return fail(refused.line, refused.text);
  } catch (const YAML::Exception& error) {
    return fail(error.mark.line + 1, error.msg);
  } catch (const std::exception& error) {
    return fail(1, error.what());
  }
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
