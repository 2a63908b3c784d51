// SPDX-License-Identifier: Apache-2.0
#include "container/config/settings.hpp"

#include "container/config/keys.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace gantry::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Settings, AMissingFileGivesTheDefaults) {
  const test::Tree tree;
  const auto loaded = load_with_warnings(tree.host(), kConfigPath);
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->settings, Settings{});
  EXPECT_THAT(loaded->warnings, IsEmpty());
}

TEST(Settings, EveryKeyIsReadBackFromWhatItPrints) {
  for (const auto& key : keys()) {
    Settings changed;
    const bool word = !key.words.empty();
    const auto* const plain = key.name == "gantry.cdi-kinds" ? "acme.org/nic" : "7";
    const auto other = word ? std::string(key.words.substr(key.words.rfind('|') + 1)) : plain;
    if (std::holds_alternative<Field<bool>>(key.field)) {
      auto& flag = std::get<Field<bool>>(key.field)(changed);
      flag = !flag;
    } else {
      ASSERT_TRUE(set_value(key, other, changed).ok()) << key.name;
    }
    EXPECT_NE(changed, Settings{}) << key.name;
    std::string text(table_of(key.name).empty() ? ""
                                                : "[" + std::string(table_of(key.name)) + "]\n");
    text += std::string(leaf_name(key.name)) + " = " + to_toml(key, changed) + "\n";
    const auto loaded = parse(text);
    ASSERT_TRUE(loaded.ok()) << text << loaded.error().text();
    EXPECT_EQ(loaded->settings, changed) << text;
    EXPECT_THAT(loaded->named, ElementsAre(std::string(key.name)));
  }
}

TEST(Settings, TheFileOfTheSuseWalkthroughIsUnderstood) {
  const auto loaded = parse(R"(disable-require = false
[nvidia-container-cli]
environment = []
load-kmods = true
user = "root:video"
ldconfig = "@/sbin/ldconfig"
[nvidia-container-runtime.modes.cdi]
spec-dirs = ["/etc/cdi", "/run/cdi"]
)");
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  EXPECT_EQ(loaded->settings.cli.user, "root:video");
  EXPECT_THAT(loaded->settings.runtime.cdi_spec_dirs, ElementsAre("/etc/cdi", "/run/cdi"));
}

TEST(Settings, UnknownKeysOfOthersAreWarnedAboutWithTheirLine) {
  const auto loaded =
      parse("a = 1\n[nvidia-container-cli]\nroot = \"/r\"\nfuture = true\n[x.y]\nz = 1\n");
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded->settings.cli.root, "/r");
  EXPECT_THAT(loaded->warnings,
              ElementsAre("line 1: a is unknown and has no effect",
                          "line 4: nvidia-container-cli.future is unknown and has no effect",
                          HasSubstr("x is unknown")));
}

TEST(Settings, AnUnknownKeyOfOursIsAnErrorWithItsLine) {
  for (const auto* text : {"\n[gantry]\nflavor = \"shim\"\n", "\n\ngantry = 3\n"}) {
    const auto loaded = parse(text);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.error().code(), Errc::Invalid);
    EXPECT_THAT(loaded.error().text(), HasSubstr("line 3: there is no key gantry"));
  }
}

TEST(Settings, AWrongKindOfValueIsAnErrorWithItsLine) {
  struct Case {
    const char* text;
    const char* says;
  };
  for (const auto& [text, says] : {
           Case{"disable-require = \"yes\"", "disable-require: line 1: must be true or false"},
           Case{"[nvidia-container-cli]\nroot = 3", "line 2: must be a string"},
           Case{"[nvidia-container-runtime]\nruntimes = \"runc\"", "line 2: must be a list"},
           Case{"[nvidia-container-runtime]\nruntimes = [\n\"runc\",\n3]",
                "line 4: must be a string"},
           Case{"[nvidia-container-runtime]\nmode = \"fast\"",
                "one of: auto legacy csv cdi jit-cdi"},
           Case{"[gantry]\nrefresh-deadline = \"1\"", "must be a whole number"},
           Case{"[gantry]\nrefresh-deadline = 0",
                "line 2: gantry.refresh-deadline must be 1 to 600"},
           Case{"nvidia-container-cli = 3\n", "nothing"},
       }) {
    const auto loaded = parse(text);
    if (std::string_view(says) == "nothing") {
      EXPECT_TRUE(loaded.ok()) << text;
      continue;
    }
    ASSERT_FALSE(loaded.ok()) << text;
    EXPECT_EQ(loaded.error().code(), Errc::Invalid);
    EXPECT_THAT(loaded.error().text(), HasSubstr(says));
  }
}

