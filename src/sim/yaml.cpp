// SPDX-License-Identifier: Apache-2.0
#include "sim/yaml.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <cstdint>
#include <exception>
#include <sstream>

namespace gantry::sim {
namespace {

struct Refused : std::exception {
  Refused(int at, std::string why) : line(at), text(std::move(why)) {}
  const char* what() const noexcept override { return text.c_str(); }
  int line;
  std::string text;
};

// yaml-cpp's events, not its nodes: limits apply while the text is read, not after.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::shared_ptr<const std::string> file) : file_(std::move(file)) {}

  YamlValue take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(begin(mark, "", anchor, YamlValue::Kind::Null));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw Refused(mark.line + 1, "aliases (*name) are not used in machine files");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto scalar = begin(mark, tag, anchor, YamlValue::Kind::Scalar);
    scalar.text = value;
    add(std::move(scalar));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(begin(mark, tag, anchor, YamlValue::Kind::List));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(begin(mark, tag, anchor, YamlValue::Kind::Map));
  }
  void OnMapEnd() override { close(); }

 private:
  struct Level {
    YamlValue value;
    std::string key;
    bool has_key = false;
  };

  YamlValue begin(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YamlValue::Kind kind) {
    const int line = mark.line + 1;
    if (anchor != YAML::NullAnchor) {
      throw Refused(line, "anchors (&name) are not used in machine files");
    }
    if (!tag.empty() && tag != "?" && tag != "!") throw Refused(line, "tags (!name) are not used");
    if (++count_ > kYamlValues) {
      throw Refused(line, fmt::format("more than {} values", kYamlValues));
    }
    YamlValue value;
    value.kind = kind;
    value.file = file_;
    value.line = line;
    return value;
  }

  void open(YamlValue value) {
    if (levels_.size() >= kYamlDepth) {
      throw Refused(value.line, fmt::format("nested deeper than {} levels", kYamlDepth));
    }
    levels_.push_back({std::move(value), {}, false});
  }

  void close() {
    YamlValue done = std::move(levels_.back().value);
    levels_.pop_back();
    add(std::move(done));
  }

  void add(YamlValue value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return;
    }
    Level& level = levels_.back();
    if (level.value.kind == YamlValue::Kind::List) {
      level.value.items.push_back(std::move(value));
    } else if (!level.has_key) {
      if (value.kind != YamlValue::Kind::Scalar)
        throw Refused(value.line, "a key must be plain text");
      if (level.value.find(value.text) != nullptr) {
        throw Refused(value.line, fmt::format("key \"{}\" is given twice", value.text));
      }
      level.key = std::move(value.text);
      level.has_key = true;
    } else {
      level.value.entries.push_back({std::move(level.key), std::move(value)});
      level.has_key = false;
    }
  }

  std::shared_ptr<const std::string> file_;
  std::vector<Level> levels_;
  std::size_t count_ = 0;
  YamlValue root_;
};

}  // namespace

YamlValue::YamlValue() = default;
YamlValue::~YamlValue() = default;
YamlValue::YamlValue(const YamlValue& other) = default;
YamlValue::YamlValue(YamlValue&& other) noexcept = default;
YamlValue& YamlValue::operator=(const YamlValue& other) = default;
YamlValue& YamlValue::operator=(YamlValue&& other) noexcept = default;

const YamlValue* YamlValue::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name == key) return &value;
  }
  return nullptr;
}

YamlValue* YamlValue::find(std::string_view key) {
  return const_cast<YamlValue*>(static_cast<const YamlValue*>(this)->find(key));
}

std::string YamlValue::where() const {
  return fmt::format("{}:{}", file ? std::string_view(*file) : "machine", line);
}

Result<YamlValue> parse_yaml(std::string_view text, std::string_view file) {
  if (text.size() > kYamlBytes) {
    return Error(Errc::Corrupt, fmt::format("{}: larger than {} KiB, which no machine needs", file,
                                            kYamlBytes >> 10U));
  }
  if (text.find('\0') != std::string_view::npos) {
    return Error(Errc::Corrupt, fmt::format("{}: has a NUL byte, this is no YAML", file));
  }
  const auto name = std::make_shared<const std::string>(file);
  auto fail = [&](int line, std::string_view why) {
    return Error(Errc::Corrupt, fmt::format("{}:{}: {}", file, line, why));
  };
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Builder builder(name);
    parser.HandleNextDocument(builder);
    Builder rest(name);
    if (parser.HandleNextDocument(rest)) return fail(1, "has more than one document");
    YamlValue root = builder.take();
    root.file = name;
    if (root.kind == YamlValue::Kind::Null) root.kind = YamlValue::Kind::Map;
    return root;
  } catch (const Refused& refused) {
    return fail(refused.line, refused.text);
  } catch (const YAML::Exception& error) {
    return fail(error.mark.line + 1, error.msg);
  } catch (const std::exception& error) {
    return fail(1, error.what());
  }
}

void merge(YamlValue& base, const YamlValue& over) {
  if (base.kind != YamlValue::Kind::Map || over.kind != YamlValue::Kind::Map) {
    base = over;
    return;
  }
  for (const auto& [key, value] : over.entries) {
    if (YamlValue* old = base.find(key)) {
      merge(*old, value);
    } else {
      base.entries.push_back({key, value});
    }
  }
  base.line = over.line;
  base.file = over.file;
}

}  // namespace gantry::sim
