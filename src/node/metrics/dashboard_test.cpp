// SPDX-License-Identifier: Apache-2.0
// The dashboard asks only for what we export.
#include "base/json/document.hpp"
#include "node/metrics/pages.hpp"
#include "support/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <iterator>
#include <set>

namespace gantry::metrics {
namespace {

using ::testing::IsSupersetOf;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == ':';
}

// Words outside of quotes, braces and brackets are functions, keywords, or names of metrics.
std::set<std::string> names_in(std::string_view expression) {
  static const std::set<std::string> language{
      "sum",      "min",      "max",      "rate", "increase", "by", "histogram_quantile",
      "le",       "gpu",      "resource", "xid",  "outcome",  "e9", "label_values",
      "instance", "namespace"};
  std::set<std::string> names;
  std::string word;
  int depth = 0;
  for (const char c : std::string(expression) + " ") {
    if (c == '{' || c == '[') ++depth;
    if (depth == 0 && is_word(c)) {
      word += c;
      continue;
    }
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) == 0 &&
        !language.contains(word))
      names.insert(word);
    word.clear();
    if (c == '}' || c == ']') --depth;
  }
  return names;
}

void collect(json::Value value, std::vector<std::string>& expressions) {
  for (const auto item : value) {
    if (item.is(json::Kind::String) && (item.key() == "expr" || item.key() == "query"))
      expressions.push_back(*item.string());
    collect(item, expressions);
  }
}

class Dashboard : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ifstream file(test::source_dir() + "/deploy/grafana/gantry.json");
    auto document = json::Document::parse({std::istreambuf_iterator<char>(file), {}});
    ASSERT_TRUE(document.ok()) << document.error().text();
    std::vector<std::string> expressions;
    collect(document->root(), expressions);
    for (const auto& expression : expressions) {
      if (expression == "prometheus") continue;  // the kind of the data source
      const auto names = names_in(expression);
      EXPECT_FALSE(names.empty()) << expression;
      used_.insert(names.begin(), names.end());
    }
  }
  std::set<std::string> used_;
};

TEST_F(Dashboard, UsesOnlyMetricsThatWeExport) {
  const auto list = metric_names();
  const std::set<std::string_view> exported(list.begin(), list.end());
  for (std::string name : used_) {
    if (name.ends_with("_bucket")) name.resize(name.size() - 7);
    EXPECT_TRUE(exported.contains(name)) << name;
  }
}

TEST_F(Dashboard, HasTheSixOfDashboard12239) {
  EXPECT_THAT(used_, IsSupersetOf({"DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE",
                                   "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_GPU_UTIL",
                                   "DCGM_FI_DEV_FB_USED", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"}));
}

}  // namespace
}  // namespace gantry::metrics
