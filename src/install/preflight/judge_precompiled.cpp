// SPDX-License-Identifier: Apache-2.0
// Modules that were built elsewhere against this kernel and this driver.
#include "base/core/printable.hpp"
#include "install/preflight/judge_internal.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::preflight {
namespace {

void judge_module(Judgement& j, const std::string& path, const kernel_module::ModuleFile& module) {
  const auto release = kernel_module::kernel_release(module);
  if (release != j.facts.build_release) {
    j.block("precompiled-other-kernel",
            {.sentence = fmt::format("{} was built for kernel {}, not for {}", printable(path),
                                     printable(release), j.facts.build_release),
             .cause = "The kernel would refuse it: \"Invalid module format\".",
             .remedy = fmt::format("give modules for {}", j.facts.build_release)});
    return;
  }
  const auto version = version_of(j.request);
  if (!module.version.empty() && module.version != version) {
    j.block("precompiled-other-driver",
            {.sentence = fmt::format("{} is of driver {}, not of {}", printable(path),
                                     printable(module.version), version),
             .cause = "The libraries of a driver work with its own modules only.",
             .remedy = fmt::format("give modules of {}, or --version {}", version,
                                   printable(module.version))});
    return;
  }
  if (const auto reason = kernel_module::reason_refused(module, j.facts.trust)) {
    j.block("unsigned-module-refused",
            {.sentence = *reason,
             .cause = "\"Key was rejected by service\" or \"Required key not available\".",
             .remedy = kernel_module::remedy_refused(module, j.facts.trust)});
  }
}

// One sentence for all: most often it is the list that is missing.
void judge_digests(Judgement& j) {
  if (j.request.trust_modules_without_digest) return;
  for (const auto& fact : j.facts.precompiled) {
    if (!fact.digest_fault) continue;
    const bool no_list = fact.digest_fault->code() == Errc::NotFound;
    j.block(no_list ? "precompiled-without-digest" : "precompiled-other-digest",
            {.sentence = fact.digest_fault->cause(),
             .cause = "The modules run with all rights of the kernel.",
             .remedy = fact.digest_fault->remedy()});
    return;
  }
}

}  // namespace

void judge_precompiled(Judgement& judgement) {
  if (judgement.request.source != Source::Precompiled) return;
  const auto& modules = judgement.facts.precompiled;
  const bool has_nvidia =
      std::any_of(modules.begin(), modules.end(),
                  [](const PrecompiledFact& fact) { return fact.path.ends_with("/nvidia.ko"); });
  if (!has_nvidia) {
    const auto& directory = judgement.request.modules;
    judgement.block(
        "precompiled-missing",
        {.sentence = directory.empty()
                         ? std::string("no directory with modules was given")
                         : fmt::format("there is no nvidia.ko for kernel {} in {}",
                                       judgement.facts.build_release, printable(directory)),
         .remedy = fmt::format("--modules DIRECTORY, with DIRECTORY/{}/nvidia.ko",
                               judgement.facts.build_release)});
  }
  judge_digests(judgement);
  for (const auto& [path, module, fault] : modules) {
    if (module.ok()) {
      judge_module(judgement, path, *module);
      continue;
    }
    judgement.block(
        "precompiled-damaged",
        {.sentence = module.error().cause(),
         .remedy = module.error().remedy().empty() ? "copy it again" : module.error().remedy()});
  }
}

}  // namespace gantry::preflight
