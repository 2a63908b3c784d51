// SPDX-License-Identifier: Apache-2.0
#include "net/prometheus/metrics_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>

namespace gantry::prometheus {
namespace {

using ::testing::EndsWith;

constexpr std::size_t kMaxPageBytes = 1U << 20;
constexpr MetricInfo kMemory{"memory_bytes", MetricType::Gauge, "Memory."};
constexpr MetricInfo kTime{"time_seconds", MetricType::Histogram, "Time."};
constexpr MetricInfo kLeftOut{"left_out", MetricType::Gauge, "Series left out."};

TEST(MetricsWriter, WritesTheHeadOnceBeforeTheFirstSeries) {
  MetricsWriter page(kMaxPageBytes);
  page.begin(kTime);  // has no series
  page.begin(kMemory);
  page.series(label("gpu", "0"), std::uint64_t{1} << 40U);
  page.series(label("gpu", "1"), 0.25);
  EXPECT_EQ(page.take(),
            "# HELP memory_bytes Memory.\n# TYPE memory_bytes gauge\n"
            "memory_bytes{gpu=\"0\"} 1099511627776\nmemory_bytes{gpu=\"1\"} 0.25\n");
}

TEST(MetricsWriter, WritesAHistogramWithItsBuckets) {
  constexpr std::array kBounds{0.001, 10.0};
  constexpr std::array<std::uint64_t, 2> kBuckets{1, 2};
  MetricsWriter page(kMaxPageBytes);
  page.begin(kTime);
  page.histogram(label("verb", "bind"), {kBounds, kBuckets, 3, 60.5});
  EXPECT_THAT(page.take(), EndsWith("time_seconds_bucket{verb=\"bind\",le=\"0.001\"} 1\n"
                                    "time_seconds_bucket{verb=\"bind\",le=\"10\"} 2\n"
                                    "time_seconds_bucket{verb=\"bind\",le=\"+Inf\"} 3\n"
                                    "time_seconds_sum{verb=\"bind\"} 60.5\n"
                                    "time_seconds_count{verb=\"bind\"} 3\n"));
}

TEST(MetricsWriter, WritesNumbersThatAreNotFinite) {
  MetricsWriter page(kMaxPageBytes);
  page.single(kMemory, -std::numeric_limits<double>::infinity());
  EXPECT_THAT(page.take(), EndsWith("memory_bytes -Inf\n"));
  page.single(kMemory, std::numeric_limits<double>::quiet_NaN());
  EXPECT_THAT(page.take(), EndsWith("memory_bytes NaN\n"));
}

TEST(MetricsWriter, NeverGrowsBeyondItsLimit) {
  constexpr std::size_t kSmall = 10'000;
  MetricsWriter page(kSmall);
  page.begin(kMemory);
  for (int i = 0; i < 1000; ++i) page.series(label("gpu", std::string(100, 'g')), 1.0);
  const auto left_out = page.left_out();
  EXPECT_GT(left_out, 900U);
  const auto text = page.take(kLeftOut);
  EXPECT_LE(text.size(), kSmall);
  EXPECT_THAT(text, EndsWith("# TYPE left_out gauge\nleft_out " + std::to_string(left_out) + "\n"));
}

TEST(AddLabel, AValueCannotBreakOutOfItsLabel) {
  auto labels = label("a", "x\"y\\z\nw");
  add_label(labels, "b", "\x1b[2J\r\x7f");
  add_label(labels, "c", "a\xff");
  add_label(labels, "d", "\xc3\xa4");
  add_label(labels, "e", "\xc2\x9b[2J");  // U+009B is ESC and [ for some terminals
  EXPECT_EQ(labels, "a=\"x\\\"y\\\\z\\nw\",b=\"?[2J??\",c=\"a?\",d=\"\xc3\xa4\",e=\"?[2J\"");
}

}  // namespace
}  // namespace gantry::prometheus
