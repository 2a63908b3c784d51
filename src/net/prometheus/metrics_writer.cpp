// SPDX-License-Identifier: Apache-2.0
#include "net/prometheus/metrics_writer.hpp"

#include "base/core/text.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>

namespace gantry::prometheus {
namespace {

std::string_view to_string(MetricType type) {
  switch (type) {
    case MetricType::Gauge: return "gauge";
    case MetricType::Counter: return "counter";
    case MetricType::Histogram: return "histogram";
  }
  return "untyped";
}

void add_value(std::string& text, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(text), FMT_COMPILE("{}"), value);
  } else {
    text += std::isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
  }
}

void add_value(std::string& text, std::uint64_t value) {
  const fmt::format_int number(value);
  text.append(number.data(), number.size());
}

bool is_printable(char c, bool utf8) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 ? utf8 : byte >= 0x20 && byte != 0x7F;
}

// U+0080 to U+009F, which are C2 80 to C2 9F: some terminals treat them like ESC and a letter.
bool starts_c1_control(std::string_view text) {
  return text.size() > 1 && text[0] == '\xC2' && static_cast<unsigned char>(text[1]) < 0xA0;
}

}  // namespace

void add_label(std::string& labels, std::string_view name, std::string_view value) {
  if (!labels.empty()) labels += ',';
  labels += name;
  labels += "=\"";
  const bool utf8 = is_utf8(value);
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (utf8 && starts_c1_control(value.substr(i))) {
      labels += '?';
      ++i;
      continue;
    }
    switch (c) {
      case '\\': labels += "\\\\"; break;
      case '"': labels += "\\\""; break;
      case '\n': labels += "\\n"; break;
      default: labels += is_printable(c, utf8) ? c : '?';
    }
  }
  labels += '"';
}

std::string label(std::string_view name, std::string_view value) {
  std::string labels;
  add_label(labels, name, value);
  return labels;
}

void MetricsWriter::begin(const MetricInfo& metric) {
  metric_ = metric;
  head_written_ = false;
}

// Returns false if the page has no room for another series.
bool MetricsWriter::head() {
  constexpr std::size_t kRoom = 8192;  // for the longest line and what take() adds
  if (text_.size() + kRoom > limit_bytes_) {
    ++left_out_;
    return false;
  }
  if (!head_written_) write_head();
  return true;
}

void MetricsWriter::write_head() {
  head_written_ = true;
  text_ += "# HELP ";
  text_ += metric_.name;
  text_ += ' ';
  text_ += metric_.help;
  text_ += "\n# TYPE ";
  text_ += metric_.name;
  text_ += ' ';
  text_ += to_string(metric_.type);
  text_ += '\n';
}

void MetricsWriter::line(std::string_view suffix, std::string_view labels, std::string_view more) {
  text_ += metric_.name;
  text_ += suffix;
  if (!labels.empty() || !more.empty()) {
    text_ += '{';
    text_ += labels;
    if (!labels.empty() && !more.empty()) text_ += ',';
    text_ += more;
    text_ += '}';
  }
  text_ += ' ';
}

void MetricsWriter::series(std::string_view labels, double value) {
  if (!head()) return;
  line("", labels, "");
  add_value(text_, value);
  text_ += '\n';
}

void MetricsWriter::series(std::string_view labels, std::uint64_t value) {
  if (!head()) return;
  line("", labels, "");
  add_value(text_, value);
  text_ += '\n';
}

void MetricsWriter::histogram(std::string_view labels, const HistogramValues& values) {
  if (!head()) return;
  for (std::size_t i = 0; i < values.bounds.size(); ++i) {
    line("_bucket", labels, fmt::format("le=\"{}\"", values.bounds[i]));
    add_value(text_, values.buckets[i]);
    text_ += '\n';
  }
  line("_bucket", labels, "le=\"+Inf\"");
  add_value(text_, values.count);
  text_ += '\n';
  line("_sum", labels, "");
  add_value(text_, values.sum);
  text_ += '\n';
  line("_count", labels, "");
  add_value(text_, values.count);
  text_ += '\n';
}

std::string MetricsWriter::take() {
  left_out_ = 0;
  return std::exchange(text_, {});
}

std::string MetricsWriter::take(const MetricInfo& left_out) {
  begin(left_out);
  if (left_out_ != 0) text_ += '\n';
  write_head();  // head() keeps room for it
  line("", "", "");
  add_value(text_, left_out_);
  text_ += '\n';
  return take();
}

}  // namespace gantry::prometheus
