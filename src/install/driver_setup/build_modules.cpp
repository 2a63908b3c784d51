// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/build_modules.hpp"

#include "base/core/text.hpp"
#include "base/sys/shell_command.hpp"
#include "install/driver_package/module_checksums.hpp"
#include "install/driver_setup/place_files.hpp"
#include "install/kernel_module/module_file.hpp"
#include "install/kernel_module/module_order.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gantry::driver_setup {
namespace {

// The proprietary modules take a minute, the open ones several on one core.
constexpr std::chrono::seconds kBuildDeadline{3600};
constexpr std::chrono::seconds kToolDeadline{300};
constexpr std::size_t kMostModules = 32;
// Nothing here draws on a display, and RDMA's headers are rarely there.
constexpr const char* kLeftOutModules = "NV_EXCLUDE_KERNEL_MODULES=nvidia-drm nvidia-peermem";

ProgramCall tool(std::vector<CommandWord> words, std::chrono::seconds deadline = kToolDeadline) {
  ProgramCall call{.words = std::move(words), .place = ProgramPlace::Tools, .deadline = deadline};
  call.needs = {call.words.front().text};
  return call;
}

std::vector<std::string> module_files(const sys::Host& host, const std::string& directory) {
  std::vector<std::string> files;
  const auto names = host.list(directory);
  if (!names.ok()) return files;
  for (const auto& name : *names) {
    const auto stem = std::string_view(name).substr(0, name.find('.'));
    if (name.ends_with(".ko") && kernel_module::is_driver_module(stem) &&
        files.size() < kMostModules)
      files.push_back(name);
  }
  return files;
}

Error no_modules(const std::string& shown) {
  return {Errc::NotFound, fmt::format("{} has no modules of the driver (nvidia.ko)", shown)};
}

Status check_files(const sys::Host& host, const std::string& directory,
                   const std::vector<std::string>& names, const std::string& kernel,
                   const InstallRecord& target, const kernel_module::ModuleTrust& trust) {
  if (std::find(names.begin(), names.end(), "nvidia.ko") == names.end())
    return no_modules(host.outside(directory));
  for (const auto& name : names) {
    const auto path = fmt::format("{}/{}", directory, name);
    GANTRY_TRY(const auto module, kernel_module::read_module(host, path).in(host.outside(path)));
    GANTRY_CHECK(check_module(module, kernel, target, trust));
  }
  return {};
}

Status place_modules(const sys::Host& host, const std::string& from,
                     const std::vector<std::string>& names, const std::string& destination,
                     InstallEffects& effects) {
  std::vector<PlacedFile> files;
  for (const auto& name : names) files.push_back({.path = name, .from = name, .mode = 0644});
  const auto partial =
      fmt::format("{}/.{}.partial", parent_directory(destination), base_name(destination));
  return place_files(host, files, from, partial, destination, effects);
}

// Debug information makes nvidia.ko ten times as large. Before the signature, which covers all.
Status strip_modules(const std::string& directory, const std::vector<std::string>& names,
                     InstallEffects& effects) {
  std::vector<CommandWord> words{{.text = "strip"}, {.text = "--strip-debug"}};
  for (const auto& name : names) words.push_back({.path = fmt::format("{}/{}", directory, name)});
  const auto stripped = effects.run(tool(std::move(words)));
  static_cast<void>(stripped.ok());  // without strip they are only larger
  return {};
}

Status sign_modules(const sys::Host& host, const ModuleBuild& build,
                    const std::vector<std::string>& names, InstallEffects& effects) {
  if (build.key.key.empty()) return {};
  std::vector<std::string> paths;
  for (const auto& name : names) paths.push_back(fmt::format("{}/{}", build.directory, name));
  GANTRY_TRY(const auto plan,
             driver_package::plan_sign(host, build.headers.directory, build.key, paths));
  for (const auto& argv : plan.commands) {
    std::vector<CommandWord> words;
    for (const auto& word : argv) {
      const bool is_path = word.starts_with('/');
      words.push_back({.text = is_path ? "" : word, .path = is_path ? word : ""});
    }
    auto call = tool(std::move(words));
    call.needs.clear();
    GANTRY_CHECK(effects.run(call).in("signing the modules"));
  }
  return {};
}

// Debian's headers name each other by absolute paths: the makefile of one kernel includes that of
// all its flavours, and its scripts are a link to /usr/lib/linux-kbuild-6.1.
std::vector<std::string> places_of_headers(const sys::Host& host) {
  std::vector<std::string> places{"/usr/src"};
  for (const auto& name : host.list("/usr/lib").value_or({})) {
    if (name.starts_with("linux-kbuild-")) places.push_back("/usr/lib/" + name);
  }
  return places;
}

Status build_in(const sys::Host& host, const ModuleBuild& build, const InstallRecord& target,
                const kernel_module::ModuleTrust& trust, InstallEffects& effects) {
  GANTRY_CHECK(effects.make_directory(std::string(parent_directory(build.directory))));
  GANTRY_CHECK(effects.run(
      tool({{.text = "cp"}, {.text = "-a"}, {.path = build.source}, {.path = build.directory}})));
  auto call = make_command(build);
  call.shows = places_of_headers(host);
  auto built = effects.run(call);
  if (!built.ok()) {
    return std::move(built)
        .error()
        .in(fmt::format("building the modules for {}", build.kernel))
        .advise("if this kernel is newer than the driver, use a newer driver or --patch FILE");
  }
  const auto names = module_files(host, build.directory);
  GANTRY_CHECK(strip_modules(build.directory, names, effects));
  GANTRY_CHECK(sign_modules(host, build, names, effects));
  GANTRY_CHECK(check_files(host, build.directory, names, build.kernel, target, trust));
  return place_modules(host, build.directory, names, build.destination, effects);
}

// Of the copies: those that were looked at before may have been replaced since.
Status check_digests(const sys::Host& host, const BuiltModules& modules, const std::string& from,
                     const std::vector<std::string>& names) {
  if (modules.trust_without_digest) return {};
  GANTRY_TRY(const auto list, driver_package::read_module_checksums(host, modules.directory, from,
                                                                    modules.list_sha256));
  for (const auto& name : names)
    GANTRY_CHECK(driver_package::check_module_digest(host, list, name,
                                                     fmt::format("{}/{}", modules.staging, name)));
  return {};
}

// "SYSSRC=/usr/src/..." of the machine, or of the image.
CommandWord headers_word(const ModuleBuild& build, const char* name, const std::string& path) {
  if (build.headers.in_image) return {.text = name + path};
  return {.text = name, .path = path};
}

bool is_clang(std::string_view compiler) {
  return compiler.starts_with("clang");
}

// "-17" of "clang-17".
std::string suffix_of(std::string_view compiler) {
  const auto dash = compiler.find('-');
  return dash == std::string_view::npos ? "" : std::string(compiler.substr(dash));
}

// LLVM is kbuild's word for clang with all tools around it. The tests in NVIDIA's makefiles know
// only CC and LD, and so do kernels before 5.18 when the tools have a version behind their names.
void add_compiler(const ModuleBuild& build, std::vector<CommandWord>& words) {
  if (build.compiler.empty()) return;
  const auto suffix = suffix_of(build.compiler);
  const bool all_tools = is_clang(build.compiler) && build.uses_lld;
  if (all_tools) words.push_back({.text = "LLVM=" + (suffix.empty() ? "1" : suffix)});
  words.push_back({.text = "CC=" + build.compiler});
  if (all_tools) words.push_back({.text = "LD=ld.lld" + suffix});
}

}  // namespace

