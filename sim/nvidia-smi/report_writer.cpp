// SPDX-License-Identifier: Apache-2.0
#include "sim/nvidia-smi/report_writer.hpp"

namespace smi {
namespace {

void tabs(unsigned count) {
  for (unsigned i = 0; i < count; ++i) putchar('\t');
}

void put_escaped(const char* text) {
  for (; *text != '\0'; ++text) {
    switch (*text) {
      case '&': fputs("&amp;", stdout); break;
      case '<': fputs("&lt;", stdout); break;
      case '>': fputs("&gt;", stdout); break;
      case '"': fputs("&quot;", stdout); break;
      default: putchar(*text); break;
    }
  }
}

}  // namespace

void ReportWriter::end(unsigned depth) {
  while (open_count_ > 0 && open_depth_[open_count_ - 1] >= depth) {
    --open_count_;
    tabs(open_depth_[open_count_] + 1);
    printf("</%s>\n", open_tag_[open_count_]);
  }
}

void ReportWriter::section(unsigned depth, const char* label, const char* tag, const char* id) {
  if (!xml()) {
    if (label != nullptr) printf("%*s%s\n", static_cast<int>(depth * 4), "", label);
    return;
  }
  end(depth);
  if (tag == nullptr || open_count_ == kMaxDepth) return;
  tabs(depth + 1);
  if (id != nullptr) {
    printf("<%s id=\"%s\">\n", tag, id);
  } else {
    printf("<%s>\n", tag);
  }
  open_depth_[open_count_] = depth;
  open_tag_[open_count_++] = tag;
}

void ReportWriter::value(unsigned depth, const char* label, const char* tag, const char* text) {
  if (!xml()) {
    const int indent = static_cast<int>(depth * 4);
    if (label != nullptr) printf("%*s%-*s: %s\n", indent, "", column_ - indent, label, text);
    return;
  }
  end(depth);
  if (tag == nullptr) return;
  tabs(depth + 1);
  printf("<%s>", tag);
  put_escaped(text);
  printf("</%s>\n", tag);
}

void ReportWriter::content(unsigned depth, const char* text) {
  if (!xml()) return;
  tabs(depth + 1);
  put_escaped(text);
  putchar('\n');
}

}  // namespace smi
