// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/registry.hpp"

#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::cdi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string spec(std::string_view kind, std::string_view device, std::string_view node) {
  return fmt::format(
      "cdiVersion: 0.5.0\nkind: {}\ndevices:\n- name: \"{}\"\n  containerEdits:\n    deviceNodes:\n"
      "    - path: {}\ncontainerEdits:\n  env: [KIND={}]\n",
      kind, device, node, kind);
}

std::vector<std::string> names(const Registry& registry) {
  std::vector<std::string> all;
  for (const auto& [name, place] : registry.devices()) all.push_back(name);
  return all;
}

TEST(Registry, FindsWhatBothDirectoriesHave) {
  test::Tree tree;
  tree.file("etc/cdi/a.yaml", spec("a.org/xx", "1", "/dev/a"))
      .file("run/cdi/b.json", R"({"cdiVersion": "0.3.0", "kind": "b.org/yy", "devices":
        [{"name": "z", "containerEdits": {"env": ["A=b"]}}]})")
      .file("run/cdi/c.yml", "not looked at")
      .link("var/run", "/run");
  const auto registry = Registry::load(tree.host());
  EXPECT_THAT(names(registry), ElementsAre("a.org/xx=1", "b.org/yy=z"));
  EXPECT_THAT(registry.rejected(), IsEmpty());
}

TEST(Registry, TheLaterDirectoryWins) {
  test::Tree tree;
  tree.file("etc/cdi/a.yaml", spec("a.org/xx", "1", "/dev/old"))
      .file("var/run/cdi/a.yaml", spec("a.org/xx", "1", "/dev/new"));
  const auto edits = Registry::load(tree.host()).edits_for(std::vector<std::string>{"a.org/xx=1"});
  ASSERT_TRUE(edits.ok());
  ASSERT_EQ(edits->nodes.size(), 1U);
  EXPECT_EQ(edits->nodes[0].path, "/dev/new");
}

TEST(Registry, TwoOfOneDirectoryCancelEachOther) {
  test::Tree tree;
  tree.file("etc/cdi/a.yaml", spec("a.org/xx", "1", "/dev/a"))
      .file("etc/cdi/b.yaml", spec("a.org/xx", "1", "/dev/b"));
  const auto registry = Registry::load(tree.host());
  EXPECT_THAT(names(registry), IsEmpty());
  EXPECT_THAT(registry.conflicts(),
              ElementsAre(Conflict{"a.org/xx=1", "/etc/cdi/a.yaml", "/etc/cdi/b.yaml"}));
  const auto edits = registry.edits_for(std::vector<std::string>{"a.org/xx=1"});
  ASSERT_FALSE(edits.ok());
  EXPECT_THAT(edits.error().text(), HasSubstr("both /etc/cdi/a.yaml and /etc/cdi/b.yaml"));
}

TEST(Registry, AWrongFileIsLeftOutAndNamed) {
  test::Tree tree;
  tree.file("etc/cdi/a.yaml", spec("a.org/xx", "1", "/dev/a")).file("etc/cdi/b.yaml", "kind: [\n");
  const auto registry = Registry::load(tree.host());
  EXPECT_THAT(names(registry), ElementsAre("a.org/xx=1"));
  ASSERT_EQ(registry.rejected().size(), 1U);
  EXPECT_EQ(registry.rejected()[0].path, "/etc/cdi/b.yaml");
}

TEST(Registry, GivesTheEditsOfASpecificationOnce) {
  test::Tree tree;
  tree.file(
      "etc/cdi/a.yaml",
      "cdiVersion: 0.5.0\nkind: a.org/xx\ndevices:\n- {name: a, containerEdits: {env: [A=1]}}\n"
      "- {name: b, containerEdits: {env: [B=1]}}\ncontainerEdits: {env: [ALL=1]}\n");
  const auto edits =
      Registry::load(tree.host())
          .edits_for(std::vector<std::string>{"a.org/xx=b", "a.org/xx=a", "a.org/xx=b"});
  ASSERT_TRUE(edits.ok());
  EXPECT_THAT(edits->env, ElementsAre("ALL=1", "B=1", "A=1"));
}

TEST(Registry, SaysWhatThereIsInstead) {
  test::Tree tree;
  tree.file("etc/cdi/a.yaml", spec("a.org/xx", "1", "/dev/a"));
  const auto registry = Registry::load(tree.host());
  EXPECT_THAT(registry.edits_for(std::vector<std::string>{"a.org/xx=2"}).error().text(),
              HasSubstr("there is no CDI device a.org/xx=2; devices of this kind are 1"));
  EXPECT_THAT(registry.edits_for(std::vector<std::string>{"nonsense"}).error().text(),
              HasSubstr("is not a CDI name"));
}

TEST(Registry, NothingThereIsNoError) {
  test::Tree tree;
  EXPECT_THAT(names(Registry::load(tree.host())), IsEmpty());
}

}  // namespace
}  // namespace gantry::cdi
