// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

#include <filesystem>

namespace gantry::cli {
namespace {

using test::run_cli;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kFile = "etc/nvidia-container-runtime/config.toml";

TEST(ConfigShow, ShowsWhatIsSetAndWhatCounts) {
  test::Tree tree;
  tree.file(kFile, "[nvidia-container-cli]\nuser = \"root:video\"\nfuture = 1\n");
  const auto set = run_cli({"gantry", "config", "show", "--root", tree.root()});
  ASSERT_EQ(set.status, 0) << set.err;
  EXPECT_THAT(set.out, HasSubstr("nvidia-container-cli.user"));
  EXPECT_THAT(set.out, HasSubstr("file"));
  EXPECT_THAT(set.out, Not(HasSubstr("ldconfig")));
  EXPECT_THAT(set.err, HasSubstr("line 3: nvidia-container-cli.future is unknown"));
  const auto all =
      run_cli({"gantry", "config", "show", "--effective", "--json", "--root", tree.root()});
  EXPECT_THAT(all.out,
              HasSubstr(R"("key": "gantry.flavour", "value": "\"shim\"", "origin": "default"})"));
}

TEST(ConfigCheck, NamesTheLineOfWhatIsWrong) {
  test::Tree tree;
  tree.file(kFile, "[gantry]\nflavor = \"shim\"\n");
  const auto wrong = run_cli({"gantry", "config", "check", "--root", tree.root()});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("line 2: there is no key gantry.flavor"));
  tree.file(kFile, "[gantry]\nflavour = \"shim\"\n");
  const auto good = run_cli({"gantry", "config", "check", "--root", tree.root()});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("is valid"));
}

TEST(ConfigCheck, RefusesTheModeThatIsNotThere) {
  test::Tree tree;
  tree.file(kFile, "[nvidia-container-runtime]\nmode = \"csv\"\n");
  const auto wrong = run_cli({"gantry", "config", "check", "--root", tree.root()});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("Tegra"));
}

TEST(ConfigCheck, NamesWhatIsSetInVain) {
  test::Tree tree;
  tree.file(kFile, "[features]\nallow-ldconfig-from-container = true\n");
  const auto good = run_cli({"gantry", "config", "check", "--root", tree.root()});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_THAT(good.err, HasSubstr("features.allow-ldconfig-from-container has no effect"));
}

TEST(ConfigCheck, JsonIsJsonAlsoForAWrongFile) {
  test::Tree tree;
  tree.file(kFile, "[gantry]\nflavor = \"shim\"\n");
  const auto wrong = run_cli({"gantry", "config", "check", "--json", "--root", tree.root()});
  EXPECT_EQ(wrong.status, 1);
  const auto said = json::Document::parse(wrong.out);
  ASSERT_TRUE(said.ok()) << wrong.out;
  EXPECT_EQ((*said)["valid"].boolean(), false);
  EXPECT_THAT((*said)["error"].string().value_or(""), HasSubstr("line 2"));
  tree.file(kFile, "[nvidia-container-cli]\nfuture = 1\n");
  const auto good = run_cli({"gantry", "config", "check", "--json", "--root", tree.root()});
  EXPECT_EQ(good.status, 0);
  EXPECT_THAT(good.out, HasSubstr("nvidia-container-cli.future is unknown"));
  EXPECT_TRUE(json::Document::parse(good.out).ok()) << good.out;
}

TEST(ConfigCheck, AFileThatWasNamedMustExist) {
  test::Tree tree;
  for (const auto* command : {"check", "show"}) {
    const auto missing = run_cli({"gantry", "config", command, "-c", tree.path("missing.toml")});
    EXPECT_EQ(missing.status, 1) << command;
    EXPECT_THAT(missing.err, HasSubstr("missing.toml")) << command;
  }
}

// GANTRY_ROOT and --root name a machine; the file may be the caller's own.
TEST(ConfigCheck, FindsTheCallersFileWithARoot) {
  test::Tree machine;
  test::Tree mine;
  mine.file("c.toml", "[gantry]\nflavour = \"shim\"\n");
  const auto run =
      run_cli({"gantry", "config", "check", "-c", mine.path("c.toml"), "--root", machine.root()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, mine.path("c.toml") + ": is valid\n");
  machine.file("etc/c.toml", "[gantry]\nflavor = 1\n");
  const auto inside =
      run_cli({"gantry", "config", "check", "-c", "/etc/c.toml", "--root", machine.root()});
  EXPECT_EQ(inside.status, 1) << "the machine's own file";
}

TEST(ConfigSet, ChangesTheFileAndKeepsTheRest) {
  test::Tree tree;
  tree.file(kFile, "# mine\n[nvidia-container-cli]\nno-cgroups = true\n");
  const auto run = run_cli(
      {"gantry", "config", "set", "--root", tree.root(), "nvidia-container-cli.no-cgroups=false"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(*tree.host().read(std::string("/") + kFile),
            "# mine\n[nvidia-container-cli]\nno-cgroups = false\n");
}

TEST(ConfigDefault, IsPrintedAndGood) {
  test::Tree tree;
  const auto run = run_cli({"gantry", "config", "default", "--root", tree.root()});
  EXPECT_EQ(run.status, 0) << run.err;
  tree.file(kFile, run.out);
  EXPECT_EQ(run_cli({"gantry", "config", "check", "--root", tree.root()}).status, 0);
}

TEST(NvidiaCtkConfig, SetsInPlaceAndKeepsTheRest) {
  test::Tree tree;
  tree.file("c.toml", "# mine\n[nvidia-container-cli]\nno-cgroups = false\n");
  const auto run = run_cli({"nvidia-ctk", "config", "--config-file", tree.path("/c.toml"),
                            "--in-place", "--set", "nvidia-container-cli.no-cgroups", "--set",
                            "nvidia-container-runtime.runtimes=crun"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(*tree.host().read("/c.toml"),
            "# mine\n[nvidia-container-cli]\nno-cgroups = true\n\n[nvidia-container-runtime]\n"
            "runtimes = [\"crun\"]\n");
  const auto wrong = run_cli({"nvidia-ctk", "config", "--config-file", tree.path("/c.toml"),
                              "--set", "nvidia-container-cli.colour=red"});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err, HasSubstr("there is no key `nvidia-container-cli.colour`"));
}

TEST(NvidiaCtkConfig, ARelativeFileIsBesideTheCaller) {
  test::Tree tree;
  tree.file("c.toml", "# mine\n[nvidia-container-cli]\nno-cgroups = false\n");
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path(tree.root());
  const auto run = run_cli({"nvidia-ctk", "config", "-c", "./c.toml", "--in-place", "--set",
                            "nvidia-container-cli.no-cgroups"});
  std::filesystem::current_path(here);
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(*tree.host().read("/c.toml"), "# mine\n[nvidia-container-cli]\nno-cgroups = true\n");
}

TEST(NvidiaCtkConfig, PrintsTheDefaultUnderItsThreeNames) {
  for (const auto* name : {"default", "create-default", "generate-default"}) {
    const auto run = run_cli({"nvidia-ctk", "config", name});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("supported-driver-capabilities = \"compat32,"));
  }
}

}  // namespace
}  // namespace gantry::cli
