// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/live_effects.hpp"

#include "base/sys/child.hpp"
#include "support/tree.hpp"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::driver_setup {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A pod with its own gcc: the node is below /host, and its headers say /usr/src.
TEST(ShownPaths, AreThoseOfTheMachineThatOurImageDoesNotHave) {
  test::Tree machine;
  machine.directory("usr/src/linux-headers-6.1").directory("usr/lib/linux-kbuild-6.1");
  const auto host = machine.host();
  const ProgramCall call{.words = {{.text = "make"}},
                         .place = ProgramPlace::Tools,
                         .shows = {"/usr/src", "/usr/lib/linux-kbuild-6.1", "/usr/missing"}};
  EXPECT_THAT(paths_to_show(host, call),
              ElementsAre(ShownPath{.from = host.outside("/usr/src"), .path = "/usr/src"},
                          ShownPath{.from = host.outside("/usr/lib/linux-kbuild-6.1"),
                                    .path = "/usr/lib/linux-kbuild-6.1"}));
  EXPECT_TRUE(paths_to_show(*sys::Host::at("/"), call).empty());
}

TEST(ShownPaths, AreThereForTheProgramAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may mount";
  test::Tree tree;
  tree.file("machine/usr/src/Makefile", "of the machine\n");
  const auto path = tree.path("image/usr/src");
  const auto before = show_paths({{.from = tree.path("machine/usr/src"), .path = path}});
  ASSERT_TRUE(before.ok()) << before.error().text();
  const auto shown = sys::run_command({"cat", path + "/Makefile"}, {.before = *before});
  ASSERT_TRUE(shown.ok());
  if (shown->output.ends_with("Operation not permitted\n")) GTEST_SKIP() << "mounting needs root";
  EXPECT_EQ(shown->output, "of the machine\n");
  EXPECT_FALSE(tree.host().exists("/image/usr/src/Makefile"));
}

TEST(ShownPaths, SayWhatToDoIfTheImageCannotHaveThem) {
  test::Tree tree;
  tree.file("image");
  const auto before = show_paths({{.from = "/usr/src", .path = tree.path("image/usr/src")}});
  ASSERT_FALSE(before.ok());
  EXPECT_THAT(before.error().text(), HasSubstr("in the installer's image"));
}

}  // namespace
}  // namespace gantry::driver_setup
