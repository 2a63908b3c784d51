// SPDX-License-Identifier: Apache-2.0
#include "container/config/config_text.hpp"

#include "support/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::config {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DefaultText, MeansTheDefaults) {
  const test::Tree tree;
  const auto text = default_text(tree.host());
  const auto loaded = parse(text);
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  EXPECT_EQ(loaded->settings, Settings{});
  EXPECT_THAT(text, HasSubstr("#swarm-resource = \"DOCKER_RESOURCE_GPU\"\n"));
  EXPECT_THAT(text, HasSubstr("\n[nvidia-container-cli]\n#debug = "));
  EXPECT_THAT(text, HasSubstr("\n#user = \"root:video\"\n"));
  EXPECT_THAT(text, HasSubstr("\nruntimes = [\"runc\", \"crun\"]\n"));
  EXPECT_THAT(text, HasSubstr("[gantry]\n#cdi-kinds = []\n#environment = \"any\"\n"));
  EXPECT_THAT(text, Not(HasSubstr("[features]")));
}

TEST(DefaultText, FollowsTheDistribution) {
  test::Tree tree;
  tree.file("sbin/ldconfig.real").file("etc/os-release", "ID=\"sles\"\nID_LIKE=\"suse\"\n");
  const auto text = default_text(tree.host());
  EXPECT_THAT(text, HasSubstr("ldconfig = \"@/sbin/ldconfig.real\"\n"));
  EXPECT_THAT(text, HasSubstr("\nuser = \"root:video\"\n"));
}

struct SetCase {
  const char* assignment;
  const char* before;
  const char* after;  // nullptr: refused
};

class SetInText : public testing::TestWithParam<SetCase> {};

TEST_P(SetInText, ChangesOneKey) {
  const auto& c = GetParam();
  const auto text = set_in_text(c.before, c.assignment);
  if (c.after == nullptr) {
    EXPECT_FALSE(text.ok()) << *text;
    return;
  }
  ASSERT_TRUE(text.ok()) << text.error().text();
  EXPECT_EQ(*text, c.after);
}

INSTANTIATE_TEST_SUITE_P(
    Settings, SetInText,
    testing::Values(
        SetCase{"nvidia-container-cli.no-cgroups", "",
                "[nvidia-container-cli]\nno-cgroups = true\n"},
        SetCase{"nvidia-container-cli.no-cgroups=false",
                "[nvidia-container-cli] # c\nno-cgroups = true # d\n",
                "[nvidia-container-cli] # c\nno-cgroups = false # d\n"},
        SetCase{"nvidia-container-cli.user=root:video",
                "[nvidia-container-cli]\n#user = \"x\"\npath = \"p\"\n",
                "[nvidia-container-cli]\n#user = \"x\"\npath = \"p\"\nuser = \"root:video\"\n"},
        SetCase{"nvidia-container-runtime.runtimes=crun:runc", "",
                "[nvidia-container-runtime]\nruntimes = [\"crun\", \"runc\"]\n"},
        SetCase{"nvidia-container-runtime.modes.cdi.spec-dirs=/etc/cdi,/run/cdi", "",
                "[nvidia-container-runtime.modes.cdi]\nspec-dirs = [\"/etc/cdi\", \"/run/cdi\"]\n"},
        SetCase{"nvidia-container-cli.debug=nil",
                "[nvidia-container-cli]\ndebug = \"/x\"\nroot = \"/\"\n",
                "[nvidia-container-cli]\nroot = \"/\"\n"},
        SetCase{"nvidia-container-runtime.mode=fast", "", nullptr},
        SetCase{"nvidia-container-runtime.mode", "", nullptr},
        SetCase{"gantry.refresh-deadline=soon", "", nullptr},
        SetCase{"no.such.key=1", "", nullptr}));

TEST(EffectiveValue, SaysWhereEachValueComesFrom) {
  const auto loaded =
      *parse("[nvidia-container-cli]\nroot = \"/r\"\n[gantry]\nflavour = \"no-hooks\"\n");
  const auto all = effective_values(loaded, [](std::string_view name) {
    return name == "GANTRY_FLAVOUR" ? std::optional<std::string>("one-hook") : std::nullopt;
  });
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), keys().size());
  for (const auto& value : *all) {
    if (value.key->name == "nvidia-container-cli.root") {
      EXPECT_EQ(value.value, "\"/r\"");
      EXPECT_EQ(value.origin, Origin::File);
    } else if (value.key->name == "gantry.flavour") {
      EXPECT_EQ(value.value, "\"one-hook\"");
      EXPECT_EQ(value.origin, Origin::Environment);
    } else {
      EXPECT_EQ(value.origin, Origin::Default) << value.key->name;
    }
  }
}

}  // namespace
}  // namespace gantry::config