ProgramCall make_command(const ModuleBuild& build) {
  std::vector<CommandWord> words{{.text = "make"},
                                 {.text = "-C"},
                                 {.path = build.directory},
                                 {.text = fmt::format("-j{}", std::max(build.jobs, 1U))},
                                 {.text = fmt::format("KERNEL_UNAME={}", build.kernel)},
                                 headers_word(build, "SYSSRC=", build.headers.source),
                                 headers_word(build, "SYSOUT=", build.headers.directory),
                                 {.text = kLeftOutModules}};
  add_compiler(build, words);
  words.push_back({.text = "modules"});
  auto call = tool(std::move(words), kBuildDeadline);
  if (build.headers.in_image) call.place = ProgramPlace::Image;
  const bool has_lld = is_clang(build.compiler) && build.uses_lld;
  call.needs = {"make", build.compiler.empty() ? "gcc" : build.compiler,
                has_lld ? "ld.lld" + suffix_of(build.compiler) : "ld"};
  return call;
}

std::string choose_compiler(const preflight::CompilerFact& compiler,
                            const kernel_module::RunningKernel& kernel) {
  if (kernel.clang_major) {
    const auto tools = preflight::choose_clang(compiler, kernel);
    return "clang" + (tools ? tools->suffix : "");
  }
  if (!kernel.gcc_major || compiler.default_gcc == kernel.gcc_major) return "";
  const auto& majors = compiler.gcc;
  const bool found = std::find(majors.begin(), majors.end(), *kernel.gcc_major) != majors.end();
  return found ? fmt::format("gcc-{}", *kernel.gcc_major) : "";
}

