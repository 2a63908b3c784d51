// SPDX-License-Identifier: Apache-2.0
// Whether modules can be built for the kernel, and whether it will take them.
#include "base/core/text.hpp"
#include "install/preflight/judge_internal.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace gantry::preflight {
namespace {

// How to get a compiler: in a pod it comes from the image, else from the distribution.
std::string package_command(const MachineFacts& facts, std::string_view deb, std::string_view rpm) {
  const auto& os = facts.os;
  if (facts.compiler.from_image)
    return fmt::format("add {} to the image of the installer, or use --source precompiled", deb);
  if (driver_package::is_like(os, "debian") || driver_package::is_like(os, "ubuntu"))
    return fmt::format("sudo apt-get install {}", deb);
  if (driver_package::is_like(os, "suse") || driver_package::is_like(os, "sles") ||
      driver_package::is_like(os, "opensuse"))
    return fmt::format("sudo zypper install {}", rpm);
  if (driver_package::is_like(os, "fedora") || driver_package::is_like(os, "rhel") ||
      driver_package::is_like(os, "amzn"))
    return fmt::format("sudo dnf install {}", rpm);
  return fmt::format("install {}", deb);
}

std::string_view no_compiler(const MachineFacts& facts) {
  return facts.compiler.from_image
             ? "neither this machine nor the image of the installer has a C compiler"
             : "there is no C compiler";
}

void judge_headers(Judgement& j) {
  const auto& error = j.facts.headers_error;
  if (!error) return;
  const bool missing = error->code() == Errc::NotFound;
  j.block(missing ? "headers-missing" : "headers-mismatch",
          {.sentence = error->cause(),
           .cause = "The driver's modules are compiled against the headers of this very kernel.",
           .remedy = error->remedy()});
}

void judge_gcc(Judgement& j, int wanted) {
  const auto& compiler = j.facts.compiler;
  const bool has_wanted =
      std::find(compiler.gcc.begin(), compiler.gcc.end(), wanted) != compiler.gcc.end();
  const auto name = fmt::format("gcc-{}", wanted);
  const auto install = package_command(j.facts, name, name);
  if (compiler.gcc.empty()) {
    j.block("compiler-missing",
            {.sentence = fmt::format("{}; kernel {} was built by gcc {}", no_compiler(j.facts),
                                     j.facts.kernel.release, wanted),
             .remedy = package_command(j.facts, "gcc make", "gcc make")});
    return;
  }
  if (compiler.default_gcc == wanted) return;
  if (has_wanted) {
    j.note("compiler-chosen", {.sentence = fmt::format(
                                   "the modules will be compiled by {}, as the kernel was, and not "
                                   "by the default compiler",
                                   name)});
    return;
  }
  j.block("compiler-mismatch",
          {.sentence = fmt::format("kernel {} was built by gcc {}, and this machine has gcc {}",
                                   j.facts.kernel.release, wanted, fmt::join(compiler.gcc, ", ")),
           .cause = "A module of another major version of the compiler may not build, or may be "
                    "refused by the kernel.",
           .remedy = install});
}

// Flags of clang are in the kernel's makefiles, and gcc does not know them.
void judge_clang(Judgement& j, const kernel_module::RunningKernel& kernel) {
  const auto& compiler = j.facts.compiler;
  if (choose_clang(compiler, kernel)) return;
  const int wanted = *kernel.clang_major;
  const bool has_clang =
      compiler.has_clang ||
      std::find(compiler.clang.begin(), compiler.clang.end(), wanted) != compiler.clang.end();
  const auto deb = kernel.uses_lld ? fmt::format("clang-{0} lld-{0} llvm-{0}", wanted)
                                   : fmt::format("clang-{}", wanted);
  j.block(has_clang || compiler.clang.empty() ? "compiler-missing" : "compiler-mismatch",
          {.sentence = fmt::format("kernel {} was built by clang {}{}, and {} is not installed",
                                   j.facts.build_release, wanted,
                                   kernel.uses_lld ? " and its linker ld.lld" : "",
                                   has_clang ? "this linker" : "this compiler"),
           .cause = "Modules for it are built by clang, too: gcc does not know its flags.",
           .remedy = package_command(j.facts, deb, kernel.uses_lld ? "clang lld llvm" : "clang")});
}

void judge_tools(Judgement& j) {
  const auto& compiler = j.facts.compiler;
  const auto kernel = kernel_of_build(j.facts);
  if (kernel.gcc_major) {
    judge_gcc(j, *kernel.gcc_major);
  } else if (kernel.clang_major) {
    judge_clang(j, kernel);
  } else if (compiler.gcc.empty() && !compiler.has_clang) {
    j.block("compiler-missing", {.sentence = std::string(no_compiler(j.facts)),
                                 .remedy = package_command(j.facts, "gcc make", "gcc make")});
  }
  if (!compiler.has_make) {
    j.block("make-missing", {.sentence = "make is not installed, so modules cannot be built",
                             .remedy = package_command(j.facts, "make", "make")});
  }
  const bool has_own_linker = kernel.clang_major && kernel.uses_lld;  // judged with the compiler
  if (!compiler.has_linker && !has_own_linker) {
    j.block("linker-missing",
            {.sentence = "the linker, ld, is not installed, so modules cannot be built",
             .remedy = package_command(j.facts, "binutils", "binutils")});
  }
}

// "6.1.0-21-amd64" -> 6, 1
std::pair<std::uint64_t, std::uint64_t> parse_release(std::string_view release) {
  const auto parts = split(release, '.');
  if (parts.size() < 2) return {};
  const auto minor = parts[1].substr(0, parts[1].find_first_not_of("0123456789"));
  return {parse_u64(parts[0]).value_or(0), parse_u64(minor).value_or(0)};
}

// The kernel's interfaces change: a branch compiles up to the kernels of its own time. The two rows
// were not verified against every release in between.
void judge_age(Judgement& j) {
  struct LastKernel {
    unsigned branch;
    std::uint64_t major;
    std::uint64_t minor;
  };
  constexpr std::array kLastKernels{LastKernel{430, 5, 2}, LastKernel{460, 5, 11}};
  if (!j.version || !j.request.patch.empty()) return;
  const auto& release = j.facts.build_release;
  const auto [major, minor] = parse_release(release);
  for (const auto& row : kLastKernels) {
    if (j.version->branch > row.branch) continue;
    const bool newer = major > row.major || (major == row.major && minor > row.minor);
    if (newer) {
      j.warn("kernel-newer-than-driver",
             {.sentence =
                  fmt::format("driver {} is older than kernel {}", version_of(j.request), release),
              .cause = fmt::format("As NVIDIA published it, this branch is known to compile up to "
                                   "kernel {}.{}.",
                                   row.major, row.minor),
              .remedy = "give a patch for this kernel with --patch FILE, or use a newer branch"});
    }
    return;
  }
}

void judge_trust(Judgement& j) {
  if (!kernel_module::refuses_unsigned(j.facts.trust)) return;
  const kernel_module::ModuleFile module{.name = "nvidia"};
  const auto reason = kernel_module::reason_refused(module, j.facts.trust)
                          .value_or("the kernel accepts signed modules only");
  if (j.request.source == Source::Precompiled) return;      // judged by the modules themselves
  if (j.request.source == Source::NvidiaContainer) return;  // it may have signed ones
  if (!j.request.sign_key.empty()) {
    j.note(
        "modules-will-be-signed",
        {.sentence = "the kernel accepts signed modules only; they will be signed with the given "
                     "key",
         .cause = "The kernel must trust its certificate."});
    return;
  }
  const Words words{.sentence = reason,
                    .cause =
                        "A module without a trusted signature is refused: \"Key was rejected "
                        "by service\" or \"Required key not available\".",
                    .remedy = kernel_module::remedy_refused(module, j.facts.trust)};
  // Some distributions sign their packages, others build them here.
  j.add(j.request.source == Source::Packages ? Severity::Warns : Severity::Blocks,
        "unsigned-module-refused", words);
}

void judge_next_boot(Judgement& j) {
  if (!j.facts.blacklists.empty()) {
    j.warn("modprobe-forbids-nvidia",
           {.sentence = fmt::format("modprobe is told not to load nvidia: {}",
                                    fmt::join(j.facts.blacklists, ", ")),
            .cause = "Gantry loads the module all the same; nvidia-modprobe and udev will not.",
            .remedy = "comment the line out, then sudo update-initramfs -u"});
  }
  if (j.facts.newer_kernels.empty()) return;
  j.note("newer-kernel-installed",
         {.sentence = fmt::format("a newer kernel is installed: {}",
                                  fmt::join(j.facts.newer_kernels, ", ")),
          .cause = "The modules are built for the running one; after the reboot they have to be "
                   "built again."});
}

}  // namespace

void judge_kernel(Judgement& judgement) {
  const auto& facts = judgement.facts;
  if (facts.modules_disabled && judgement.loads()) {
    judgement.block("modules-disabled",
                    {.sentence = "this kernel loads no modules any more, or never did",
                     .cause = "kernel.modules_disabled is 1, or the kernel was built without "
                              "loadable modules.",
                     .remedy = "sudo reboot  # and look for kernel.modules_disabled=1 in "
                               "/etc/sysctl.d"});
  }
  if (judgement.request.builds_modules()) {
    if (facts.build_release.empty()) {
      judgement.block("kernel-unknown",
                      {.sentence = "the release of the running kernel cannot be read",
                       .remedy = "is /proc mounted below the root of the host?"});
    }
    judge_headers(judgement);
    judge_tools(judgement);
    judge_age(judgement);
  }
  judge_trust(judgement);
  judge_next_boot(judgement);
}

}  // namespace gantry::preflight
