// SPDX-License-Identifier: Apache-2.0
// Every document of --json has a version and spells its keys in one way.
#include "base/core/text.hpp"
#include "base/json/document.hpp"
#include "sharing/daemon/share_state.hpp"
#include "support/machine.hpp"
#include "support/paths.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace gantry::cli {
namespace {

using test::run_cli;
using Words = std::vector<std::string>;

// "snake", "camel", "kebab", or "" for a key of one word.
std::string spelling(const std::string& key) {
  if (contains(key, "_")) return "snake";
  if (contains(key, "-")) return "kebab";
  for (const char c : key) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0) return "camel";
  }
  return "";
}

void collect_keys(json::Value value, std::map<std::string, std::string>& example_of) {
  for (const auto child : value) {
    if (value.is(json::Kind::Object)) example_of.emplace(spelling(child.key()), child.key());
    collect_keys(child, example_of);
  }
}

void expect_version(json::Value document, const std::string& what) {
  const auto schema = document["schema"].u64();
  EXPECT_TRUE(schema || document["version"].u64()) << what << " has no version";
}

// A list at the top stays a list, because scripts say `jq '.[].name'`: each element has the
// version.
void expect_in_order(const std::string& text, const std::string& what) {
  const auto document = json::Document::parse(text);
  ASSERT_TRUE(document.ok()) << what << ": " << document.error().text() << "\n" << text;
  const auto root = document->root();
  if (root.is(json::Kind::Array)) {
    EXPECT_GT(root.size(), 0U) << what << ": nothing to look at";
    for (const auto element : root) expect_version(element, what);
  } else {
    expect_version(root, what);
  }
  std::map<std::string, std::string> example_of;
  collect_keys(root, example_of);
  example_of.erase("");
  EXPECT_LE(example_of.size(), 1U)
      << what << " spells its keys in several ways: " << testing::PrintToString(example_of);
}

// Commands whose --json is looked at here by running them.
const std::vector<Words>& commands() {
  static const std::vector<Words> list{
      {"cdi", "list"},
      {"config", "check"},
      {"config", "show"},
      {"doctor"},
      {"doctor", "--list"},
      {"doctor", "--explain", "numa.unknown"},
      {"driver", "install", "--dry-run", "--version", "580.159.04", "--sha256",
       std::string(64, 'a')},
      {"driver", "preflight", "--version", "580.159.04"},
      {"driver", "remove", "--dry-run"},
      {"driver", "status"},
      {"driver", "verify"},
      {"explain", "BUNDLE"},
      {"info"},
      {"list"},
      {"share", "explain"},
      {"sim", "state"},
      {"topo"},
      {"why", "image", "ROOT"},
      {"why", "manifest", "POD"},
  };
  return list;
}

// Others, and the reason why they are not run here.
const std::map<std::string, std::string>& not_run() {
  static const std::map<std::string, std::string> reasons{
      {"gantry driver build", "changes the machine: the document of `driver install`"},
      {"gantry driver load", "changes the machine: the document of `driver install`"},
      {"gantry driver upgrade", "changes the machine: the document of `driver install`"},
      {"gantry inspect",
       "a foreign format: what gpushare's extender answers, and it has no version"},
      {"gantry share create", "needs the daemon: ShareDocuments looks at what it prints"},
      {"gantry share ls", "needs the daemon: ShareDocuments looks at what it prints"},
      {"gantry share set", "needs the daemon: ShareDocuments looks at what it prints"},
      {"gantry share top", "needs the daemon: ShareDocuments looks at what it prints"},
      {"gantry sim create", "takes no machine: JsonDocuments.OfTheCatalog runs it"},
      {"gantry sim list", "takes no machine: JsonDocuments.OfTheCatalog runs it"},
      {"gantry sim package", "takes no machine: JsonDocuments.OfTheCatalog runs it"},
      {"gantry sim boot", "needs the prepared parts of a virtual machine host"},
      {"gantry vfio restore", "the document of `vfio bind`"},
      {"gantry vgpu assert", "needs a file: VgpuCommands runs it"},
      {"gantry vm check", "needs a file: VmCheck runs it"},
      {"gantry why container", "needs a container: the document of `why manifest`"},
      {"gantry why pod", "needs a cluster: the document of `why manifest`"},
  };
  return reasons;
}

TEST(JsonDocuments, HaveAVersionAndOneSpelling) {
  test::Machine machine("h200");
  machine.file("/etc/nvidia-container-runtime/config.toml", "[gantry]\nflavour = \"shim\"\n");
  machine.file("/etc/cdi/broken.yaml", "kind: [\n");
  test::Tree tree;
  tree.file("b/config.json", R"({"process": {"env": ["NVIDIA_VISIBLE_DEVICES=0"]},)"
                             R"( "root": {"path": "rootfs"}})");
  tree.directory("b/rootfs/etc");
  tree.file("pod.yaml",
            "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, resources: {limits: "
            "{nvidia.com/gpu: 1}}}]}\n");
  for (auto words : commands()) {
    if (words.back() == "BUNDLE") words.back() = tree.path("b");
    if (words.back() == "ROOT") words.back() = tree.path("b/rootfs");
    if (words.back() == "POD") words.back() = tree.path("pod.yaml");
    words.insert(words.begin(), "gantry");
    words.insert(words.end(), {"--json", "--root", machine.root()});
    expect_in_order(run_cli(words).out, testing::PrintToString(words));
  }
}