Result<std::string> patch_directory(std::string_view patch, std::string_view unpacked,
                                    std::string_view source) {
  for (const auto line : lines(patch)) {
    if (!line.starts_with("+++ ")) continue;
    const auto name = line.substr(4, line.find('\t') - 4);
    const auto below = name.substr(std::min(name.find('/') + 1, name.size()));
    const bool of_archive = below.starts_with("kernel/") || below.starts_with("kernel-open/");
    return of_archive ? std::string(unpacked) : fmt::format("{}/{}", unpacked, source);
  }
  return Error(Errc::Invalid, "the file of --patch has no line that begins with `+++ `")
      .advise("make it with `diff -ru` or `git diff`");
}

Status check_module(const kernel_module::ModuleFile& module, std::string_view kernel,
                    const InstallRecord& target, const kernel_module::ModuleTrust& trust) {
  const auto release = kernel_module::kernel_release(module);
  if (release != kernel) {
    return Error(Errc::Invalid, fmt::format("the module {} was built for the kernel {}, not for {}",
                                            module.name, release, kernel))
        .advise(fmt::format("build it against the headers of {}", kernel));
  }
  if (!module.version.empty() && module.version != target.version) {
    return Error(Errc::Invalid, fmt::format("the module {} is of the driver {}, not of {}",
                                            module.name, module.version, target.version));
  }
  if (const auto reason = kernel_module::reason_refused(module, trust)) {
    return Error(Errc::Denied, fmt::format("the kernel will not load {}: {}", module.name, *reason))
        .advise(kernel_module::remedy_refused(module, trust));
  }
  return {};
}

Status build_modules(const sys::Host& host, const ModuleBuild& build, const InstallRecord& target,
                     const kernel_module::ModuleTrust& trust, InstallEffects& effects) {
  GANTRY_CHECK(effects.remove_tree(build.directory));  // of a build that was killed
  auto built = build_in(host, build, target, trust, effects);
  const auto removed = effects.remove_tree(build.directory);
  if (!built.ok()) return built;
  return removed;
}

Status copy_modules(const sys::Host& host, const BuiltModules& modules, const InstallRecord& target,
                    const kernel_module::ModuleTrust& trust, InstallEffects& effects) {
  auto from = fmt::format("{}/{}", modules.directory, modules.kernel);
  if (module_files(host, from).empty()) from = modules.directory;
  const auto names = module_files(host, from);
  if (names.empty()) return no_modules(host.outside(from));
  GANTRY_CHECK(effects.remove_tree(modules.staging));
  GANTRY_CHECK(effects.make_directory(modules.staging));
  for (const auto& name : names)
    GANTRY_CHECK(effects.copy(fmt::format("{}/{}", from, name),
                              fmt::format("{}/{}", modules.staging, name), 0600));
  GANTRY_CHECK(check_digests(host, modules, from, names));
  GANTRY_CHECK(check_files(host, modules.staging, names, modules.kernel, target, trust));
  GANTRY_CHECK(place_modules(host, modules.staging, names, modules.destination, effects));
  return effects.remove_tree(modules.staging);
}

}  // namespace gantry::driver_setup
