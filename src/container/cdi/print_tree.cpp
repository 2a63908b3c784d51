// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "container/cdi/characters_internal.hpp"
#include "container/cdi/output_tree_internal.hpp"

#include <algorithm>
#include <array>

namespace gantry::cdi {
namespace {

// A JSON string, which is also valid YAML.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Words that some YAML readers read as a boolean or null.
bool is_yaml_word(std::string_view text) {
  constexpr std::array<std::string_view, 9> kWords{"true", "false", "yes", "no", "on",
                                                   "off",  "null",  "y",   "n"};
  return std::find(kWords.begin(), kWords.end(), to_lower(text)) != kWords.end();
}

// "0.5.0" has two dots, so it is not a number.
bool is_version(std::string_view text) {
  return std::count(text.begin(), text.end(), '.') == 2 &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '.'; }) &&
         is_digit(text.front()) && is_digit(text.back());
}

// Quotes every text that a reader could read as another type.
std::string yaml_scalar(const std::string& text) {
  const auto harmless = [](char c) {
    return is_letter(c) || is_digit(c) || std::string_view("/_.=+,-:").find(c) != std::string::npos;
  };
  const bool plain = !text.empty() && (is_letter(text[0]) || text[0] == '/') &&
                     text.back() != ':' && std::all_of(text.begin(), text.end(), harmless) &&
                     !is_yaml_word(text);
  return plain || is_version(text) ? text : quoted(text);
}

bool is_leaf(const OutputTree& tree) {
  return tree.kind == OutputTree::Kind::Text || tree.kind == OutputTree::Kind::Literal ||
         tree.children.empty();
}

const char* empty_form(const OutputTree& tree) {
  return tree.kind == OutputTree::Kind::List ? "[]" : "{}";
}

std::string yaml_leaf(const OutputTree& tree) {
  if (tree.kind == OutputTree::Kind::Text) return yaml_scalar(tree.text);
  return tree.kind == OutputTree::Kind::Literal ? tree.text : empty_form(tree);
}

// `out` ends where the first line of the value starts; further lines get `indent`.
void yaml(std::string& out, const OutputTree& tree, std::size_t indent) {
  bool first = true;
  for (const auto& value : tree.children) {
    if (!first) out.append(indent, ' ');
    first = false;
    if (tree.kind == OutputTree::Kind::List) {
      out += "- ";
      if (is_leaf(value)) {
        out += yaml_leaf(value) + "\n";
      } else {
        yaml(out, value, indent + 2);
      }
    } else if (is_leaf(value)) {
      out += yaml_scalar(value.key) + ": " + yaml_leaf(value) + "\n";
    } else {
      out += yaml_scalar(value.key) + ":\n";
      out.append(indent + 2, ' ');
      yaml(out, value, indent + 2);
    }
  }
}

void write_json(json::Writer& out, const OutputTree& tree) {
  switch (tree.kind) {
    case OutputTree::Kind::Text: return out.value(tree.text);
    case OutputTree::Kind::Literal: return out.raw(tree.text);
    case OutputTree::Kind::List:
      return out.array(tree.children, [&](const OutputTree& child) { write_json(out, child); });
    default: break;
  }
  out.object([&] {
    for (const auto& child : tree.children) {
      out.key(child.key);
      write_json(out, child);
    }
  });
}

}  // namespace

std::string print_yaml(const OutputTree& tree) {
  std::string out = "---\n";
  yaml(out, tree, 0);
  return out;
}

std::string print_json(const OutputTree& tree) {
  json::Writer out(json::Layout::Indented);
  write_json(out, tree);
  return out.text() + "\n";
}

}  // namespace gantry::cdi
