// SPDX-License-Identifier: Apache-2.0
// Foreign text must not command the terminal, whichever command prints it.
#include "gantry/safe_output.hpp"

#include "support/machine.hpp"
#include "support/run_cli.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace gantry::cli {
namespace {

using ::testing::HasSubstr;

std::string through_door(const std::vector<std::string>& parts) {
  char* bytes = nullptr;
  std::size_t size = 0;
  std::FILE* raw = ::open_memstream(&bytes, &size);
  {
    const SafeOutput door(raw);
    for (const auto& part : parts) std::fwrite(part.data(), 1, part.size(), door.file());
  }
  std::fclose(raw);
  std::string text(bytes, size);
  std::free(bytes);
  return text;
}

TEST(SafeOutput, EscapesWhatATerminalObeys) {
  EXPECT_EQ(through_door({"a\033[2Jb\n"}), "a\\x1b[2Jb\n");
  EXPECT_EQ(through_door({"\rover\n"}), "\\x0dover\n");
  EXPECT_EQ(through_door({"\xc2\x9b\x7f\b"}), "\\x9b\\x7f\\x08");
  EXPECT_EQ(through_door({std::string("a\0b", 3)}), "a\\x00b");
}

TEST(SafeOutput, KeepsTextAsItIs) {
  for (const char* text : {"a\tb\n\n", "caf\u00e9 \u2713 \U0001F600\n", "a\r\nb\r\n", "\\x1b"}) {
    EXPECT_EQ(through_door({text}), text);
  }
}

TEST(SafeOutput, DoesNotBreakACharacterThatComesInTwoParts) {
  EXPECT_EQ(through_door({"caf\xc3", "\xa9\n"}), "caf\u00e9\n");
  EXPECT_EQ(through_door({"\xf0\x9f", "\x98\x80"}), "\U0001F600");
  EXPECT_EQ(through_door({"\xc2", "\x9b"}), "\\x9b");
  EXPECT_EQ(through_door({"end\xc3"}), "end\\xc3");
  EXPECT_EQ(through_door({"a\r", "\nb"}), "a\r\nb");
}

TEST(SafeOutput, OneBadLineDoesNotChangeTheOthers) {
  EXPECT_EQ(through_door({"caf\u00e9\n\xff\ncaf\u00e9\n"}), "caf\u00e9\n\\xff\ncaf\u00e9\n");
}

constexpr const char* kEvil = "\033]0;owned\a\033[2J\xc2\x9b";

bool is_safe(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) return false;
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      return false;
    }
  }
  return true;
}

