// SPDX-License-Identifier: Apache-2.0
#include "base/json/patch_internal.hpp"
#include "base/json/strings_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::json {

const Patch::Change* Patch::Change::find(const Step& step) const {
  const auto found = std::find_if(inside.begin(), inside.end(),
                                  [&step](const auto& entry) { return entry.first == step; });
  return found == inside.end() ? nullptr : found->second.get();
}

bool Patch::Change::adds() const {
  if (removed) return false;
  return replacement || !appended.empty() ||
         std::any_of(inside.begin(), inside.end(),
                     [](const auto& entry) { return entry.second->adds(); });
}

Patch::Patch() : root_(std::make_unique<Change>()) {}
Patch::~Patch() = default;
Patch::Patch(Patch&&) noexcept = default;
Patch& Patch::operator=(Patch&&) noexcept = default;

Patch::Change& Patch::at(const Path& path) {
  Change* change = root_.get();
  for (const auto& step : path) {
    if (const auto* known = change->find(step)) {
      change = const_cast<Change*>(known);
    } else {
      change = change->inside.emplace_back(step, std::make_unique<Change>()).second.get();
    }
    change->removed = false;  // a later change adds a value here
  }
  return *change;
}

void Patch::set(const Path& path, std::string value) {
  auto& change = at(path);
  change.replacement = std::move(value);
  change.inside.clear();
  change.appended.clear();
}

void Patch::append(const Path& path, std::string value) {
  at(path).appended.push_back(std::move(value));
}

void Patch::remove(const Path& path) {
  at(path).removed = true;
}

bool Patch::empty() const {
  return root_->inside.empty() && root_->appended.empty() && !root_->replacement;
}

// Writes the new text and copies everything that no change names.
class Renderer {
 public:
  explicit Renderer(const Document& document)
      : text_(document.text()), style_(detect_style(document)) {}

  Result<std::string> run(const Document& document, const Patch::Change& root) {
    const auto& node = document.root().node();
    out_ = text_.substr(0, node.begin);
    GANTRY_CHECK(value(document.root(), root, {}));
    out_ += text_.substr(node.end);
    return std::move(out_);
  }

 private:
  struct Addition {
    const Step* name;         // nullptr: an element
    const std::string* text;  // nullptr: an object created on the way
    const Patch::Change* change;
  };

  Status value(Value old, const Patch::Change& change, const std::string& where) {
    if (change.replacement)
      return write_new_value(*change.replacement, line_indentation(old), flat(old));
    if (change.inside.empty() && change.appended.empty()) {
      out_ += old.raw();
      return {};
    }
    const bool array = old.is(Kind::Array);
    if (!array && !old.is(Kind::Object)) {
      if (!change.adds()) {
        out_ += old.raw();
        return {};
      }
      if (old.is(Kind::Null)) return made(change, line_indentation(old), flat(old));
      return Error(Errc::Invalid,
                   fmt::format("{} is {}, not an object or array",
                               where.empty() ? "the whole" : where, to_string(old.kind())));
    }
    if (!array && !change.appended.empty()) {
      return Error(Errc::Invalid, fmt::format("{} is an object, not an array", where));
    }
    for (const auto& [step, inner] : change.inside) {
      if (step.is_index == array || !inner->adds()) continue;
      return Error(
          Errc::Invalid,
          fmt::format("{} is {}, where {} was expected", where.empty() ? "the whole" : where,
                      to_string(old.kind()), array ? "an object" : "an array"));
    }
    return container(old, change, where);
  }

  static Step step_of(Value item, bool array, std::size_t number) {
    return array ? Step(number) : Step(item.key());
  }

  Status container(Value old, const Patch::Change& change, const std::string& where) {
    const bool array = old.is(Kind::Array);
    const auto& node = old.node();
    out_ += text_[node.begin];
    std::size_t number = 0;
    std::size_t kept = 0;
    auto last_end = node.begin + 1;  // of the item before, removed or not
    std::string_view between;        // separator between the last two items
    std::string_view lead;
    for (const auto item : old) {
      const auto begin = item.node().key_end != 0 ? item.node().key_begin : item.node().begin;
      const auto separator = text_.substr(last_end, begin - last_end);
      last_end = item.node().end;
      (number == 0 ? lead : between) = separator;
      const auto step = step_of(item, array, number++);
      const auto* inner = change.find(step);
      if (inner != nullptr && inner->removed) continue;
      out_ += kept++ == 0 ? lead : separator;
      out_ += text_.substr(begin, item.node().begin - begin);
      if (inner == nullptr) {
        out_ += item.raw();
      } else {
        GANTRY_CHECK(
            value(item, *inner, where + "/" + (array ? std::to_string(number - 1) : step.key)));
      }
    }
    const auto tail = text_.substr(last_end, node.end - 1 - last_end);
    const auto news = additions(old, change);
    if (!news.empty()) {
      GANTRY_CHECK(add(old, news, kept, number == 0 ? std::string_view() : lead, between, tail));
    } else if (kept > 0 || number == 0) {
      out_ += tail;
    }
    out_ += text_[node.end - 1];
    return {};
  }

