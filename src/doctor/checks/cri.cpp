// SPDX-License-Identifier: Apache-2.0
// containerd, and what every container runtime of a kubelet has.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/checks/containerd_config.hpp"
#include "doctor/engine/fix_steps.hpp"

#include <fmt/format.h>

namespace gantry::doctor {
namespace {

constexpr std::string_view kMain = "/etc/containerd/config.toml";

bool has_kubelet_directory(const Facts& f) {
  return f.host().exists("/var/lib/kubelet");
}

// Docker installs its own containerd with its own configuration; it matters only with a kubelet.
bool concerns_us(const Facts& f, const Containerd& c) {
  return c.installed && (has_kubelet_directory(f) || !f.installed("dockerd"));
}

Finding skip_containerd(const Containerd& c) {
  return skip(c.installed ? "containerd is Docker's own: there is no kubelet that uses it"
                          : "containerd is not installed");
}

Evidence main_file(const Containerd& c, std::string value) {
  return {c.files.empty() ? std::string(kMain) : c.files.front().path, std::move(value)};
}

Finding judge_containerd_config(const Facts& f) {
  const auto c = read_containerd(f);
  if (!c.installed) return skip_containerd(c);
  for (const auto& file : c.files) {
    if (file.error.empty()) continue;
    return fail(fmt::format("{} is not TOML: containerd will not start", file.path),
                {{file.path, file.error}});
  }
  if (!c.wrong_key.empty()) {
    return warn(fmt::format("containerd's configuration has version {} but names plugin {}",
                            c.version, c.wrong_key),
                {main_file(c, fmt::format("version = {}", c.version))})
        .because(
            "containerd silently ignores sections of another version: version 2 calls the plugin "
            "io.containerd.grpc.v1.cri, version 3 io.containerd.cri.v1.runtime.");
  }
  return ok("containerd's configuration is readable",
            {main_file(c, fmt::format("version {}", c.version))});
}

Finding judge_containerd_runtime(const Facts& f) {
  const auto c = read_containerd(f);
  if (!concerns_us(f, c)) return skip_containerd(c);
  const std::vector<Evidence> read{
      main_file(c, fmt::format("runtime nvidia {}, CDI {}", c.has_nvidia ? "set" : "not set",
                               c.cdi ? "on" : "off"))};
  if (c.has_nvidia || c.cdi) return ok("containerd can give GPUs to containers", read);
  return warn("containerd has neither the nvidia runtime nor CDI", read);
}

Steps fix_containerd_runtime(const Facts& f) {
  if (!f.installed("gantry")) return {};
  return {RunProgram{{"gantry", "runtime", "configure", "--runtime=containerd"}},
          RunProgram{{"systemctl", "restart", "containerd"}}};
}

Finding judge_containerd_runtime_path(const Facts& f) {
  const auto c = read_containerd(f);
  if (!c.has_nvidia) return skip("containerd has no nvidia runtime");
  if (c.nvidia_binary.empty()) {
    return warn("containerd's nvidia runtime names no program, so it is plain runc",
                {main_file(c, "runtimes.nvidia.options.BinaryName not set")});
  }
  const bool there = f.host().exists(c.nvidia_binary);
  const std::vector<Evidence> read{main_file(c, "BinaryName " + c.nvidia_binary),
                                   {c.nvidia_binary, there ? "present" : "(absent)"}};
  if (!there) {
    return fail(fmt::format("containerd's nvidia runtime {} is missing", c.nvidia_binary), read)
        .advise(install_toolkit_command(f, "containerd"));
  }
  return ok("containerd's nvidia runtime is installed", read);
}

Finding judge_default(const Facts& f) {
  const auto c = read_containerd(f);
  if (!concerns_us(f, c)) return skip_containerd(c);
  if (!c.has_nvidia) return skip("containerd has no nvidia runtime: see containerd.runtime");
  const std::vector<Evidence> read{
      main_file(c, "default_runtime_name " +
                       (c.default_runtime.empty() ? "runc (default)" : c.default_runtime))};
  if (c.default_runtime == "nvidia") return ok("nvidia is containerd's default runtime", read);
  if (c.cdi) return ok("CDI is on: the default runtime may stay runc", read);
  return info(
      "the default runtime may stay runc: the agent gives pods whole GPUs itself, and shares need "
      "runtimeClassName: nvidia",
      read);
}

// With CDI no plugin and no pod needs another default runtime.
Steps fix_default(const Facts& f) {
  if (!f.installed("gantry")) return {};
  return {RunProgram{{"gantry", "runtime", "configure", "--runtime=containerd", "--enable-cdi"}},
          RunProgram{{"systemctl", "restart", "containerd"}}};
}

// Edits only a list that contains nothing but "cri": disabled_plugins = ["cri"].
Steps fix_cri(const Facts& f) {
  auto steps = rewrite_lines(f, std::string(kMain), "disabled_plugins = []", [](std::string& line) {
    const bool alone = line.starts_with("disabled_plugins") && contains(line, "[\"cri\"]");
    if (alone) line = "disabled_plugins = []";
  });
  if (!steps.empty()) steps.emplace_back(RunProgram{{"systemctl", "restart", "containerd"}});
  return steps;
}

Finding judge_cri(const Facts& f) {
  const auto c = read_containerd(f);
  if (!c.installed) return skip_containerd(c);
  if (!has_kubelet_directory(f)) return skip("no kubelet on this machine");
  const std::vector<Evidence> read{
      main_file(c, c.cri_disabled ? "disabled_plugins = [\"cri\"]" : "cri not disabled")};
  if (c.cri_disabled)
    return fail("containerd does not serve the kubelet: its CRI plugin is disabled", read);
  return ok("containerd serves the kubelet", read);
}

Finding judge_cgroup_driver(const Facts& f) {
  auto kubelet = parse_yaml(f.host().read("/var/lib/kubelet/config.yaml").value_or(""));
  const auto wanted = std::move(kubelet).value_or({}).at("cgroupDriver").text();
  if (wanted.empty()) return skip("no kubelet that names its cgroup driver");
  const auto c = read_containerd(f);
  const auto docker =
      parse_json(f.host().read("/etc/docker/daemon.json").value_or("{}")).value_or({});
  std::string engine;
  Evidence read;
  if (!c.systemd_cgroup.empty()) {
    engine = c.systemd_cgroup == "true" ? "systemd" : "cgroupfs";
    read = main_file(c, "SystemdCgroup = " + c.systemd_cgroup);
  } else {
    for (const auto& option : docker.at("exec-opts").items()) {
      if (!option.text().starts_with("native.cgroupdriver=")) continue;
      engine = option.text().substr(20);
      read = {"/etc/docker/daemon.json", option.text()};
    }
  }
  if (engine.empty()) return skip("no engine that names its cgroup driver");
  const std::vector<Evidence> both{{"/var/lib/kubelet/config.yaml", "cgroupDriver: " + wanted},
                                   read};
  if (engine == wanted) return ok(fmt::format("kubelet and engine both use {}", wanted), both);
  return fail(fmt::format("the kubelet uses {}, the engine {}", wanted, engine), both);
}

constexpr Check kCriChecks[] = {
    {.id = "containerd.config",
     .reference = "K5",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "containerd's configuration is readable and of one version",
     .reads = "/etc/containerd/config.toml, its imports, k3s and rke2",
     .cause = "A line was damaged by an edit, or sections were copied from another version.",
     .remedy = "containerd config dump | less  # shows what is in force",
     .judge = judge_containerd_config,
     .by_hand = "gantry does not guess the intended text of broken lines"},
    {.id = "containerd.runtime",
     .reference = "K5",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "containerd can give GPUs to containers",
     .reads = "/etc/containerd/config.toml and its imports",
     .cause = "The toolkit was not registered or its section was overwritten: \"no runtime for "
              "\"nvidia\" is configured\".",
     .remedy = "sudo gantry runtime configure --runtime=containerd && sudo systemctl restart "
               "containerd",
     .judge = judge_containerd_runtime,
     .fix = fix_containerd_runtime,
     .by_hand = "gantry is not installed there, so it cannot write that configuration"},
    {.id = "containerd.runtime-path",
     .reference = "K5",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "containerd's nvidia runtime is installed",
     .reads = "/etc/containerd/config.toml, BinaryName",
     .cause = "The toolkit was removed or moved: sandboxes fail to start.",
     .remedy =
         "install the package gantry, then: sudo gantry runtime configure --runtime=containerd",
     .judge = judge_containerd_runtime_path,
     .fix = install_toolkit,
     .by_hand = "no known package manager is installed here"},
    {.id = "containerd.default-runtime",
     .reference = "K2",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "pods reach the GPUs without a runtime class",
     .reads = "/etc/containerd/config.toml",
     .cause =
         "The default runtime is runc, and CDI is off. That may stay: Gantry's agent gives pods "
         "whole GPUs by itself (`direct`), and its webhook sets runtimeClassName for shares. Other "
         "device plugins need CDI, which containerd has since 1.7. Another default runtime "
         "(--set-as-default) is the only way on an older containerd, if the plugin hands out GPUs "
         "by environment variable and the pods have no runtimeClassName.",
     .remedy = "sudo gantry runtime configure --runtime=containerd --enable-cdi && sudo "
               "systemctl restart containerd",
     .judge = judge_default,
     .fix = fix_default,
     .by_hand = "gantry is not installed there, so it cannot write that configuration"},
    {.id = "containerd.cri",
     .reference = "K5",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "containerd serves the kubelet",
     .reads = "/etc/containerd/config.toml",
     .cause = "Docker's package writes disabled_plugins = [\"cri\"].",
     .remedy = "sudo sed -i 's/^disabled_plugins.*/disabled_plugins = []/' "
               "/etc/containerd/config.toml && sudo systemctl restart containerd",
     .judge = judge_cri,
     .fix = fix_cri,
     .by_hand = "other plugins are disabled too, or the line is not in the main file"},
    {.id = "cri.cgroup-driver",
     .reference = "C4",
     .area = Area::Runtime,
     .title = "kubelet and engine use the same cgroup driver",
     .reads = "/var/lib/kubelet/config.yaml, containerd's SystemdCgroup, Docker's exec-opts",
     .cause = "Two managers control one cgroup tree: pods fail to start or lose their devices.",
     .remedy = "set SystemdCgroup = true (containerd) or native.cgroupdriver=systemd (Docker) and "
               "cgroupDriver: systemd (kubelet), then restart both",
     .judge = judge_cgroup_driver,
     .closed = "/var/lib/kubelet/config.yaml"},
};

}  // namespace

std::span<const Check> cri_checks() {
  return kCriChecks;
}

}  // namespace gantry::doctor