// A machine of which an attacker wrote every file that commands show.
class HostileMachine : public ::testing::Test {
 protected:
  HostileMachine() {
    const std::string evil = kEvil;
    machine_.file("/proc/driver/nvidia/gpus/0000:00:06.0/information", "Model: " + evil + "\n");
    machine_.file("/proc/driver/nvidia/params", evil + ": 1\nModifyDeviceFiles: " + evil + "\n");
    machine_.file("/proc/cmdline", evil);
    machine_.file("/etc/modprobe.d/nvidia.conf", "options nvidia NVreg_" + evil + "=1\n");
    const std::string coded = R"(\e[2J\x9b)";  // as YAML writes it
    for (const char* name : {"good.yaml", "evil\033[2J.yaml"}) {
      machine_.file(std::string("/etc/cdi/") + name,
                    fmt::format("cdiVersion: 0.6.0\nkind: \"nvidia.com/gpu{0}\"\n"
                                "annotations: {{\"{0}\": x}}\ndevices:\n- name: \"{0}\"\n"
                                "  containerEdits:\n    hooks:\n"
                                "    - {{hookName: \"{0}\", path: \"{0}\"}}\n",
                                coded));
    }
    machine_.file("/etc/cdi/broken.yaml", "kind: [" + evil + "\n");
    machine_.file("/var/run/cdi/vendor.json",
                  R"({"cdiVersion":"0.6.0","kind":"vendor.com/\u001b[2J","devices":[]})");
    machine_.file("/etc/gantry/config.toml", "[\"" + evil + "\"]\n");
    machine_.file("/etc/nvidia-container-runtime/config.toml", "a = \"" + evil + "\"\n");
    machine_.file("/etc/docker/daemon.json",
                  "{\"runtimes\": {\"\\u001b[2J\": {}}, \"x\": \"" + evil + "\"}");
    machine_.file("/etc/containerd/config.toml", "version = 2\nroot = \"" + evil + "\"\n");
    machine_.file("/run/gantry/containers/abc.json", "{\"id\": \"" + evil + "\"}");
    machine_.file("/run/gantry/shares/x/share.json", "{\"name\": \"\\u001b[2J\"}");
    manifests_.file("pod.yaml", "kind: Pod\nmetadata: {name: \"" + coded +
                                    "\"}\nspec:\n  containers:\n  - name: \"" + coded +
                                    "\"\n    image: \"" + coded +
                                    "\"\n    resources: {limits: {\"nvidia.com/" + coded +
                                    "\": \"" + coded + "\"}}\n");
    manifests_.file("evil\033[2J.yaml", "a: [" + evil);
  }

  void expect_safe(const std::vector<std::string>& command) {
    const auto run = test::run_cli(command);
    std::string words;
    for (const auto& word : command) words.append(word).append(" ");
    EXPECT_TRUE(is_safe(run.out)) << words << "\n" << run.out;
    EXPECT_TRUE(is_safe(run.err)) << words << "\n" << run.err;
    printed_ += run.out + run.err;
    last_error_ = run.err;
  }

  test::Machine machine_{"h200"};
  test::Tree manifests_;
  std::string printed_;
  std::string last_error_;
};

TEST_F(HostileMachine, CannotCommandTheTerminalThroughAnyCommand) {
  const std::string root = machine_.root();
  const std::string file = machine_.path("/etc/cdi/evil\033[2J.yaml");
  const std::vector<std::vector<std::string>> commands{
      {"info"},
      {"info", "--json"},
      {"info", "--load"},
      {"info", "--no-nvml"},
      {"list"},
      {"list", "--json"},
      {"topo"},
      {"topo", "--json"},
      {"gpu", "reset", "0", "--dry-run"},
      {"gpu", "reset", "0", "--dry-run", "--json"},
      {"doctor"},
      {"doctor", "--all"},
      {"doctor", "--json"},
      {"doctor", "--only", kEvil},
      {"cdi", "list"},
      {"cdi", "list", "--json"},
      {"cdi", "validate"},
      {"cdi", "validate", file},
      {"cdi", "generate"},
      {"cdi", "refresh"},
      {"explain", "abc"},
      {"explain", kEvil},
      {"config", "check"},
      {"config", "show"},
      {"config", "show", "--effective"},
      {"runtime", "configure", "--runtime=docker", "--dry-run"},
      {"runtime", "configure", "--runtime=containerd", "--dry-run"},
      {"node", "up", "--dry-run"},
      {"node", "down", "--dry-run"},
      {"share", "create", kEvil},
      {"sim", "state"},
      {"sim", "state", "--json"},
      {"sim", "inject", kEvil},
      {"report", "-o", manifests_.path("report.tar")},
      {"vfio", "list"},
      {"vfio", "list", "--json"},
      {"vfio", "plan", "0"},
      {"vfio", "plan", kEvil},
      {"vfio", "bind", "0", "--dry-run"},
      {"vfio", "status"},
      {"vgpu", "list"},
      {"vgpu", "types"},
      {"vm", "config", "--for", "qemu", "0"},
      {"vm", "config", "--for", "libvirt", "0"},
  };
  for (auto command : commands) {
    command.insert(command.begin(), "gantry");
    command.insert(command.end(), {"--root", root});
    expect_safe(command);
    // A misspelt command would show nothing of the machine.
    if (std::count(command.begin(), command.end(), kEvil) != 0) continue;
    EXPECT_THAT(last_error_, Not(HasSubstr("there is no command"))) << command[1];
  }
  EXPECT_THAT(printed_, HasSubstr("\\x1b")) << "the escapes were shown, not dropped";
}

// The names of vGPU types come from a driver; descriptions of virtual machines from anyone.
TEST_F(HostileMachine, NorThroughVgpuTypesAndVirtualMachines) {
  const std::string evil = kEvil;
  test::Machine host("vgpu-t4");
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(host.root() + "/sys/devices")) {
    const auto path = entry.path().string().substr(host.root().size());
    if (path.find("mdev_supported_types") != std::string::npos && path.ends_with("/name"))
      names.push_back(path);
  }
  EXPECT_FALSE(names.empty());
  for (const auto& name : names) host.file(name, "GRID T4-" + evil + "Q\n");
  manifests_.file("vgpu.yaml",
                  "version: v1\nvgpu-configs:\n  \"\\e[2J\":\n  - devices: all\n"
                  "    vgpu-devices: {\"\\e[2J\": 1}\n");
  manifests_.file("vm.xml", "<domain type='kvm'><name>" + evil + "</name><devices><hostdev mode='" +
                                evil + "' type='pci'><source><address domain='" + evil +
                                "' bus='1'/></source></hostdev></devices></domain>\n");
  manifests_.file("vm.sh", "qemu-system-x86_64 -name " + evil + " -device vfio-pci,host=" + evil +
                               " -device vfio-pci,host=0000:3b:00.0\n");
  manifests_.file("vm.vmx", "displayName = \"" + evil + "\"\npciPassthru0.id = \"" + evil + "\"\n");
  std::vector<std::vector<std::string>> commands{
      {"vgpu", "list"},
      {"vgpu", "list", "--json"},
      {"vgpu", "types"},
      {"vgpu", "types", "--json"},
      {"vgpu", "create", "T4-" + evil + "Q", "--gpu", "0", "--dry-run"},
      {"vgpu", "remove", evil, "--dry-run"},
      {"vgpu", "apply", "-f", manifests_.path("vgpu.yaml"), "-c", "\033[2J", "--dry-run"},
      {"vgpu", "assert", "-f", manifests_.path("vgpu.yaml"), "-c", evil},
      {"vfio", "list"},
      {"vm", "config", "--for", "qemu", "0"},
  };
  for (const auto* name : {"vm.xml", "vm.sh", "vm.vmx"}) {
    commands.push_back({"vm", "check", manifests_.path(name)});
    commands.push_back({"vm", "check", manifests_.path(name), "--json"});
  }
  for (auto command : commands) {
    command.insert(command.begin(), "gantry");
    command.insert(command.end(), {"--root", host.root()});
    expect_safe(command);
  }
  EXPECT_THAT(printed_, HasSubstr("\\x1b")) << "the escapes were shown, not dropped";
}

