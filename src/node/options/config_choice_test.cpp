// SPDX-License-Identifier: Apache-2.0
#include "node/options/config_choice.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>

#include <map>

namespace gantry::options {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> known_names{"default", "shared", "whole"};

Result<std::optional<ConfigManagerSettings>> from(
    std::map<std::string, std::string, std::less<>> values) {
  return read_settings([&](std::string_view name) -> std::optional<std::string> {
    const auto found = values.find(name);
    if (found == values.end()) return std::nullopt;
    return found->second;
  });
}

TEST(ConfigChoice, WithoutARequestThereIsNoSetting) {
  EXPECT_FALSE(from({{"DEFAULT_CONFIG", "x"}})->has_value());
}

TEST(ConfigChoice, TheEnvironmentIsConfigManagers) {
  const auto setting = from({{"CONFIG_FILE_SRCDIR", "/available-configs"},
                             {"NODE_NAME", "a"},
                             {"DEFAULT_CONFIG", "x"},
                             {"FALLBACK_STRATEGIES", "named,single"}});
  ASSERT_TRUE(setting.ok());
  EXPECT_EQ((*setting)->label, "nvidia.com/device-plugin.config");
  EXPECT_EQ((*setting)->node, "a");
  EXPECT_THAT((*setting)->fallbacks, ElementsAre("named", "single"));
  const auto wrong = from({{"CONFIG_FILE_SRCDIR", "/c"}, {"FALLBACK_STRATEGIES", "any"}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().text(), HasSubstr("`any` is not named, single or empty"));
}

TEST(ConfigChoice, LabelThenDefaultThenFallbacks) {
  const ConfigManagerSettings with_default{.default_name = "whole", .fallbacks = {"named"}};
  EXPECT_EQ(*choose_config(with_default, "shared", known_names), "shared");
  EXPECT_EQ(*choose_config(with_default, std::nullopt, known_names), "whole");
  EXPECT_EQ(*choose_config(with_default, "", known_names), "whole");
  EXPECT_EQ(*choose_config({.fallbacks = {"named", "single"}}, std::nullopt, known_names),
            "default");
  EXPECT_EQ(*choose_config({.fallbacks = {"named", "single"}}, std::nullopt, {"only"}), "only");
  EXPECT_EQ(*choose_config({.fallbacks = {"single", "empty"}}, std::nullopt, known_names), "");
}

TEST(ConfigChoice, ANameThatIsNoneIsAnErrorNotAnother) {
  const auto label = choose_config({.default_name = "whole"}, "typo", known_names);
  ASSERT_FALSE(label.ok());
  EXPECT_THAT(label.error().text(), HasSubstr("nvidia.com/device-plugin.config is `typo`"));
  EXPECT_THAT(label.error().text(), HasSubstr("default, shared, whole"));
  EXPECT_FALSE(
      choose_config({.default_name = "typo", .fallbacks = {"named"}}, std::nullopt, known_names)
          .ok());
  EXPECT_FALSE(choose_config({}, std::nullopt, known_names).ok());
  EXPECT_FALSE(choose_config({.fallbacks = {"single"}}, std::nullopt, known_names).ok());
}

// As the kubelet mounts a ConfigMap.
TEST(ConfigChoice, NamesAreThoseOfTheConfigMap) {
  test::Tree tree;
  tree.file("..2026_11_15/whole").link("..data", "..2026_11_15").link("whole", "..data/whole");
  EXPECT_THAT(*list_configs(tree.root()), ElementsAre("whole"));
}

}  // namespace
}  // namespace gantry::options
