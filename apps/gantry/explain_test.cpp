// SPDX-License-Identifier: Apache-2.0
#include "base/json/document.hpp"
#include "container/runtime/injection/ready_machine_for_test.hpp"
#include "container/runtime/shim/shim_create.hpp"
#include "gantry/explain_text.hpp"
#include "support/run_cli.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::cli {
namespace {

using test::run_cli;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class Explain : public ::testing::Test {
 protected:
  std::string bundle(const std::string& env, const std::string& more = "") {
    tree_.file("b/config.json",
               R"({"process":{"env":[")" + env + R"("]},"root":{"path":"rootfs"})" + more + "}");
    tree_.directory("b/rootfs/etc");
    return tree_.path("b");
  }
  test::CliResult explain(const std::string& name, const std::string& flag = "--root") {
    return flag == "--json"
               ? run_cli({"gantry", "explain", name, "--json", "--root", ready_.tree().root()})
               : run_cli({"gantry", "explain", name, "--root", ready_.tree().root()});
  }
  void create(const std::string& bundle) {
    const runtime::CommandLine line{.command = "create", .id = "web-1", .bundle = bundle};
    const auto host = ready_.host();
    const config::Settings settings;
    const auto created =
        runtime::prepare_create({.line = line,
                                 .surroundings = {host, settings, [] { return Status(); }},
                                 .low_level = "/usr/bin/runc"});
    ASSERT_TRUE(created.ok()) << created.error().text();
  }

  runtime::ReadyMachine ready_;
  test::Tree tree_;
};

TEST_F(Explain, SaysWhyNewIdIsNeverWritten) {
  const auto run = explain("new_id");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("driver_override and not new_id"),
                             HasSubstr("adds the type of the card to vfio-pci, not the card"),
                             HasSubstr("driver_override names one PCI address")));
  const auto document = json::Document::parse(explain("new_id", "--json").out);
  ASSERT_TRUE(document.ok()) << document.error().text();
  EXPECT_EQ((*document)["topic"].string(), "new_id");
}

TEST_F(Explain, NamesKeysThatAreSetInVain) {
  ready_.tree().file("etc/nvidia-container-runtime/config.toml",
                     "[nvidia-container-cli]\nroot = \"/run/nvidia/driver\"\n");
  const auto run = explain(bundle("NVIDIA_VISIBLE_DEVICES=0"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("nvidia-container-cli.root has no effect"));
}

TEST_F(Explain, BeforeCreateSaysWhatWouldHappenAndChangesNothing) {
  const auto path = bundle("NVIDIA_VISIBLE_DEVICES=0");
  const auto before = *tree_.host().read("/b/config.json");
  const auto run = explain(path);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("would get"), HasSubstr("/dev/nvidia0"),
                             HasSubstr("environment: NVIDIA_VISIBLE_DEVICES=0"),
                             HasSubstr("the environment counts"), HasSubstr("Flavour shim")));
  EXPECT_EQ(*tree_.host().read("/b/config.json"), before);
  EXPECT_FALSE(tree_.host().exists("/b/rootfs/etc/ld.so.cache"));
  EXPECT_FALSE(ready_.host().exists("/run/gantry/containers"));
}

TEST_F(Explain, AfterCreateSaysWhatWasDoneAndWhoAsked) {
  create(bundle("NVIDIA_VISIBLE_DEVICES=0"));
  const auto run = explain("web-1");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("Container web-1"), HasSubstr(": has\n"),
                             HasSubstr("environment: NVIDIA_VISIBLE_DEVICES=0"), HasSubstr("195:0"),
                             HasSubstr("group 44")));
}

TEST_F(Explain, AContainerWithoutAnAccountIsReadFromItsConfig) {
  const auto run = explain(
      bundle("A=1", R"(,"linux":{"devices":[{"path":"/dev/nvidia3","major":195,"minor":3}]})"));
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("/dev/nvidia3"), HasSubstr("has no record of this container")));
}

TEST_F(Explain, WhatCannotBeIsTheAnswerAndTheStatus) {
  const auto run = explain(bundle("NVIDIA_VISIBLE_DEVICES=7"));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("cannot be created"), HasSubstr(runtime::ReadyMachine::uuid(0))));
}

TEST_F(Explain, ARefusalNamesItsRule) {
  const auto run = explain(bundle("NVIDIA_VISIBLE_DEVICES=all",
                                  R"(,"annotations":{"io.kubernetes.cri.sandbox-uid":"u",)"
                                  R"("io.kubernetes.cri.container-name":"c"})"));
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("would get nothing"), HasSubstr("resources.limits")));
}

TEST_F(Explain, JsonHasTheSame) {
  const auto run = explain(bundle("NVIDIA_VISIBLE_DEVICES=0"), "--json");
  const auto document = json::Document::parse(run.out);
  ASSERT_TRUE(document.ok()) << document.error().text();
  EXPECT_EQ((*document)["created"].boolean(), false);
  EXPECT_TRUE((*document)["failure"].is(json::Kind::Null));
  EXPECT_EQ((*document)["flavour"].string(), "shim");
  EXPECT_EQ((*document)["edits"]["nodes"].size(), 4);
  EXPECT_THAT((*document)["limits"].strings(), Not(IsEmpty()));
}

TEST_F(Explain, AnUnknownContainerSaysWhereItLooked) {
  const auto run = explain("no-such-container");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("/run/runc"));
}

TEST(Limits, EveryFlavourHasSome) {
  for (const char* flavour : {"shim", "one-hook", "no-hooks"}) {
    EXPECT_THAT(flavour_limits(flavour), Not(IsEmpty())) << flavour;
  }
  EXPECT_THAT(flavour_limits("?"), SizeIs(0));
}

}  // namespace
}  // namespace gantry::cli
