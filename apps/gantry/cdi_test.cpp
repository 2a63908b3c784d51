// SPDX-License-Identifier: Apache-2.0
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

namespace gantry::cli {
namespace {

using test::run_cli;
using testing::HasSubstr;

constexpr const char* kGood =
    "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n"
    "- name: \"0\"\n  containerEdits:\n    deviceNodes:\n    - path: /root/dev/nvidia0\n"
    "- name: all\n  containerEdits:\n    deviceNodes:\n    - path: /root/dev/nvidia0\n";

TEST(CdiList, PrintsQualifiedNames) {
  test::Tree tree;
  tree.file("etc/cdi/nvidia.yaml", kGood);
  const auto run = run_cli({"gantry", "cdi", "list", "--root", tree.root()});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "nvidia.com/gpu=0\nnvidia.com/gpu=all\n");
}

TEST(CdiList, NamesTheFilesThatCancelEachOther) {
  test::Tree tree;
  tree.file("etc/cdi/a.yaml", kGood).file("etc/cdi/b.yaml", kGood);
  const auto run = run_cli({"gantry", "cdi", "list", "--root", tree.root()});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err,
              HasSubstr("nvidia.com/gpu=0 is defined by /etc/cdi/a.yaml and /etc/cdi/b.yaml"));
}

TEST(CdiList, SaysItInJson) {
  test::Tree tree;
  tree.file("etc/cdi/nvidia.yaml", kGood).file("etc/cdi/bad.json", "{");
  const auto run = run_cli({"gantry", "cdi", "list", "--json", "--root", tree.root()});
  EXPECT_THAT(run.out,
              HasSubstr(R"({"name": "nvidia.com/gpu=0", "file": "/etc/cdi/nvidia.yaml"})"));
  EXPECT_THAT(run.out, HasSubstr(R"("file": "/etc/cdi/bad.json")"));
}

TEST(CdiList, AsNvidiaCtkTroublesAreNoFailure) {
  test::Tree tree;
  tree.file("a/nvidia.yaml", kGood).file("a/bad.yaml", "x: [");
  const auto run = run_cli({"nvidia-ctk", "cdi", "list", "--spec-dir=" + tree.path("a")});
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(run.out, "nvidia.com/gpu=0\nnvidia.com/gpu=all\n");
  EXPECT_THAT(run.err, HasSubstr("Found 2 CDI devices"));
  EXPECT_THAT(run.err, HasSubstr("bad.yaml"));
  EXPECT_EQ(run_cli({"nvidia-ctk", "--quiet", "cdi", "list", "--spec-dir=" + tree.path("a")}).err,
            "");
}

TEST(CdiValidate, SaysEveryProblem) {
  test::Tree tree;
  tree.file("good.yaml", kGood)
      .file("bad.yaml", "cdiVersion: 0.9.0\nkind: gpu\ndevices: []\n")
      .file("typo.yaml", "cdiVersion: 0.5.0\nkinds: nvidia.com/gpu\n");
  const auto good = run_cli({"gantry", "cdi", "validate", tree.path("good.yaml")});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("good.yaml: valid; nvidia.com/gpu, CDI 0.5.0, 2 devices"));
  const auto bad =
      run_cli({"gantry", "cdi", "validate", tree.path("bad.yaml"), tree.path("typo.yaml")});
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.err, HasSubstr("not a version of CDI"));
  EXPECT_THAT(bad.err, HasSubstr("VENDOR/CLASS"));
  EXPECT_THAT(bad.err, HasSubstr("there is no device"));
  EXPECT_THAT(bad.err, HasSubstr("typo.yaml:2: a specification has no key \"kinds\""));
}

TEST(CdiTransform, RootIsTheSameUnderBothNames) {
  test::Tree tree;
  tree.file("in.yaml", kGood);
  for (const char* name : {"gantry", "nvidia-ctk"}) {
    const auto run = run_cli({name, "cdi", "transform", "root", "--from=/root", "--to=/",
                              "--input=" + tree.path("in.yaml")});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("hostPath: /dev/nvidia0\n"));
  }
}

TEST(CdiTransform, RootWritesAFileInItsFormat) {
  test::Tree tree;
  tree.file("in.yaml", kGood);
  const auto run = run_cli({"gantry", "cdi", "transform", "root", "--from", "/root", "--to", "/r",
                            "--relative-to", "container", "--input", tree.path("in.yaml"),
                            "--output", tree.path("out.json")});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(*tree.host().read("/out.json"), HasSubstr("\"path\": \"/r/dev/nvidia0\""));
}

TEST(CdiTransform, AWrongSideIsAnsweredWithThoseThereAre) {
  const auto run = run_cli({"gantry", "cdi", "transform", "root", "--from", "/a", "--to", "/b",
                            "--relative-to", "engine", "--input", "/no/such/file.yaml"});
  EXPECT_NE(run.status, 0);
  EXPECT_THAT(run.err, HasSubstr("--relative-to engine: use host or container"));
}

TEST(CdiTransform, VersionSaysWhatItChanged) {
  test::Tree tree;
  tree.file("in.yaml", kGood);
  const auto run = run_cli({"gantry", "cdi", "transform", "version", "--target-version", "0.3",
                            "--input", tree.path("in.yaml")});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("cdiVersion: 0.3.0"));
  EXPECT_THAT(run.out, HasSubstr("name: gpu0"));
  EXPECT_THAT(run.err, HasSubstr("0 is gpu0"));
}

TEST(CdiTransform, AMissingFileIsNamed) {
  const auto run = run_cli({"gantry", "cdi", "transform", "root", "--from", "/a", "--to", "/b",
                            "--input", "/no/such/file.yaml"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("/no/such/file.yaml"));
}

}  // namespace
}  // namespace gantry::cli