TEST(Settings, TextThatIsNoTomlIsCorrupt) {
  const auto broken = parse("[nvidia-container-cli\nroot = ");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code(), Errc::Corrupt);
  EXPECT_THAT(broken.error().text(), HasSubstr("line 1"));
}

TEST(Settings, HostileFilesAreRefusedNotFollowed) {
  std::string dots = "a";
  for (int i = 0; i < 30'000; ++i) dots += ".a";
  EXPECT_EQ(parse(dots + " = 1").error().code(), Errc::Corrupt);
  EXPECT_EQ(parse("a = " + std::string(10'000, '[')).error().code(), Errc::Corrupt);
  EXPECT_EQ(parse(std::string(kMaxConfigBytes + 1, ' ')).error().code(), Errc::Corrupt);
}

TEST(Settings, TheEnvironmentStandsOverTheFile) {
  auto settings = parse("[gantry]\nflavour = \"no-hooks\"\nroot = \"/a\"\n")->settings;
  const auto environment = [](std::string_view name) -> std::optional<std::string> {
    if (name == "GANTRY_FLAVOUR") return "one-hook";
    return std::nullopt;
  };
  ASSERT_TRUE(apply_environment(settings, environment).ok());
  EXPECT_EQ(settings.gantry.flavour, "one-hook");
  EXPECT_EQ(settings.gantry.root, "/a");
  const auto wrong =
      apply_environment(settings, [](auto) { return std::optional<std::string>("x"); });
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.error().text(), HasSubstr("GANTRY_FLAVOUR"));
}

TEST(Settings, TheFileIsWhereTheVariablesSay) {
  const auto with = [](std::string_view wanted, const std::string& value) {
    return config_path([&](std::string_view name) {
      return name == wanted ? std::optional(value) : std::nullopt;
    });
  };
  EXPECT_EQ(with("NVIDIA_CTK_CONFIG_FILE_PATH", "/a/b.toml"), "/a/b.toml");
  EXPECT_EQ(with("NVIDIA_CTK_CONFIG_FILE_PATH", "./b.toml"),
            (std::filesystem::current_path() / "b.toml").string());
  EXPECT_EQ(with("NVIDIA_CTK_CONFIG_FILE_PATH", ""), kConfigPath);
  EXPECT_EQ(with("XDG_CONFIG_HOME", "/home/u/.config"),
            "/home/u/.config/nvidia-container-runtime/config.toml");
  EXPECT_EQ(with("HOME", "/home/u"), kConfigPath);
}

TEST(Settings, CdiKindsAreKinds) {
  EXPECT_THAT(
      parse("[gantry]\ncdi-kinds = [\"acme.org/nic\", \"a/b\"]\n")->settings.gantry.cdi_kinds,
      ElementsAre("acme.org/nic", "a/b"));
  for (const auto* kind : {"acme.org", "/nic", "acme.org/", "acme.org/nic=a", "acme.org/*", ""}) {
    const auto loaded = parse(fmt::format("[gantry]\ncdi-kinds = [\"{}\"]\n", kind));
    ASSERT_FALSE(loaded.ok()) << kind;
    EXPECT_THAT(loaded.error().text(), HasSubstr("line 2"));
  }
}

TEST(Settings, TheRootIsOursThenTheirsThenTheMachine) {
  Settings settings;
  EXPECT_EQ(machine_root(settings), "/");
  settings.cli.root = "/run/nvidia/driver";
  EXPECT_EQ(machine_root(settings), "/run/nvidia/driver");
  settings.gantry.root = "/host";
  EXPECT_EQ(machine_root(settings), "/host");
}

TEST(Settings, TheirAcceptKeyMeansPrivilegedOnly) {
  Settings settings;
  EXPECT_EQ(environment_policy(settings), EnvironmentPolicy::Any);
  settings.accept_envvar_when_unprivileged = false;
  EXPECT_EQ(environment_policy(settings), EnvironmentPolicy::Privileged);
  settings.gantry.environment = "never";
  EXPECT_EQ(environment_policy(settings), EnvironmentPolicy::Never);
}

}  // namespace
}  // namespace gantry::config
