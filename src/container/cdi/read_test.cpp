// SPDX-License-Identifier: Apache-2.0
#include "container/cdi/read.hpp"

#include "container/cdi/spec_text.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::cdi {
namespace {

using testing::HasSubstr;

constexpr const char* kEverything = R"(---
# somebody else's
cdiVersion: "1.1.0"
kind: acme.org/nic.fast
annotations:
  owner: "acme"
devices:
- name: "0"
  annotations: {a/b: c}
  containerEdits:
    env: [A=b, "C=d e"]
    deviceNodes:
    - path: /dev/a
      hostPath: /dev/b
      type: c
      major: 10
      minor: 0x20
      fileMode: 0660
      permissions: rw
      uid: 0
      gid: 44
    netDevices:
    - {hostInterfaceName: eth1, name: eth0}
    hooks:
    - hookName: createContainer
      path: /bin/hook
      args: [hook, --x]
      env: [A=b]
      timeout: 5
    mounts:
    - hostPath: /a
      containerPath: /b
      options: [ro]
      type: bind
    intelRdt:
      closID: x
      schemata: [L3=1]
      enableMonitoring: true
    additionalGids: [44, 100]
containerEdits:
  env:
  - X=
)";

Spec everything() {
  Edits edits{
      .env = {"A=b", "C=d e"},
      .device_nodes = {{"/dev/a", "/dev/b", "c", 10, 32, 0660, "rw", 0, 44}},
      .net_devices = {{"eth1", "eth0"}},
      .hooks = {{"createContainer", "/bin/hook", {"hook", "--x"}, {"A=b"}, 5}},
      .mounts = {{"/a", "/b", {"ro"}, "bind"}},
      .intel_rdt = IntelRdt{.clos_id = "x", .schemata = {"L3=1"}, .enable_monitoring = true},
      .additional_gids = {44, 100}};
  return {.version = "1.1.0",
          .kind = "acme.org/nic.fast",
          .annotations = {{"owner", "acme"}},
          .devices = {{"0", {{"a/b", "c"}}, edits}},
          .edits = {.env = {"X="}}};
}

std::string error_of(std::string_view text) {
  const auto spec = parse_spec(text, "x.yaml");
  return spec.ok() ? "no error" : spec.error().text();
}

TEST(Read, UnderstandsEverythingTheFormatHas) {
  const auto spec = load_spec(kEverything, "x.yaml");
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  EXPECT_EQ(*spec, everything());
}

TEST(Read, GetsBackWhatWasWritten) {
  for (const auto format : {Format::Yaml, Format::Json}) {
    const auto again = load_spec(to_text(everything(), format), "again");
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(*again, everything());
  }
}

TEST(Read, GetsBackOddTexts) {
  auto spec = everything();
  spec.edits.env = {"A=\"quoted\" \\ tab\t", "B=ünïcode", "C=#x: y", "D= ", "E=\x7f"};
  spec.edits.mounts = {{"/path with space", "/~", {"yes", "010"}, ""}};
  for (const auto format : {Format::Yaml, Format::Json}) {
    const auto again = load_spec(to_text(spec, format), "again");
    ASSERT_TRUE(again.ok()) << again.error().text();
    EXPECT_EQ(*again, spec);
  }
}

TEST(Read, AnUnknownKeyRejectsTheFileWithItsLine) {
  EXPECT_THAT(
      error_of("cdiVersion: 0.5.0\nkind: a.b/cc\ndevice: []\n"),
      HasSubstr("x.yaml:3: a specification has no key \"device\"; its keys are cdiVersion, kind"));
  EXPECT_THAT(error_of("devices:\n- name: a\n  containerEdits:\n    mounts:\n    - path: /a\n"),
              HasSubstr("x.yaml:5: a mount has no key \"path\""));
}

TEST(Read, JsonHasLinesToo) {
  EXPECT_THAT(error_of("{\n  \"kind\": \"a.b/cc\",\n  \"nonsense\": 1\n}\n"),
              HasSubstr("x.yaml:3: a specification has no key \"nonsense\""));
  const auto broken = parse_spec("{\n  \"kind\": ,\n}\n", "x.json");
  ASSERT_FALSE(broken.ok());
  EXPECT_THAT(broken.error().text(), HasSubstr("x.json"));
}

TEST(Read, AcceptsIndentedJsonWithTabsAndEscapes) {
  const auto spec = parse_spec("{\n\t\"kind\": \"a.b\\/cc\",\n\t\"cdiVersion\": \"0.5.0\"\n}", "x");
  ASSERT_TRUE(spec.ok()) << spec.error().text();
  EXPECT_EQ(spec->kind, "a.b/cc");
}

TEST(Read, MindsTypes) {
  EXPECT_THAT(error_of("devices: {}\n"), HasSubstr("x.yaml:1: devices must be a list"));
  EXPECT_THAT(error_of("kind: [a]\n"), HasSubstr("kind must be a string"));
  EXPECT_THAT(error_of("containerEdits:\n  additionalGids: [\"44\"]\n"),
              HasSubstr("x.yaml:2: additionalGids must be a number"));
  EXPECT_THAT(error_of("containerEdits:\n  additionalGids: [-1]\n"), HasSubstr("number from 0"));
  EXPECT_THAT(error_of("containerEdits:\n  additionalGids: [4294967296]\n"),
              HasSubstr("4294967295"));
  EXPECT_THAT(error_of("containerEdits:\n  deviceNodes: [null]\n"), HasSubstr("must be a map"));
  EXPECT_THAT(error_of("- a\n"), HasSubstr("a specification must be a map"));
}

TEST(Read, DoesNotGuessWhatReadersDisagreeAbout) {
  for (const char* name : {"yes", "Off", "010", "1e3", "0x1f", "1.50"}) {
    EXPECT_THAT(error_of(fmt::format("devices:\n- name: {}\n", name)), HasSubstr("in quotes"))
        << name;
    EXPECT_EQ(error_of(fmt::format("devices:\n- name: \"{}\"\n", name)), "no error") << name;
  }
  for (const char* name : {"0", "12", "0:1", "all", "GPU-8f", "MIG-1-2", "face", "3b", "1g.10gb"}) {
    EXPECT_EQ(error_of(fmt::format("devices:\n- name: {}\n", name)), "no error") << name;
  }
}

TEST(Read, DoubledKeysAreAnError) {
  EXPECT_THAT(error_of("kind: a.b/cc\nkind: a.b/dd\n"), HasSubstr("twice"));
  EXPECT_FALSE(parse_spec(R"({"kind": "a.b/cc", "kind": "a.b/dd"})", "x.json").ok());
}

TEST(Read, HostileTextIsAnError) {
  EXPECT_FALSE(parse_spec(std::string(kMaxSpecBytes + 1, ' '), "x").ok());
  EXPECT_FALSE(parse_spec(std::string(100'000, '['), "x.yaml").ok());
  EXPECT_FALSE(parse_spec(std::string(100'000, '{'), "x.yaml").ok());
  EXPECT_FALSE(
      parse_spec("{\"a\":" + std::string(120, '[') + std::string(120, ']') + "}", "x.json").ok());
  EXPECT_FALSE(load_spec("", "x.yaml").ok());
}

TEST(Read, WhatParsesMayStillBeRefused) {
  const auto spec = load_spec("cdiVersion: 0.3.0\nkind: a.b/cc\n", "x.yaml");
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(spec.error().code(), Errc::Corrupt);
  EXPECT_THAT(spec.error().text(), HasSubstr("x.yaml: there is no device"));
}

}  // namespace
}  // namespace gantry::cdi
