// SPDX-License-Identifier: Apache-2.0
#include "vm/hypervisor/xml.hpp"

#include "base/core/text.hpp"

#include <expat.h>

#include <fmt/format.h>

#include <memory>

namespace gantry::hypervisor {
namespace {

struct FreeParser {
  void operator()(XML_ParserStruct* parser) const { XML_ParserFree(parser); }
};

// Builds the tree. The parents of the open element are moved into their places only when they end,
// so no pointer into a growing vector is kept.
class TreeBuilder {
 public:
  explicit TreeBuilder(XML_Parser parser) : parser_(parser) {}

  // After stop() expat may still report the end of an empty element.
  void start(const char* name, const char** attributes) {
    if (!why_.empty()) return;
    if (++elements_ > kXmlElementLimit) return stop("too many elements");
    if (open_.size() >= kXmlDepthLimit) return stop("nested too deep");
    XmlElement element;
    element.name = local(name);
    element.line = static_cast<int>(XML_GetCurrentLineNumber(parser_));
    for (; attributes[0] != nullptr; attributes += 2) {
      if (element.attributes.size() == kXmlAttributeLimit) return stop("too many attributes");
      element.attributes.emplace_back(local(attributes[0]), attributes[1]);
    }
    open_.push_back(std::move(element));
  }

  void end() {
    if (!why_.empty() || open_.empty()) return;
    auto element = std::move(open_.back());
    open_.pop_back();
    element.text = std::string(trim(element.text));
    if (open_.empty()) {
      root_ = std::move(element);
    } else {
      open_.back().children.push_back(std::move(element));
    }
  }

  void text(const char* bytes, int size) {
    if (!open_.empty()) open_.back().text.append(bytes, static_cast<std::size_t>(size));
  }

  void stop(std::string_view why) {
    if (why_.empty()) why_ = why;
    XML_StopParser(parser_, XML_FALSE);
  }

  const std::string& why() const { return why_; }
  XmlElement take() { return std::move(root_); }

 private:
  static std::string local(std::string_view name) {
    return std::string(name.substr(name.rfind(':') + 1));  // npos + 1 is 0
  }

  XML_Parser parser_;
  std::vector<XmlElement> open_;
  XmlElement root_;
  std::size_t elements_ = 0;
  std::string why_;
};

TreeBuilder& builder_of(void* data) {
  return *static_cast<TreeBuilder*>(data);
}

void set_handlers(XML_Parser parser, TreeBuilder& builder) {
  XML_SetUserData(parser, &builder);
  XML_SetElementHandler(
      parser,
      [](void* data, const char* name, const char** attributes) {
        builder_of(data).start(name, attributes);
      },
      [](void* data, const char* /*name*/) { builder_of(data).end(); });
  XML_SetCharacterDataHandler(
      parser, [](void* data, const char* bytes, int size) { builder_of(data).text(bytes, size); });
  XML_SetStartDoctypeDeclHandler(
      parser, [](void* data, const char* /*name*/, const char* /*system*/, const char* /*public*/,
                 int /*internal*/) {
        builder_of(data).stop("a document type declaration is not allowed");
      });
}

}  // namespace

const XmlElement* XmlElement::child(std::string_view wanted) const {
  for (const auto& candidate : children) {
    if (candidate.name == wanted) return &candidate;
  }
  return nullptr;
}

const XmlElement* XmlElement::at(std::initializer_list<std::string_view> path) const {
  const XmlElement* element = this;
  for (const auto wanted : path) {
    element = element->child(wanted);
    if (element == nullptr) return nullptr;
  }
  return element;
}

std::string XmlElement::attribute(std::string_view wanted) const {
  for (const auto& [key, value] : attributes) {
    if (key == wanted) return value;
  }
  return "";
}

Result<XmlElement> parse_xml(std::string_view text) {
  if (text.size() > kXmlSizeLimit) {
    return Error(Errc::TooLarge, fmt::format("the XML has {}; at most {} are read",
                                             human_bytes(text.size()), human_bytes(kXmlSizeLimit)));
  }
  const std::unique_ptr<XML_ParserStruct, FreeParser> parser(XML_ParserCreate("UTF-8"));
  if (!parser) return Error(Errc::Internal, "expat has no memory");
  TreeBuilder builder(parser.get());
  set_handlers(parser.get(), builder);
  if (XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE) ==
      XML_STATUS_OK) {
    return builder.take();
  }
  const std::string why = builder.why().empty()
                              ? std::string(XML_ErrorString(XML_GetErrorCode(parser.get())))
                              : builder.why();
  return Error(Errc::Corrupt, fmt::format("not XML that can be read: line {}, column {}: {}",
                                          XML_GetCurrentLineNumber(parser.get()),
                                          XML_GetCurrentColumnNumber(parser.get()) + 1, why));
}

}  // namespace gantry::hypervisor
