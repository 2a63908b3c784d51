// SPDX-License-Identifier: Apache-2.0
// CRI-O: its configuration, and the programs of the nvidia runtime and of the hook.
#include "base/core/text.hpp"
#include "container/engines/crio_config.hpp"
#include "doctor/checks/check_tables_internal.hpp"
#include "doctor/engine/document.hpp"
#include "doctor/engine/fix_steps.hpp"

#include <fmt/format.h>

#include <optional>

namespace gantry::doctor {
namespace {

constexpr std::string_view kRuntime = "nvidia";
constexpr std::size_t kMaxHooks = 64;
constexpr std::string_view kNotInstalled = "CRI-O is not installed";

bool has_crio(const Facts& f) {
  return f.installed("crio") || f.host().exists("/etc/crio");
}

// A hook that NVIDIA's toolkit or ours put into hooks.d.
struct NvidiaHook {
  std::string file;
  std::string program;
};

std::optional<NvidiaHook> find_hook(const Facts& f, const std::vector<std::string>& directories) {
  std::size_t seen = 0;
  for (const auto& directory : directories) {
    const auto names = f.host().list(directory);
    if (!names.ok()) continue;
    for (const auto& name : *names) {
      if (!name.ends_with(".json") || ++seen > kMaxHooks) continue;
      auto path = join_path(directory, name);
      const auto parsed = parse_json(f.host().read(path).value_or("")).value_or({});
      const auto program = parsed.at("hook").at("path").text();
      const auto called = base_name(program);
      if (called == "nvidia-container-runtime-hook" || called == "nvidia-container-toolkit")
        return NvidiaHook{std::move(path), program};
    }
  }
  return std::nullopt;
}

Finding judge_config(const Facts& f) {
  if (!has_crio(f)) return skip(std::string(kNotInstalled));
  const auto config = engines::CrioConfig::read(f.host(), {});
  const std::string main(engines::kCrioConfig);
  if (config.ok())
    return ok("CRI-O's configuration is readable", {{main, "with every file of crio.conf.d"}});
  if (config.error().code() == Errc::Denied) return skip_needs_root(main);
  return fail("CRI-O will not start: it cannot read its configuration",
              {{main, config.error().text()}});
}

Finding judge_runtime(const Facts& f) {
  if (!has_crio(f)) return skip(std::string(kNotInstalled));
  if (f.gpu_functions().empty()) return skip("no GPU on the bus");
  const auto config = engines::CrioConfig::read(f.host(), {});
  if (!config.ok()) return skip("CRI-O's configuration is not readable: see crio.config");
  if (const auto* file = config->file_with_runtime(kRuntime); file != nullptr)
    return ok("CRI-O has the nvidia runtime", {{file->path, "runtimes.nvidia"}});
  const auto directories = config->hook_directories();
  if (const auto hook = find_hook(f, directories))
    return ok("CRI-O runs the hook", {{hook->file, hook->program}});
  for (const std::string_view spec : {"/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"}) {
    if (f.host().exists(spec))
      return ok("CRI-O can give GPUs to containers", {{std::string(spec), "present"}});
  }
  return warn("CRI-O has neither the nvidia runtime, nor the hook, nor a CDI specification",
              {{std::string(engines::kCrioConfig), "no runtimes.nvidia"},
               {"hooks_dir", fmt::format("{}", fmt::join(directories, ", "))}});
}

Finding judge_runtime_program(const Facts& f, const engines::CrioConfig& config,
                              const engines::CrioFile& file) {
  const auto program = config.runtime_value(kRuntime, "runtime_path");
  const bool there = program.starts_with('/') && f.host().exists(program);
  const std::vector<Evidence> read{{file.path, fmt::format("runtime_path = \"{}\"", program)},
                                   {program, there ? "present" : "(absent)"}};
  if (there) return ok("CRI-O's nvidia runtime is installed", read);
  if (config.default_runtime() == kRuntime)
    return fail(fmt::format("CRI-O will not start: its default runtime {} is missing", program),
                read)
        .advise(install_toolkit_command(f, "crio"));
  return fail(fmt::format("CRI-O ignores its nvidia runtime: {} is missing", program), read)
      .advise(install_toolkit_command(f, "crio"));
}

Finding judge_programs(const Facts& f) {
  if (!has_crio(f)) return skip(std::string(kNotInstalled));
  const auto config = engines::CrioConfig::read(f.host(), {});
  if (!config.ok()) return skip("CRI-O's configuration is not readable: see crio.config");
  const auto* runtime = config->file_with_runtime(kRuntime);
  if (runtime != nullptr) {
    auto finding = judge_runtime_program(f, *config, *runtime);
    if (finding.verdict != Verdict::Ok) return finding;
  }
  const auto hook = find_hook(f, config->hook_directories());
  if (hook && !f.host().exists(hook->program)) {
    return fail(fmt::format("CRI-O ignores the hook: {} is missing", hook->program),
                {{hook->file, "hook.path"}, {hook->program, "(absent)"}})
        .advise(install_toolkit_command(f, "crio"));
  }
  if (runtime == nullptr && !hook) return skip("CRI-O has neither the nvidia runtime nor the hook");
  return ok("CRI-O's nvidia runtime and hook have their programs",
            {{runtime != nullptr ? runtime->path : hook->file, "present"}});
}

Steps fix_runtime(const Facts& f) {
  if (!f.installed("gantry")) return {};
  return {RunProgram{{"gantry", "runtime", "configure", "--runtime=crio"}},
          RunProgram{{"systemctl", "restart", "crio"}}};
}

constexpr Check kCrioChecks[] = {
    {.id = "crio.config",
     .reference = "K5",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "CRI-O's configuration is readable",
     .reads = "/etc/crio/crio.conf, every file below /etc/crio/crio.conf.d",
     .cause =
         "CRI-O reads every file of crio.conf.d, whatever its name: also a copy that an editor "
         "or a crash left there.",
     .remedy = "sudo crio config >/dev/null  # names the file; correct or remove it",
     .judge = judge_config,
     .by_hand = "gantry does not guess the intended text of broken lines"},
    {.id = "crio.runtime",
     .reference = "K5",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "CRI-O can give GPUs to containers",
     .reads = "/etc/crio/crio.conf{,.d}, the directories of hooks_dir, /etc/cdi, /var/run/cdi",
     .cause = "The toolkit was not registered.",
     .remedy = "sudo gantry runtime configure --runtime=crio && sudo systemctl restart crio",
     .judge = judge_runtime,
     .fix = fix_runtime,
     .by_hand = "gantry is not installed there, so it cannot write that configuration"},
    {.id = "crio.programs",
     .reference = "K5",
     .area = Area::Runtime,
     .fix_class = FixClass::OnRequest,
     .title = "the programs of CRI-O's nvidia runtime and hook are installed",
     .reads = "/etc/crio/crio.conf{,.d}, runtime_path; hooks_dir, hook.path",
     .cause =
         "The toolkit was removed or moved. CRI-O says so in its log only, and runs containers "
         "without the hook.",
     .remedy = "install the package gantry, then: sudo gantry runtime configure --runtime=crio",
     .judge = judge_programs,
     .fix = install_toolkit,
     .by_hand = "no known package manager is installed here"},
};

}  // namespace

std::span<const Check> crio_checks() {
  return kCrioChecks;
}

}  // namespace gantry::doctor
