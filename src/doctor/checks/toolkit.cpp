// SPDX-License-Identifier: Apache-2.0
// The NVIDIA container toolkit's own configuration, where it is installed.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/document.hpp"
#include "doctor/engine/fix_steps.hpp"
#include "doctor/engine/tally.hpp"

#include <fmt/format.h>

#include <array>

namespace gantry::doctor {
namespace {

constexpr std::string_view kNoConfig = "the NVIDIA container toolkit is not configured here";

Finding judge_toolkit_config(const Facts& f) {
  const auto text = f.host().read(kToolkitConfig);
  if (!text.ok()) return skip(std::string(kNoConfig));
  const auto parsed = parse_toml(*text);
  if (parsed.ok())
    return ok("the toolkit's configuration is readable", {{std::string(kToolkitConfig), "TOML"}});
  return fail("the toolkit's configuration is not TOML: GPU containers will not start",
              {{std::string(kToolkitConfig), parsed.error().text()}});
}

Finding judge_ldconfig(const Facts& f) {
  const auto text = f.host().read(kToolkitConfig);
  if (!text.ok()) return skip(std::string(kNoConfig));
  auto path = parse_toml(*text).value_or({}).at("nvidia-container-cli").at("ldconfig").text();
  // "@" means the host's file, not the container's.
  if (!path.starts_with('@')) return skip("the toolkit uses the container's ldconfig");
  path.erase(0, 1);
  if (f.host().exists(path)) return ok("the toolkit's ldconfig exists", {{path, "present"}});
  return fail(fmt::format("the toolkit is configured to run {}, which does not exist", path),
              {{std::string(kToolkitConfig), "ldconfig = @" + path}, {path, "(absent)"}})
      .advise(fmt::format("sudo sed -i 's|@{}|@/sbin/ldconfig|' {}", path, kToolkitConfig));
}

Finding judge_cgroups(const Facts& f) {
  const auto text = f.host().read(kToolkitConfig);
  if (!text.ok()) return skip(std::string(kNoConfig));
  const bool off =
      parse_toml(*text).value_or({}).at("nvidia-container-cli").at("no-cgroups").is_true();
  const std::vector<Evidence> read{
      {std::string(kToolkitConfig), off ? "no-cgroups = true" : "no-cgroups off"}};
  if (!off) return ok("the toolkit allows the devices in the container's cgroup", read);
  return warn("the toolkit does not allow the devices in the container's cgroup", read);
}

Finding judge_unprivileged(const Facts& f) {
  const auto text = f.host().read(kToolkitConfig);
  if (!text.ok()) return skip(std::string(kNoConfig));
  if (!f.host().exists("/var/lib/kubelet/device-plugins")) {
    return skip("no kubelet: there is no device plugin to bypass");
  }
  const auto value = parse_toml(*text)
                         .value_or({})
                         .at("accept-nvidia-visible-devices-envvar-when-unprivileged")
                         .text();
  const std::vector<Evidence> read{
      {std::string(kToolkitConfig), "accept-nvidia-visible-devices-envvar-when-unprivileged " +
                                        (value.empty() ? "true (default)" : value)}};
  if (value == "false") return ok("an image cannot take GPUs by environment variable", read);
  return info("any image can take all GPUs with NVIDIA_VISIBLE_DEVICES=all", read);
}

constexpr std::array kHooks{"/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json",
                            "/etc/containers/oci/hooks.d/oci-nvidia-hook.json"};

std::vector<std::string> hooks(const Facts& f) {
  std::vector<std::string> found;
  for (const char* path : kHooks) {
    if (f.host().exists(path)) found.emplace_back(path);
  }
  return found;
}

Finding judge_twice(const Facts& f) {
  const auto found = hooks(f);
  std::string spec;
  for (std::string_view path : {"/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"}) {
    if (f.host().exists(path)) spec = path;
  }
  if (found.empty()) return ok("no OCI hook is installed", {{kHooks[0], "(absent)"}});
  if (spec.empty()) return ok("only the OCI hook hands out GPUs", {{found.front(), "present"}});
  return warn("both an OCI hook and a CDI specification hand out GPUs",
              {{found.front(), "present"}, {spec, "present"}})
      .advise(command_for(found, "sudo rm @"));
}

Steps fix_twice(const Facts& f) {
  Steps steps;
  for (auto& hook : hooks(f)) steps.emplace_back(RemoveFile{std::move(hook)});
  return steps;
}

// The classic prestart hook works, but no other component knows its changes to the cgroup.
Finding judge_classic(const Facts& f) {
  std::vector<Evidence> read;
  for (auto& hook : hooks(f)) read.push_back({std::move(hook), "present"});
  const auto text = f.host().read(kToolkitConfig);
  if (text.ok()) {
    const auto mode =
        parse_toml(*text).value_or({}).at("nvidia-container-runtime").at("mode").text();
    if (mode == "legacy") read.push_back({std::string(kToolkitConfig), "mode = \"legacy\""});
  }
  if (read.empty()) return ok("no prestart hook hands out GPUs", {{kHooks[0], "(absent)"}});
  return info("a prestart hook hands out GPUs: it edits the device rules of running containers",
              std::move(read));
}

constexpr Check kToolkitChecks[] = {
    {.id = "toolkit.config",
     .reference = "C2",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "the container toolkit's configuration is readable",
     .reads = "/etc/nvidia-container-runtime/config.toml",
     .cause = "A line was damaged by an edit.",
     .remedy = "gantry config default | sudo tee /etc/nvidia-container-runtime/config.toml",
     .judge = judge_toolkit_config,
     .by_hand = "gantry does not guess the intended text of broken lines",
     .closed = kToolkitConfig},
    {.id = "toolkit.ldconfig",
     .reference = "C3",
     .area = Area::Runtime,
     .title = "the container toolkit's ldconfig exists",
     .reads = "/etc/nvidia-container-runtime/config.toml",
     .cause = "The file was written for another distribution: ldconfig.real exists on Ubuntu only. "
              "Every GPU container fails to start.",
     .remedy = "sudo sed -i 's|@/sbin/ldconfig.real|@/sbin/ldconfig|' "
               "/etc/nvidia-container-runtime/config.toml",
     .judge = judge_ldconfig,
     .closed = kToolkitConfig},
    {.id = "toolkit.no-cgroups",
     .reference = "C7",
     .area = Area::Runtime,
     .title = "the container toolkit allows devices in cgroups",
     .reads = "/etc/nvidia-container-runtime/config.toml",
     .cause =
         "no-cgroups = true is for rootless engines. With an engine that root runs, the "
         "container sees the nodes but may not open them: \"Failed to initialize NVML: Unknown "
         "Error\".",
     .remedy = "sudo sed -i 's/^no-cgroups = true/no-cgroups = false/' "
               "/etc/nvidia-container-runtime/config.toml  # unless only rootless engines run here",
     .judge = judge_cgroups,
     .closed = kToolkitConfig},
    {.id = "toolkit.unprivileged",
     .reference = "C5",
     .area = Area::Runtime,
     .title = "images cannot take GPUs by environment variable",
     .reads = "/etc/nvidia-container-runtime/config.toml, /var/lib/kubelet/device-plugins",
     .cause =
         "By default the toolkit trusts the image's environment, so a pod without a GPU in its "
         "limits can use all GPUs.",
     .remedy =
         "sudo gantry config set "
         "accept-nvidia-visible-devices-envvar-when-unprivileged=false  # the plugin then needs "
         "CDI or volume mounts",
     .judge = judge_unprivileged,
     .closed = kToolkitConfig},
    {.id = "toolkit.twice",
     .reference = "C2",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "GPUs are handed out one way only",
     .reads = "oci/hooks.d/oci-nvidia-hook.json, /etc/cdi, /var/run/cdi",
     .cause = "A hook of an older installation runs in addition to CDI; their mounts conflict.",
     .remedy = "sudo rm /usr/share/containers/oci/hooks.d/oci-nvidia-hook.json",
     .judge = judge_twice,
     .fix = fix_twice},
    {.id = "classic.hook",
     .reference = "C7",
     .area = Area::Runtime,
     .title = "GPUs are part of a container's specification",
     .reads = "oci/hooks.d/oci-nvidia-hook.json, /etc/nvidia-container-runtime/config.toml",
     .cause = "The engine, the runtime and systemd do not know the rules that a hook added: after "
              "`systemctl daemon-reload` or an update of the container it loses its GPUs, with "
              "\"Failed to initialize NVML: Unknown Error\".",
     .remedy =
         "sudo gantry cdi refresh  # then: podman run --device nvidia.com/gpu=all, docker run "
         "--device nvidia.com/gpu=all",
     .judge = judge_classic},
};

}  // namespace

Steps install_toolkit(const Facts& f) {
  return install_package(f, "gantry");
}

std::string install_toolkit_command(const Facts& f, std::string_view engine) {
  const auto install = install_command(f, "gantry");
  return fmt::format("{}sudo gantry runtime configure --runtime={}",
                     install.empty() ? "install the package gantry, then: " : install + " && ",
                     engine);
}

std::span<const Check> toolkit_checks() {
  return kToolkitChecks;
}

}  // namespace gantry::doctor
