// SPDX-License-Identifier: Apache-2.0
// Reads a small XML document into a tree. expat parses it (docs/decisions/0034-xml-reader.md).
#pragma once

#include "base/core/result.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::hypervisor {

constexpr std::size_t kXmlSizeLimit = std::size_t{4} << 20;  // a domain has 5 to 50 KB
constexpr std::size_t kXmlElementLimit = 20'000;
constexpr std::size_t kXmlAttributeLimit = 64;  // of one element
constexpr std::size_t kXmlDepthLimit = 64;

struct XmlElement {
  std::string name;  // without a namespace prefix: "commandline" for <qemu:commandline>
  std::vector<std::pair<std::string, std::string>> attributes;
  std::string text;  // directly in the element, trimmed
  int line = 0;
  std::vector<XmlElement> children;

  // The first child with this name; nullptr if there is none.
  const XmlElement* child(std::string_view wanted) const;
  // Along a path of names: at({"os", "type"}).
  const XmlElement* at(std::initializer_list<std::string_view> path) const;
  std::string attribute(std::string_view wanted) const;  // "" if it has none
};

// Corrupt, with line and column, for text that is not well-formed, for a document type declaration
// (it can define entities), and beyond the limits.
Result<XmlElement> parse_xml(std::string_view text);

}  // namespace gantry::hypervisor
