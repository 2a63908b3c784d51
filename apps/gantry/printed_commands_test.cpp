// SPDX-License-Identifier: Apache-2.0
// What a command prints for the machine below --root or GANTRY_ROOT can be pasted: it names that
// machine, and it changes no other.
#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <stdlib.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <memory>

namespace gantry::cli {
namespace {

using test::run_cli;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

// A simulated machine in a directory whose name must be quoted.
class OddMachine {
 public:
  explicit OddMachine(std::string_view name) {
    const test::Machine machine(name);
    std::filesystem::rename(machine.root(), root_);
    write("usr/bin/dockerd");
    write("etc/docker/daemon.json", "{}\n");
    write("usr/bin/containerd");
    write("etc/containerd/config.toml", "version = 2\n");
    write("usr/bin/crio");
    write("run/systemd/system/.keep");
  }
  const std::string& root() const { return root_; }
  void make_real() { std::filesystem::remove(root_ + "/.gantry-sim"); }

 private:
  void write(const std::string& inside, std::string_view content = "") {
    parent_.file(std::string(kName) + "/" + inside, content);
  }
  static constexpr const char* kName = "it's a machine";
  test::Tree parent_;
  std::string root_ = parent_.path(kName);
};

// The part of a line that a shell would run: not the name of the program before its error, not a
// comment, and not what is for another machine.
std::string_view pasted(std::string_view line) {
  const auto name = line.find(": ");
  if (line.starts_with("gantry ") && name != std::string_view::npos) line.remove_prefix(name);
  for (const auto* end : {" # ", "on that machine:"}) line = line.substr(0, line.find(end));
  return line;
}

// The doctor's wrapped lines as one.
std::string unwrapped(std::string text) {
  const std::string indent = "\n" + std::string(13, ' ');
  for (auto at = text.find(indent); at != std::string::npos; at = text.find(indent, at)) {
    text.replace(at, indent.size(), " ");
  }
  return text;
}

void expect_safe(const std::string& text, const std::string& root, const Words& words) {
  const auto whole = unwrapped(text);
  for (const auto line : lines(whole)) {
    if (line.starts_with('#')) continue;  // a comment of a file
    const auto said = fmt::format("{}: {}", fmt::join(words, " "), line);
    const auto command = pasted(line);
    EXPECT_EQ(sys::with_root(command, root), command) << said;
    for (auto at = command.find("sudo "); at != std::string_view::npos;
         at = command.find("sudo ", at + 1)) {
      const auto called = command.substr(at + 5);
      EXPECT_TRUE(called.starts_with("gantry ") ||
                  called.starts_with("rm " + sys::shell_word(root).substr(0, 5)) ||
                  contains(called, " agent --root "))
          << said;
    }
    EXPECT_THAT(std::string(command), Not(HasSubstr("rm /dev"))) << said;
  }
}

// Files of the caller, outside of every machine.
const test::Tree& callers_files() {
  static const auto tree = [] {
    auto made = std::make_unique<test::Tree>();
    made->file("pod.yaml", "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n");
    made->file(
        "vgpu.yaml",
        "version: v1\nvgpu-configs:\n  small:\n    - devices: all\n      vgpu-devices: {T4-4Q: "
        "1}\n");
    made->file("vm.sh", "qemu-system-x86_64 -device vfio-pci,host=0000:00:06.0\n");
    return made;
  }();
  return *tree;
}

std::string report_file() {
  return callers_files().path("report.tar");
}

std::string pod_file() {
  return callers_files().path("pod.yaml");
}

std::string vgpu_sets_file() {
  return callers_files().path("vgpu.yaml");
}

std::string vm_file() {
  return callers_files().path("vm.sh");
}

// No GPU 9 is on these machines: a share that was made would start a daemon.
const std::vector<Words>& printing_commands() {
  static const std::vector<Words> list{
      {"info"},
      {"info", "--no-nvml"},
      {"list"},
      {"topo"},
      {"gpu", "reset", "0", "--dry-run"},
      {"doctor"},
      {"doctor", "--fix"},
      {"config", "check"},
      {"config", "show"},
      {"cdi", "generate"},
      {"cdi", "refresh"},
      {"cdi", "list"},
      {"driver", "preflight", "--version", "460.56"},
      {"driver", "install", "--version", "460.56", "--sha256", std::string(64, 'a'), "--dry-run"},
      {"driver", "install", "--source", "precompiled"},
      {"driver", "upgrade", "--version", "580.159.04"},
      {"driver", "status"},
      {"driver", "verify"},
      {"driver", "remove", "--dry-run"},
      {"driver", "remove"},
      {"driver", "load"},
      {"driver", "build", "--all"},
      {"explain", "nvidia.com/gpu=7"},
      {"node", "up", "--dry-run"},
      {"node", "up"},
      {"node", "down"},
      {"runtime", "configure", "--runtime=docker"},
      {"runtime", "configure", "--runtime=docker", "--undo"},
      {"runtime", "configure", "--runtime=containerd", "--dry-run"},
      {"runtime", "configure", "--runtime=containerd"},
      {"runtime", "configure", "--runtime=containerd", "--undo"},
      {"runtime", "configure", "--runtime=crio"},
      {"runtime", "configure", "--runtime=crio", "--undo"},
      {"report", "-o", report_file()},
      {"share", "create", "blue", "--gpu", "9"},
      {"share", "explain"},
      {"share", "explain", "blue"},
      {"share", "ls"},
      {"share", "rm", "blue"},
      {"share", "run", "--gpu", "9", "--memory", "1GiB", "true"},
      {"share", "set", "blue", "--memory", "1GiB"},
      {"share", "top", "--once"},
      {"sim", "state"},
      {"vfio", "list"},
      {"vfio", "plan", "0"},
      {"vfio", "bind", "0", "--dry-run"},
      {"vfio", "status"},
      {"vgpu", "list"},
      {"vgpu", "types"},
      {"vgpu", "create", "T4-4Q", "--gpu", "0", "--dry-run"},
      {"vgpu", "apply", "-f", vgpu_sets_file(), "-c", "small", "--dry-run"},
      {"vgpu", "assert", "-f", vgpu_sets_file(), "-c", "small"},
      {"mig", "list"},
      {"mig", "list", "--profiles"},
      {"mig", "plan", "--gpu", "all", "1g.18gb"},
      {"mig", "apply", "--gpu", "0", "9g.999gb"},
      {"mig", "assert", "1g.18gb"},
      {"mig", "export"},
      {"mig", "restore", "--former"},
      {"vm", "config", "--for", "qemu", "0"},
      {"vm", "config", "--for", "libvirt", "0"},
      {"vm", "check", vm_file()},
      {"why", "container", "4c01db0b339c"},
      {"why", "image", callers_files().root()},
      {"why", "image", "/no/such/image"},
      {"why", "manifest", pod_file()},
      {"why", "pod", "default/train", "--kubeconfig", "/no/such/kubeconfig"},
  };
  return list;
}

void run_all(const std::string& root) {
  for (auto words : printing_commands()) {
    words.insert(words.begin(), "gantry");
    const auto run = run_cli(words);
    expect_safe(run.out + run.err, root, words);
  }
}

TEST(PrintedCommands, CarryTheRootOfTheEnvironment) {
  for (const auto* name :
       {"nouveau", "mismatch", "no-nodes", "secure-boot", "h200", "vfio", "vgpu-t4"}) {
    const OddMachine machine(name);
    ::setenv("GANTRY_ROOT", machine.root().c_str(), 1);
    run_all(machine.root());
    ::unsetenv("GANTRY_ROOT");
  }
}

TEST(PrintedCommands, CarryTheRootOfTheFlag) {
  OddMachine machine("no-uvm");
  machine.make_real();
  for (auto words : printing_commands()) {
    words.insert(words.begin(), "gantry");
    words.insert(words.end(), {"--root", machine.root()});
    const auto run = run_cli(words);
    expect_safe(run.out + run.err, machine.root(), words);
  }
}

TEST(PrintedCommands, UndoNamesTheMachine) {
  const OddMachine machine("h200");
  const auto root = sys::root_flag(machine.root());
  const auto engine =
      run_cli({"gantry", "runtime", "configure", "--runtime=docker", "--root", machine.root()});
  EXPECT_THAT(engine.out, HasSubstr("sudo gantry runtime configure" + root + " --runtime=docker"));
  const auto node = run_cli({"gantry", "node", "up", "--root", machine.root()});
  EXPECT_THAT(node.out, HasSubstr("sudo gantry node down" + root + "\n"));
}

TEST(PrintedCommands, ASimulatedMachineIsRepairedBySim) {
  const OddMachine machine("nouveau");
  const auto doctor = run_cli({"gantry", "doctor", "--root", machine.root()});
  EXPECT_EQ(doctor.status, 1);
  const auto repair = "gantry sim create k620 --force" + sys::root_flag(machine.root());
  EXPECT_THAT(doctor.out, HasSubstr(repair));
  const auto info = run_cli({"gantry", "info", "--root", machine.root()});
  EXPECT_THAT(info.err, HasSubstr("`gantry doctor" + sys::root_flag(machine.root()) + "`"));
}

// sys::with_root() has a list of the commands that take --root.
TEST(PrintedCommands, EveryCommandWithARootIsKnown) {
  const auto script = run_cli({"gantry", "completion", "zsh"}).out;
  const auto table = script.substr(0, script.find("_gantry_wanting="));
  int known = 0;
  for (const auto line : lines(table)) {
    const auto parts = split(line, '\'');  // '  ', command, ' ', words, ''
    if (parts.size() < 4 || parts[1] == "gantry") continue;
    const std::string command(parts[1]);
    const bool takes = contains(fmt::format(" {} ", parts[3]), " --root ");
    const auto with = sys::with_root(command, "/m");
    // The agent parses its own options; the commands of `sim inject` take those of their parent.
    if (command == "gantry agent" || command.starts_with("gantry sim inject ")) continue;
    EXPECT_EQ(with, takes ? command + " --root /m" : command);
    if (takes) ++known;
  }
  EXPECT_GT(known, 25);
}

}  // namespace
}  // namespace gantry::cli
