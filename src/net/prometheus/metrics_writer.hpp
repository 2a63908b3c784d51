// SPDX-License-Identifier: Apache-2.0
// Writes a page of metrics in the Prometheus text format. # HELP and # TYPE stand once before the
// series of a metric. A page never grows beyond its limit: further series are left out and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gantry::prometheus {

inline constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

enum class MetricType : std::uint8_t { Gauge, Counter, Histogram };

struct MetricInfo {
  std::string_view name;
  MetricType type = MetricType::Gauge;
  std::string_view help;
};

// On the pages of several programs: Prometheus expects one help text for a name.
inline constexpr MetricInfo kBuildInfo{"gantry_build_info", MetricType::Gauge,
                                       "Always 1; the version is a label."};
inline constexpr MetricInfo kSeriesLeftOut{"gantry_series_left_out", MetricType::Gauge,
                                           "Series left out because the page is full."};

// The state of a histogram. A bucket counts the values up to its bound, so it includes the buckets
// before it.
struct HistogramValues {
  std::span<const double> bounds;
  std::span<const std::uint64_t> buckets;  // one for each bound
  std::uint64_t count = 0;
  double sum = 0;
};

// Appends name="value", escaped. Control characters other than a newline, and the bytes of a value
// that is not UTF-8, become question marks. Several calls make a list.
void add_label(std::string& labels, std::string_view name, std::string_view value);
std::string label(std::string_view name, std::string_view value);

class MetricsWriter {
 public:
  explicit MetricsWriter(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // Starts a metric; its head is written with its first series.
  void begin(const MetricInfo& metric);
  void series(std::string_view labels, double value);
  void series(std::string_view labels, std::uint64_t value);
  void histogram(std::string_view labels, const HistogramValues& values);
  // A metric with one series and no labels.
  template <class Value>
  void single(const MetricInfo& metric, Value value) {
    begin(metric);
    series("", value);
  }

  std::uint64_t left_out() const { return left_out_; }
  std::string take();
  // The page, with a last metric that says how many series were left out.
  std::string take(const MetricInfo& left_out);

 private:
  bool head();
  void write_head();
  void line(std::string_view suffix, std::string_view labels, std::string_view more);

  std::size_t limit_bytes_;
  MetricInfo metric_;
  bool head_written_ = false;
  std::uint64_t left_out_ = 0;
  std::string text_;
};

}  // namespace gantry::prometheus
