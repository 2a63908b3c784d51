// SPDX-License-Identifier: Apache-2.0
//
// Writes the -q report, as indented text or as XML, from the same calls.
#pragma once

#include "sim/nvidia-smi/text.hpp"

namespace smi {

class ReportWriter {
 public:
  enum class Form { Text, Xml };
  /// `column`: where the colon of a text line stands.
  ReportWriter(Form form, int column) : form_(form), column_(column) {}

  bool xml() const { return form_ == Form::Xml; }
  int column() const { return column_; }
  void set_column(int column) { column_ = column; }

  /// A heading; what follows at a greater depth belongs to it. `id` becomes the XML attribute.
  void section(unsigned depth, const char* label, const char* tag, const char* id = nullptr);
  /// A line "label : value". A null label is left out of text, a null tag out of XML.
  void value(unsigned depth, const char* label, const char* tag, const char* text);
  /// A bare line inside an XML element.
  void content(unsigned depth, const char* text);
  /// Ends the XML elements at `depth` and deeper.
  void end(unsigned depth);

 private:
  static constexpr unsigned kMaxDepth = 10;
  Form form_;
  int column_;
  unsigned open_depth_[kMaxDepth] = {};
  const char* open_tag_[kMaxDepth] = {};
  unsigned open_count_ = 0;
};

}  // namespace smi