// What `gantry driver` reads: the kernel's names, the distribution's, and its own records.
TEST_F(HostileMachine, NorThroughTheFilesOfADriver) {
  const std::string evil = kEvil;
  machine_.file("/etc/os-release", "ID=\"" + evil + "\"\nPRETTY_NAME=\"" + evil + "\"\n");
  machine_.file("/proc/version", "Linux version 6.1.0" + evil + " (gcc-12 (Debian) 12) #1\n");
  machine_.file("/proc/modules", "nvidia 1 1 " + evil + ", Live 0x0\n");
  machine_.file("/lib/modules/7.0" + evil + "/modules.dep", "");
  machine_.file("/etc/modprobe.d/" + evil + ".conf", "blacklist nvidia\n");
  machine_.file("/proc/4711/comm", evil + "\n");
  machine_.file("/proc/4711/cgroup", "0::/" + evil + "\n");
  machine_.file("/usr/local/nvidia/.versions/" + evil + "/files.json", evil);
  const std::string record =
      R"({"format": 1, "source": "packages", "version": "460.56", "directory": "/a\u001b[2J",)"
      R"( "created": ["/b\u001b[2J"], "removal": [{"argv": ["\u001b[2J"]}]})";
  const std::vector<std::vector<std::string>> commands{
      {"preflight", "--version", "460.56"},
      {"preflight", "--version", evil, "--kernel", evil, "--flavour", "open"},
      {"preflight", "--run", "/" + evil + ".run", "--sign-key", "/" + evil},
      {"preflight", "--version", "460.56", "--json"},
      {"install", "--version", "460.56", "--sha256", std::string(64, 'a'), "--dry-run"},
      {"install", "--run", "/" + evil + ".run", "--dry-run"},
      {"install", "--url", "https://127.0.0.1/" + evil, "--sha256", evil, "--dry-run"},
      {"install", "--source", evil},
      {"upgrade", "--version", evil, "--dry-run"},
      {"status"},
      {"status", "--json"},
      {"verify"},
      {"verify", "--json"},
      {"remove", "--dry-run"},
      {"load"},
      {"build", "--kernel", evil},
  };
  for (const auto& installed : {std::string(), record, "{\"" + evil}) {
    if (!installed.empty())
      machine_.file("/var/lib/gantry/driver-install/installed.json", installed);
    for (auto command : commands) {
      command.insert(command.begin(), {"gantry", "driver"});
      command.insert(command.end(), {"--root", machine_.root()});
      expect_safe(command);
    }
  }
  expect_safe({"gantry", "sim", "package", "--driver", evil});
  EXPECT_THAT(printed_, HasSubstr("\\x1b")) << "the escapes were shown, not dropped";
}

TEST_F(HostileMachine, NorThroughArgumentsManifestsAndOtherNames) {
  expect_safe({"gantry", kEvil});
  expect_safe({"gantry", "info", kEvil});
  expect_safe({"gantry", "info", "--root", kEvil});
  expect_safe({"gantry", "sim", "create", kEvil, "--root", manifests_.path("m")});
  for (const char* name : {"pod.yaml", "evil\033[2J.yaml"}) {
    expect_safe({"gantry", "why", "manifest", manifests_.path(name)});
    expect_safe({"gantry", "why", "manifest", manifests_.path(name), "--json"});
  }
  manifests_.file(std::string("root/usr/lib/python3") + kEvil + "/site-packages/torch/version.py",
                  "__version__ = '1" + std::string(kEvil) + "'\ncuda = None\n");
  manifests_.file("root/lib64/ld-linux-x86-64.so.2");
  expect_safe({"gantry", "why", "image", manifests_.path("root")});
  EXPECT_THAT(printed_, HasSubstr("built without CUDA"));
  expect_safe({"gantry", "why", "image", manifests_.path("root"), "--json"});
  expect_safe({"gantry", "why", "image", kEvil});
  expect_safe({"gantry", "inspect", kEvil, "--kubeconfig", manifests_.path("evil\033[2J.yaml")});
  ::setenv("GANTRY_ROOT", machine_.root().c_str(), 1);
  expect_safe({"nvidia-ctk", "cdi", "list"});
  expect_safe({"nvidia-ctk", kEvil});
  expect_safe({"nvidia-container-cli", "info"});
  expect_safe({"nvidia-container-cli", "list"});
  expect_safe({"nvidia-container-cli", kEvil});
  expect_safe({"config-manager", kEvil});
  const auto option = std::string("--") + kEvil;
  expect_safe({"gantry", "agent", option});
  for (const char* name :
       {"nvidia-device-plugin", "gpu-feature-discovery", "kubectl-inspect-gpushare"}) {
    expect_safe({name, option});
  }
  ::unsetenv("GANTRY_ROOT");
}

}  // namespace
}  // namespace gantry::cli