  std::vector<Addition> additions(Value old, const Patch::Change& change) const {
    std::vector<Addition> news;
    for (const auto& [step, inner] : change.inside) {
      if (!inner->adds() || step.is_index || !old.is(Kind::Object) || old[step.key]) continue;
      news.push_back({&step, inner->replacement ? &*inner->replacement : nullptr, inner.get()});
    }
    for (const auto& text : change.appended) news.push_back({nullptr, &text, nullptr});
    return news;
  }

  // Adds new items at the end of a container, in the layout of the items before them.
  Status add(Value old, const std::vector<Addition>& news, std::size_t kept, std::string_view lead,
             std::string_view between, std::string_view tail) {
    const bool one_line = lead.empty() && between.empty() && old.size() == 0
                              ? style_.line_end.empty()
                              : lead.find('\n') == std::string_view::npos;
    const auto outer = line_indentation(old);
    const auto indentation = one_line ? outer : item_indentation(lead, outer);
    std::string separator(between);
    if (separator.empty()) {
      separator = one_line ? style_.comma : "," + style_.line_end + indentation;
    }
    std::string before_first(lead);
    if (lead.empty() && !one_line) before_first = style_.line_end + indentation;
    for (const auto& item : news) {
      out_ += kept++ == 0 ? before_first : separator;
      if (item.name != nullptr) out_ += quote(item.name->key) + style_.colon;
      GANTRY_CHECK(item.text != nullptr ? write_new_value(*item.text, indentation, one_line)
                                        : made(*item.change, indentation, one_line));
    }
    if (old.size() == 0) {
      if (!one_line) out_ += style_.line_end + outer;
    } else {
      out_ += tail;
    }
    return {};
  }

  std::string item_indentation(std::string_view lead, const std::string& outer) const {
    const auto line = lead.rfind('\n');
    return line == std::string_view::npos ? outer + style_.unit
                                          : std::string(lead.substr(line + 1));
  }

  // Writes a value that is given as text, in the layout of the file.
  Status write_new_value(const std::string& text, const std::string& indentation, bool flat) {
    GANTRY_TRY(const auto document, Document::parse(text, Encoding::Any).in("the new value"));
    write_value(out_, document.root(), style_, indentation, flat);
    return {};
  }

  // Creates the missing values of a path: objects, and an array at its end. Builds them on one line
  // and then applies the layout of the file.
  Status made(const Patch::Change& change, const std::string& indentation, bool flat) {
    std::string text;
    GANTRY_CHECK(compact(change, text));
    return write_new_value(text, indentation, flat);
  }

  static Status compact(const Patch::Change& change, std::string& text) {
    if (change.replacement && change.inside.empty() && change.appended.empty()) {
      text += *change.replacement;
      return {};
    }
    const bool array = !change.appended.empty();
    text += array ? '[' : '{';
    const char* separator = "";
    for (const auto& [step, inner] : change.inside) {
      if (!inner->adds() || array) continue;
      text += separator + quote(step.key) + ":";
      separator = ",";
      GANTRY_CHECK(compact(*inner, text));
    }
    for (const auto& element : change.appended) {
      text += separator + element;
      separator = ",";
    }
    text += array ? ']' : '}';
    return {};
  }

  // White space at the start of the line on which a value (or its key) begins.
  std::string line_indentation(Value value) const {
    const auto line = text_.rfind('\n', value.node().begin);
    if (line == std::string_view::npos) return {};
    const auto end = text_.find_first_not_of(" \t", line + 1);
    return std::string(text_.substr(line + 1, end - line - 1));
  }

  // Whether a value in this place should stay on one line: its old form was a container on one.
  bool flat(Value old) const {
    if (style_.line_end.empty()) return true;
    return old.size() > 0 && old.raw().find('\n') == std::string_view::npos;
  }

  std::string_view text_;
  Style style_;
  std::string out_;
};

Result<std::string> Patch::apply(const Document& document) const {
  return Renderer(document).run(document, *root_);
}

}  // namespace gantry::json
