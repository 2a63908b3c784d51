// SPDX-License-Identifier: Apache-2.0
#include "node/setup/node_setup.hpp"

#include "support/machine.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

namespace gantry::setup {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kDaemon = "{\n    \"bip\": \"10.0.0.1/8\"\n}\n";
constexpr const char* kSpec = "/var/run/cdi/nvidia.yaml";

auto step(const std::string& name, const std::string& words) {
  return AllOf(Field(&NodeStep::step, name), Field(&NodeStep::outcome, HasSubstr(words)),
               Field(&NodeStep::failed, false));
}

std::string describe(const NodeReport& report) {
  std::string words;
  for (const auto& step : report.steps) words += step.step + ": " + step.outcome + '\n';
  return words;
}

// A machine's programs: what they were asked, and what they say.
struct Programs {
  std::vector<std::string> calls;
  std::map<std::string, std::string> answers;
  bool enabled = false;

  engines::RunProgram runner() {
    return [this](const std::vector<std::string>& words) -> Result<std::string> {
      const auto call = fmt::format("{}", fmt::join(words, " "));
      if (words[0] == "systemctl") calls.push_back(call);
      if (words[0] == "systemctl" && words[1] == "is-enabled" && !enabled) {
        return Error(Errc::Invalid, "disabled");
      }
      const auto found = answers.find(call);
      if (found != answers.end()) return found->second;
      if (words[0] == "systemctl") return std::string();
      return Error(Errc::NotFound, words[0] + " is not installed");
    };
  }
};

test::Machine& add_docker(test::Machine& machine) {
  return machine.file("/usr/bin/dockerd", "").file("/etc/docker/daemon.json", kDaemon);
}

TEST(NodeUp, PreparesTellsTheEngineAndIsTakenBackWhole) {
  test::Machine machine("h200x8");
  add_docker(machine).file("/run/systemd/system/.there", "");
  const auto host = machine.host();
  Programs programs;
  const NodeOptions options{.program = "/opt/g/gantry", .run = programs.runner()};

  const auto up = node_up(host, options);
  ASSERT_TRUE(up.ok()) << up.error().text();
  EXPECT_FALSE(up->failed()) << describe(*up);
  EXPECT_THAT(up->steps, Contains(step("driver files", "prepared")));
  EXPECT_THAT(up->steps, Contains(step("CDI", "devices, written")));
  EXPECT_THAT(up->steps, Contains(step("docker", "sudo systemctl restart docker")));
  EXPECT_THAT(up->steps, Contains(step("agent", "enabled, running")));
  EXPECT_THAT(*host.read("/etc/docker/daemon.json"), HasSubstr("nvidia"));
  EXPECT_THAT(*host.read("/etc/systemd/system/gantry-agent.service"),
              HasSubstr("ExecStart=/opt/g/gantry agent\n"));
  EXPECT_THAT(programs.calls,
              ElementsAre("systemctl daemon-reload", "systemctl is-enabled gantry-agent.service",
                          "systemctl enable --now gantry-agent.service"));

  const auto down = node_down(host, options);
  ASSERT_TRUE(down.ok()) << down.error().text();
  EXPECT_FALSE(down->failed()) << describe(*down);
  EXPECT_THAT(programs.calls, Contains("systemctl disable --now gantry-agent.service"));
  EXPECT_EQ(*host.read("/etc/docker/daemon.json"), kDaemon);
  for (const auto* gone : {kSpec, "/etc/systemd/system/gantry-agent.service",
                           "/var/lib/gantry/driver", "/run/gantry/inventory.json"}) {
    EXPECT_FALSE(host.exists(gone)) << gone;
  }
  EXPECT_FALSE(host.exists(kNodeJournal));
  const auto again = node_down(host, options);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code(), Errc::NotFound);
}

TEST(NodeUp, TwiceIsAsOnce) {
  test::Machine machine("h200x8");
  add_docker(machine);
  const auto host = machine.host();
  ASSERT_TRUE(node_up(host, {}).ok());
  const auto again = node_up(host, {});
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->steps, Contains(step("docker", "already")));
  ASSERT_TRUE(node_down(host, {}).ok());
  EXPECT_EQ(*host.read("/etc/docker/daemon.json"), kDaemon);
  EXPECT_FALSE(host.exists(kSpec));
}

TEST(NodeUp, WhatWasThereBeforeStays) {
  test::Machine machine("h200x8");
  add_docker(machine).file("/run/systemd/system/.there", "");
  machine.file("/usr/lib/systemd/system/gantry-agent.service", "[Unit]\n");
  const auto host = machine.host();
  ASSERT_TRUE(node_up(host, {.agent = false}).ok());
  machine.remove(kNodeJournal);  // as if another had done it
  Programs programs{.enabled = true};
  const auto up = node_up(host, {.run = programs.runner()});
  ASSERT_TRUE(up.ok()) << up.error().text();
  EXPECT_THAT(up->steps, Contains(step("agent", "already enabled")));
  EXPECT_FALSE(node_down(host, {.run = programs.runner()}).ok());
  EXPECT_TRUE(host.exists(kSpec));
  EXPECT_THAT(programs.calls, Not(Contains(HasSubstr("disable"))));
}

TEST(NodeUp, AnotherToolsSpecificationComesBack) {
  test::Machine machine("h200x8");
  const std::string other = "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: []\n";
  machine.file(kSpec, other);
  const auto host = machine.host();
  const auto refused = node_up(host, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("--take-over"));
  EXPECT_EQ(*host.read(kSpec), other);
  const auto up = node_up(host, {.take_over = true});
  ASSERT_TRUE(up.ok()) << up.error().text();
  EXPECT_NE(*host.read(kSpec), other);
  ASSERT_TRUE(node_down(host, {}).ok());
  EXPECT_EQ(*host.read(kSpec), other);
}

