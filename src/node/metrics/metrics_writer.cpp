// SPDX-License-Identifier: Apache-2.0
#include "base/core/text.hpp"
#include "node/metrics/metrics_writer_internal.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace gantry::metrics {
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

}  // namespace

void add_label(std::string& labels, std::string_view name, std::string_view value) {
  if (!labels.empty()) labels += ',';
  labels += name;
  labels += "=\"";
  const bool readable = is_utf8(value);
  for (const char c : value) {
    switch (c) {
      case '\\': labels += "\\\\"; break;
      case '"': labels += "\\\""; break;
      case '\n': labels += "\\n"; break;
      default: labels += readable || static_cast<unsigned char>(c) < 0x80 ? c : '?';
    }
  }
  labels += '"';
}

void Histogram::add(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return;
  for (std::size_t i = 0; i < kBounds.size(); ++i) {
    if (seconds <= kBounds[i]) ++buckets_[i];
  }
  ++count_;
  sum_ += seconds;
}

void MetricsWriter::begin(const MetricInfo& metric) {
  metric_ = metric;
  written_ = false;
}

bool MetricsWriter::head() {
  constexpr std::size_t kRoom = 8192;  // for the longest line and what take() adds
  if (text_.size() + kRoom > kPageLimit) {
    ++left_out_;
    return false;
  }
  if (written_) return true;
  written_ = true;
  text_ += "# HELP ";
  text_ += metric_.name;
  text_ += ' ';
  text_ += metric_.help;
  text_ += "\n# TYPE ";
  text_ += metric_.name;
  text_ += ' ';
  text_ += to_string(metric_.type);
  text_ += '\n';
  return true;
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
  const fmt::format_int number(value);
  text_.append(number.data(), number.size());
  text_ += '\n';
}

void MetricsWriter::histogram(std::string_view labels, const Histogram& histogram) {
  if (!head()) return;
  for (std::size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    line("_bucket", labels, fmt::format("le=\"{}\"", Histogram::kBounds[i]));
    text_ += fmt::format_int(histogram.buckets()[i]).str() + '\n';
  }
  line("_bucket", labels, "le=\"+Inf\"");
  text_ += fmt::format_int(histogram.count()).str() + '\n';
  line("_sum", labels, "");
  add_value(text_, histogram.sum());
  text_ += '\n';
  line("_count", labels, "");
  text_ += fmt::format_int(histogram.count()).str() + '\n';
}

std::string MetricsWriter::take(const MetricInfo& left_out) {
  const auto count = left_out_;
  text_.reserve(text_.size() + 512);
  begin(left_out);
  left_out_ = 0;
  if (count != 0) text_ += '\n';
  head();
  if (!written_) {  // the page is full; there is always room for this
    written_ = true;
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", left_out.name, left_out.help);
  }
  text_ += fmt::format("{} {}\n", left_out.name, count);
  return std::move(text_);
}

}  // namespace gantry::metrics