// Commands for virtual machines, on machines that have what they need.
const std::vector<std::pair<std::string, Words>>& machine_commands() {
  static const std::vector<std::pair<std::string, Words>> list{
      {"vfio", {"vfio", "list"}},
      {"vfio", {"vfio", "plan", "0000:84:00.0"}},
      {"vfio", {"vfio", "bind", "0000:84:00.0"}},
      {"vfio", {"vfio", "status"}},
      {"vfio", {"vfio", "recover"}},
      {"vfio", {"vfio", "release", "0000:84:00.0"}},
      {"vfio", {"gpu", "reset", "0000:84:00.0", "--dry-run"}},
      {"vfio", {"vm", "config", "--for", "qemu", "0000:04:00.0"}},
      {"vgpu-t4", {"vgpu", "types"}},
      {"vgpu-t4", {"vgpu", "create", "T4-4Q", "--gpu", "0"}},
      {"vgpu-t4", {"vgpu", "list"}},
      {"vgpu-t4", {"vgpu", "remove", "--all"}},
      {"vgpu-t4", {"vgpu", "apply", "--restore"}},
      {"h200", {"mig", "apply", "3g.71gb,1g.18gb"}},
      {"h200", {"mig", "list"}},
      {"h200", {"mig", "plan", "7x1g.18gb"}},
      {"h200", {"mig", "assert", "3g.71gb,1g.18gb"}},
      {"h200", {"mig", "restore"}},
  };
  return list;
}

TEST(JsonDocuments, OfVirtualMachines) {
  std::map<std::string, std::unique_ptr<test::Machine>> machines;
  for (auto [name, words] : machine_commands()) {
    auto& machine = machines[name];
    if (!machine) machine = std::make_unique<test::Machine>(name);
    words.insert(words.begin(), "gantry");
    words.insert(words.end(), {"--json", "--root", machine->root()});
    expect_in_order(run_cli(words).out, testing::PrintToString(words));
  }
}

TEST(JsonDocuments, OfTheCatalog) {
  expect_in_order(run_cli({"gantry", "sim", "list", "--json"}).out, "sim list");
  if (!test::Machine::has_libraries()) GTEST_SKIP() << "the simulated libraries are not built";
  const test::Tree tree;
  const auto made = run_cli({"gantry", "sim", "create", "h200", "--nodes", "table", "--libraries",
                             test::built("lib/gantry/sim"), "--root", tree.path("m"), "--json"});
  EXPECT_EQ(made.status, 0) << made.err;
  expect_in_order(made.out, "sim create");
  const auto package = run_cli({"gantry", "sim", "package", "--driver", "460.56", "--source",
                                test::source_dir(), "--libraries", test::built("lib/gantry/sim"),
                                "-o", tree.path("driver.run"), "--json"});
  EXPECT_EQ(package.status, 0) << package.err;
  expect_in_order(package.out, "sim package");
}

// With one of everything, so that every key is written.
TEST(ShareDocuments, HaveAVersionAndOneSpelling) {
  daemon::ShareState state;
  state.share = *policy::parse_share({.name = "blue", .memory = "10GiB", .compute = "30%"});
  state.gpus = {{.uuid = {"GPU-0"}, .unmanaged = {{.pid = 1, .command = "other"}}}};
  state.processes = {{.pid = 2, .inner_pid = 1, .command = "train", .gpus = {{.launches = 1}}}};
  state.findings = {{.at_unix_ms = 1, .kind = "memory", .pid = 2, .text = "holds too much"}};
  expect_in_order(daemon::to_document(state), "a share's state");
  expect_in_order(policy::to_document(state.share), "a share");
}

TEST(JsonDocuments, OfEveryCommandAreLookedAt) {
  std::set<std::string> looked_at;
  for (const auto& words : commands()) {
    auto command = "gantry " + words[0];
    const bool has_subcommand =
        words.size() > 1 && !words[1].starts_with("-") && words[1] != "BUNDLE";
    if (has_subcommand) command += " " + words[1];
    looked_at.insert(command);
  }
  for (const auto& [machine, words] : machine_commands())
    looked_at.insert(fmt::format("gantry {} {}", words[0], words[1]));
  for (const auto& [command, reason] : not_run()) looked_at.insert(command);
  const auto script = run_cli({"gantry", "completion", "zsh"}).out;
  const auto table = script.substr(0, script.find("_gantry_wanting="));
  std::set<std::string> with_json;
  for (const auto line : lines(table)) {
    const auto parts = split(line, '\'');  // '  ', command, ' ', words, ''
    if (parts.size() < 4 || !contains(" " + std::string(parts[3]) + " ", " --json ")) continue;
    with_json.emplace(parts[1]);
  }
  EXPECT_EQ(with_json, looked_at);
}

}  // namespace
}  // namespace gantry::cli