// The GPUs of these machines cannot be given to containers.
TEST(NodeUp, AFailureIsForetoldAndLeavesNothing) {
  for (const auto* name : {"nouveau", "no-nodes"}) {
    test::Machine machine(name);
    const auto host = machine.host();
    const auto dry = node_up(host, {.dry_run = true});
    const auto up = node_up(host, {});
    ASSERT_FALSE(up.ok()) << name;
    ASSERT_FALSE(dry.ok()) << name << ": the dry run promised success";
    EXPECT_EQ(dry.error().text(), up.error().text());
    EXPECT_FALSE(host.exists(kNodeJournal)) << name;
    EXPECT_EQ(node_down(host, {}).error().code(), Errc::NotFound);
  }
}

TEST(NodeDown, UndoesTheJournalOfARunThatDidNothing) {
  test::Machine machine("h200");
  machine.file(std::string(kNodeJournal),
               R"({"steps": [{"deed": "driver", "subject": "/var/lib/gantry/driver"},
                             {"deed": "spec", "subject": "/var/run/cdi/nvidia.yaml"}]})");
  const auto host = machine.host();
  const auto down = node_down(host, {});
  ASSERT_TRUE(down.ok()) << down.error().text();
  EXPECT_FALSE(down->failed()) << describe(*down);
  EXPECT_FALSE(host.exists(kNodeJournal));
}

struct EngineCase {
  const char* program = "";
  const char* version = "";
  const char* outcome = "";
  bool kubelet = false;
};

TEST(NodeUp, AnEngineThatTakesCdiIsLeftAlone) {
  const EngineCase cases[] = {
      {"dockerd", "Docker version 28.3.2, build 578ccf6", "28.3 supports CDI"},
      {"dockerd", "Docker version 20.10.24+dfsg1, build 297e128", "would get the runtime nvidia"},
      {"podman", "podman version 4.3.1", "4.3 supports CDI"},
      {"podman", "podman version 3.0.1", "would get the runtime nvidia"},
      {"crio", "crio version 1.28.4", "1.28 supports CDI"},
      {"containerd", "containerd github.com/containerd/containerd/v2 v2.1.4 7567",
       "2.1 supports CDI"},
      {"containerd", "containerd containerd.io 1.7.22 7f7fdf5", "would get the runtime nvidia"},
      {"containerd", "containerd containerd.io 1.7.22 7f7fdf5", "used by the kubelet", true},
      {"containerd", "", "would get the runtime nvidia"},
  };
  for (const auto& tried : cases) {
    test::Machine machine("h200x8");
    machine.file(fmt::format("/usr/bin/{}", tried.program), "");
    if (tried.kubelet) machine.file("/var/lib/kubelet/device-plugins/DEPRECATION", "");
    Programs programs;
    programs.answers[fmt::format("{} --version", tried.program)] = tried.version;
    const auto up = node_up(machine.host(), {.dry_run = true, .run = programs.runner()});
    ASSERT_TRUE(up.ok()) << up.error().text();
    EXPECT_THAT(up->steps, Contains(Field(&NodeStep::outcome, HasSubstr(tried.outcome))))
        << tried.program << ' ' << tried.version;
    EXPECT_FALSE(machine.host().exists(kNodeJournal));
  }
}

TEST(NodeUp, AMachineWithoutADriverIsAnError) {
  test::Tree tree;
  tree.file("usr/bin/dockerd").file("etc/docker/daemon.json", kDaemon);
  EXPECT_FALSE(node_up(tree.host(), {}).ok());
  EXPECT_EQ(*tree.host().read("/etc/docker/daemon.json"), kDaemon);
  EXPECT_FALSE(tree.host().exists("/var/run/cdi"));
}

TEST(NodeUp, WithoutSystemdTheCommandIsSaid) {
  test::Machine machine("h200x8");
  const auto up = node_up(machine.host(), {});
  ASSERT_TRUE(up.ok()) << up.error().text();
  EXPECT_THAT(up->steps, Contains(step("agent", "sudo /usr/bin/gantry agent --root ")));
  EXPECT_THAT(up->notes, Contains(HasSubstr("no kubelet")));
}

TEST(NodeDown, AnEditedUnitIsKept) {
  test::Machine machine("h200x8");
  machine.file("/run/systemd/system/.there", "");
  Programs programs;
  ASSERT_TRUE(node_up(machine.host(), {.run = programs.runner()}).ok());
  machine.file("/etc/systemd/system/gantry-agent.service", "[Unit]\nDescription=mine\n");
  const auto down = node_down(machine.host(), {.run = programs.runner()});
  ASSERT_TRUE(down.ok());
  EXPECT_THAT(down->steps, Contains(step("agent", "kept")));
  EXPECT_TRUE(machine.host().exists("/etc/systemd/system/gantry-agent.service"));
}

TEST(NodeDown, AJournalOfAnotherHandUndoesNothing) {
  test::Machine machine("h200x8");
  for (const auto* text :
       {"{", R"({"steps": [{"deed": "shred", "subject": "/etc/passwd"}]})", R"({"steps": [7]})"}) {
    machine.file(kNodeJournal, text);
    const auto down = node_down(machine.host(), {});
    ASSERT_FALSE(down.ok());
    EXPECT_EQ(down.error().code(), Errc::Corrupt);
  }
}

}  // namespace
}  // namespace gantry::setup
