// SPDX-License-Identifier: Apache-2.0
// Docker's configuration. Every check is skipped if Docker is not installed.
#include "base/core/text.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/document.hpp"
#include "doctor/engine/fix_steps.hpp"

#include <fmt/format.h>

namespace gantry::doctor {
namespace {

constexpr std::string_view kDockerConfig = "/etc/docker/daemon.json";
constexpr std::string_view kNoDocker = "Docker is not installed";

bool has_docker(const Facts& f) {
  return f.installed("dockerd") || f.host().exists(kDockerConfig);
}

// A missing or broken file counts as an empty configuration; docker.config reports a broken one.
Document config_of(const Facts& f) {
  return parse_json(f.host().read(kDockerConfig).value_or("{}")).value_or({});
}

Finding judge_docker_config(const Facts& f) {
  if (!has_docker(f)) return skip(std::string(kNoDocker));
  const auto text = f.host().read(kDockerConfig);
  if (!text.ok()) return ok("Docker uses its defaults", {{std::string(kDockerConfig), "(absent)"}});
  const auto parsed = parse_json(*text);
  if (!parsed.ok()) {
    return fail("Docker's configuration is not JSON: Docker will not start",
                {{std::string(kDockerConfig), parsed.error().text()}});
  }
  return ok("Docker's configuration is readable", {{std::string(kDockerConfig), "JSON"}});
}

Finding judge_docker_runtime(const Facts& f) {
  if (!has_docker(f)) return skip(std::string(kNoDocker));
  if (f.gpu_functions().empty()) return skip("no GPU on the bus");
  const auto config = config_of(f);
  const bool runtime = config.at("runtimes").has("nvidia");
  const bool cdi = config.at("features").at("cdi").is_true();
  const std::vector<Evidence> read{
      {std::string(kDockerConfig),
       fmt::format("runtimes.nvidia {}, features.cdi {}", runtime ? "set" : "not set",
                   cdi ? "true" : "not set")}};
  if (runtime || cdi) return ok("Docker can give GPUs to containers", read);
  return warn("Docker has neither the nvidia runtime nor CDI", read);
}

Steps fix_docker_runtime(const Facts& f) {
  if (!f.installed("gantry")) return {};
  return {RunProgram{{"gantry", "runtime", "configure", "--runtime=docker"}},
          RunProgram{{"systemctl", "restart", "docker"}}};
}

Finding judge_docker_runtime_path(const Facts& f) {
  if (!has_docker(f)) return skip(std::string(kNoDocker));
  const auto path = config_of(f).at("runtimes").at("nvidia").at("path").text();
  if (path.empty()) return skip("Docker has no nvidia runtime: see docker.runtime");
  const bool there = path.starts_with('/') ? f.host().exists(path) : f.installed(path);
  const std::vector<Evidence> read{{std::string(kDockerConfig), "runtimes.nvidia.path " + path},
                                   {path, there ? "present" : "(absent)"}};
  if (!there) {
    return fail(fmt::format("Docker's nvidia runtime {} is not installed", path), read)
        .advise(install_toolkit_command(f, "docker"));
  }
  return ok("Docker's nvidia runtime is installed", read);
}

bool kubelet_uses_docker(const Facts& f) {
  return f.host().exists("/var/run/dockershim.sock") || f.host().exists("/run/cri-dockerd.sock");
}

Finding judge_default_runtime(const Facts& f) {
  if (!has_docker(f)) return skip(std::string(kNoDocker));
  const auto config = config_of(f);
  if (!config.at("runtimes").has("nvidia")) {
    return skip("Docker has no nvidia runtime: see docker.runtime");
  }
  const auto name = config.at("default-runtime").text();
  const std::vector<Evidence> read{
      {std::string(kDockerConfig), "default-runtime " + (name.empty() ? "runc (default)" : name)}};
  if (name == "nvidia") return ok("nvidia is Docker's default runtime", read);
  if (kubelet_uses_docker(f)) {
    return warn("containers of the kubelet do not use the nvidia runtime", read);
  }
  return info("containers get GPUs only with --gpus or --runtime=nvidia", read);
}

Steps fix_default_runtime(const Facts& f) {
  if (!f.installed("gantry")) return {};
  return {RunProgram{{"gantry", "runtime", "configure", "--runtime=docker", "--set-as-default"}},
          RunProgram{{"systemctl", "restart", "docker"}}};
}

Finding judge_snap(const Facts& f) {
  for (std::string_view path : {"/var/snap/docker", "/snap/docker"}) {
    if (!f.host().exists(path)) continue;
    return warn("Docker is installed as a snap, which cannot see the driver's files",
                {{std::string(path), "present"}});
  }
  if (!has_docker(f)) return skip(std::string(kNoDocker));
  return ok("Docker is not a snap", {{"/snap/docker", "(absent)"}});
}

constexpr Check kDockerChecks[] = {
    {.id = "docker.config",
     .reference = "C2",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "Docker's configuration is readable",
     .reads = "/etc/docker/daemon.json",
     .cause = "An edit removed a comma or a bracket.",
     .remedy = "python3 -m json.tool /etc/docker/daemon.json",
     .judge = judge_docker_config,
     .by_hand = "gantry does not guess the intended text of broken lines",
     .closed = kDockerConfig},
    {.id = "docker.runtime",
     .reference = "C2",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "Docker can give GPUs to containers",
     .reads = "/etc/docker/daemon.json",
     .cause =
         "The toolkit was not registered: docker says \"could not select device driver \"\" with "
         "capabilities: [[gpu]]\".",
     .remedy = "sudo gantry runtime configure --runtime=docker && sudo systemctl restart docker",
     .judge = judge_docker_runtime,
     .fix = fix_docker_runtime,
     .by_hand = "gantry is not installed there, so it cannot write that configuration",
     .closed = kDockerConfig},
    {.id = "docker.runtime-path",
     .reference = "C2",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "Docker's nvidia runtime is installed",
     .reads = "/etc/docker/daemon.json, the path in it",
     .cause = "The toolkit was removed or moved; every container with that runtime fails to start.",
     .remedy = "install the package gantry, then: sudo gantry runtime configure --runtime=docker",
     .judge = judge_docker_runtime_path,
     .fix = install_toolkit,
     .by_hand = "no known package manager is installed here",
     .closed = kDockerConfig},
    {.id = "docker.default-runtime",
     .reference = "C2",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "nvidia is Docker's default runtime",
     .reads = "/etc/docker/daemon.json",
     .cause =
         "The default runtime is runc. Device plugins that hand out GPUs by environment variable "
         "need nvidia as the default; --gpus does not.",
     .remedy = "sudo gantry runtime configure --runtime=docker --set-as-default && sudo systemctl "
               "restart docker",
     .judge = judge_default_runtime,
     .fix = fix_default_runtime,
     .by_hand = "gantry is not installed there, so it cannot write that configuration",
     .closed = kDockerConfig},
    {.id = "docker.snap",
     .reference = "C10",
     .area = Area::Runtime,
     .title = "Docker is not a snap",
     .reads = "/snap/docker, /var/snap/docker",
     .cause = "The snap's confinement hides the driver's libraries and the toolkit from Docker.",
     .remedy = "sudo snap remove docker && sudo apt install docker.io",
     .judge = judge_snap},
};

}  // namespace

std::span<const Check> docker_checks() {
  return kDockerChecks;
}

}  // namespace gantry::doctor
