// SPDX-License-Identifier: Apache-2.0
// What the kernel means when it does not load or unload a module.
#include "base/core/text.hpp"
#include "install/kernel_module/module_loader.hpp"
#include "install/kernel_module/module_order.hpp"
#include "install/kernel_module/running_kernel.hpp"

#include <elf.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>

namespace gantry::kernel_module {
namespace {

std::string failed_module(const FailedLoad& failed) {
  if (failed.file && !failed.file->name.empty()) return failed.file->name;
  const auto name = base_name(failed.path);
  return module_name(name.substr(0, name.find('.')));
}

// The last line of the log with one of these texts; "" if there is none.
std::string log_line(const FailedLoad& failed, std::initializer_list<std::string_view> texts) {
  for (auto line = failed.log.rbegin(); line != failed.log.rend(); ++line)
    for (const auto text : texts)
      if (contains(*line, text)) return *line;
  return "";
}

std::string with_log(std::string cause, const std::string& line) {
  return line.empty() ? cause : fmt::format("{} (kernel log: {})", cause, line);
}

std::string between(std::string_view text, std::string_view before, std::string_view after) {
  const auto begin = text.find(before);
  if (begin == std::string_view::npos) return "";
  const auto rest = text.substr(begin + before.size());
  return std::string(rest.substr(0, rest.find(after)));
}

std::string machine_name(std::uint16_t machine) {
  if (machine == EM_X86_64) return "x86_64";
  if (machine == EM_AARCH64) return "aarch64";
  return fmt::format("machine {}", machine);
}

// The kernel also verifies signatures that it does not ask for: one that does not fit is an error.
Error wrong_signature(const ModuleFile& file, const FailedLoad& failed) {
  const auto by = file.signer.empty() ? "" : fmt::format(" by \"{}\"", file.signer);
  std::string cause = fmt::format(
      "the kernel rejected the signature of the module {}{}: the file was changed after it was "
      "signed",
      file.name, by);
  std::string remedy =
      "install the file again: a module must not be stripped or changed after it was signed";
  if (refuses_unsigned(failed.trust)) {
    cause += ", or the kernel does not have the key";
    remedy += "; or " + remedy_refused(file, failed.trust);
  }
  return Error(Errc::Denied, std::move(cause)).advise(remedy);
}

Error refused_signature(const FailedLoad& failed) {
  // "Loading of module with unavailable key is rejected"
  const auto line = log_line(failed, {"is rejected", "not signed with"});
  const auto file = failed.file.value_or(ModuleFile{.name = failed_module(failed)});
  const auto reason = reason_refused(file, failed.trust);
  if (!reason && file.is_signed && line.empty()) return wrong_signature(file, failed);
  const auto fault = file.is_signed ? fmt::format("it has no key for the module {}", file.name)
                                    : fmt::format("the module {} is not signed", file.name);
  std::string cause =
      reason.value_or(fmt::format("the kernel accepts signed modules only, and {}", fault));
  return Error(Errc::Denied, with_log(std::move(cause), line))
      .advise(remedy_refused(file, failed.trust));
}

Error not_permitted(const FailedLoad& failed) {
  if (failed.loading_disabled)
    return Error(Errc::Denied,
                 fmt::format("the module {} cannot be loaded: kernel.modules_disabled "
                             "is 1 until the next boot",
                             failed_module(failed)))
        .advise("remove kernel.modules_disabled from /etc/sysctl.d, then reboot");
  if (failed.file && reason_refused(*failed.file, failed.trust)) return refused_signature(failed);
  return Error(Errc::Denied,
               fmt::format("the module {} cannot be loaded: this process may not load modules",
                           failed_module(failed)))
      .advise(
          "run it as root; in a pod, the container needs the capability SYS_MODULE and a seccomp "
          "profile that allows finit_module");
}

Error wrong_kernel(const FailedLoad& failed) {
  const auto line = log_line(
      failed, {"version magic", "disagrees about version", "this_module section", "Exec format"});
  const auto name = failed_module(failed);
  std::string theirs = failed.kernel_vermagic;
  if (theirs.empty()) theirs = between(line, "should be '", "'");
  if (!failed.file || failed.file->vermagic.empty())
    return Error(Errc::Invalid,
                 with_log(fmt::format("the kernel does not accept {} as a module", failed.path),
                          line))
        .advise("check the file: it may be damaged or compressed");
  const auto& magic = failed.file->vermagic;
  const auto release = kernel_release(*failed.file);
  std::string cause;
  if (release != failed.release) {
    cause = fmt::format("the module {} was built for kernel {}, and {} is running", name, release,
                        failed.release);
  } else if (!theirs.empty() && trim(theirs) != trim(magic)) {
    cause = fmt::format("the module {} was built for another build of kernel {}", name, release);
  } else {
    cause = fmt::format(
        "the module {} was built with other headers than those of the kernel {} "
        "that is running, or for another machine than {}",
        name, release, machine_name(failed.file->machine));
  }
  cause += fmt::format(": its vermagic is \"{}\"", trim(magic));
  if (!theirs.empty()) cause += fmt::format(", the kernel's is \"{}\"", trim(theirs));
  return Error(Errc::Invalid, with_log(std::move(cause), line))
      .advise(
          fmt::format("build it with the headers of {}, or use the modules that are built for it",
                      failed.release));
}

// "nvidia_drm: Unknown symbol drm_open (err -2)"
Error missing_symbol(const FailedLoad& failed) {
  const auto line = log_line(failed, {"Unknown symbol"});
  const auto symbol = between(line, "Unknown symbol ", " ");
  std::vector<std::string> missing;
  if (failed.file)
    for (const auto& needed : failed.file->depends)
      if (find_loaded(failed.loaded, needed) == nullptr) missing.push_back(needed);
  const auto cause = fmt::format("the module {} uses {}, which the kernel does not have",
                                 failed_module(failed), symbol.empty() ? "a symbol" : symbol);
  if (missing.empty())
    return Error(Errc::NotFound, cause)
        .advise(
            "build it with the headers of the kernel that is running; the kernel may lack an "
            "option that the module needs");
  return Error(Errc::NotFound, cause)
      .advise(fmt::format("load {} first", fmt::join(missing, ", then ")));
}

// What the driver logs when it has no device, and what helps.
struct NoDeviceLine {
  std::string_view text;
  std::string_view remedy;
};
constexpr NoDeviceLine kNoDeviceLines[] = {
    {"requires use of the NVIDIA open kernel modules",
     "install the open flavour of the modules: this GPU has no other"},
    {"is not supported by open nvidia.ko",
     "install the proprietary flavour of the modules: the open one does not know this GPU"},
    {"Legacy drivers", "install the branch of the driver that the kernel log names"},
    {"is already bound to", "unload the driver that has the GPU, such as nouveau, then try again"},
    {"nouveau", "unload nouveau, then try again"},
    {"NVRM: ", "see the GPUs of this machine with: gantry doctor"}};

Error no_device(const FailedLoad& failed) {
  const Error cause(Errc::NotFound, fmt::format("the module {} found no device that it can drive",
                                                failed_module(failed)));
  for (const auto& [text, remedy] : kNoDeviceLines) {
    const auto line = log_line(failed, {text});
    if (!line.empty()) return Error(Errc::NotFound, with_log(cause.text(), line)).advise(remedy);
  }
  return Error(cause).advise("see the GPUs of this machine with: gantry doctor");
}

Error invalid_argument(const FailedLoad& failed) {
  const auto line =
      log_line(failed, {"invalid for parameter", "disagrees about version of symbol", "parameter"});
  if (contains(line, "disagrees about version")) return wrong_kernel(failed);
  return Error(Errc::Invalid,
               with_log(fmt::format("the kernel rejected the module {} or its options",
                                    failed_module(failed)),
                        line))
      .advise("check its options: modinfo -p " + failed.path);
}

}  // namespace

Error explain_failed_load(int err, const FailedLoad& failed) {
  const auto name = failed_module(failed);
  switch (err) {
    case EEXIST: return {Errc::Exists, fmt::format("the module {} is loaded already", name)};
    case EKEYREJECTED:
    case ENOKEY:
    case EKEYEXPIRED:
    case EKEYREVOKED:
    case ENOPKG:
    case EBADMSG: return refused_signature(failed);
    case EPERM: return not_permitted(failed);
    case ENOEXEC: return wrong_kernel(failed);
    case ENOENT: return missing_symbol(failed);
    case ENODEV: return no_device(failed);
    case EINVAL: return invalid_argument(failed);
    case EBUSY:
      return Error(Errc::Busy,
                   with_log(fmt::format("the module {} cannot be loaded: something that "
                                        "it needs is in use",
                                        name),
                            log_line(failed, {"NVRM", name})));
    case ENOSYS: return {Errc::Unsupported, "the kernel has no loadable modules"};
    case EOPNOTSUPP:
      return Error(Errc::Unsupported, fmt::format("the kernel cannot unpack {}", failed.path))
          .advise("load it with modprobe");
    default:
      return Error(Error::sys(err, fmt::format("load the module {}", name)).code(),
                   with_log(Error::sys(err, fmt::format("load the module {}", name)).cause(),
                            log_line(failed, {"NVRM", name})));
  }
}

Error explain_failed_unload(int err, std::string_view name,
                            const std::vector<LoadedModule>& loaded) {
  const auto module = module_name(name);
  const auto* known = find_loaded(loaded, module);
  switch (err) {
    case ENOENT: return {Errc::NotFound, fmt::format("the module {} is not loaded", module)};
    case EPERM:
      return Error(Errc::Denied, fmt::format("the module {} cannot be unloaded: this process may "
                                             "not unload modules",
                                             module))
          .advise("run it as root; in a pod, the container needs the capability SYS_MODULE");
    case EWOULDBLOCK:
    case EBUSY: break;
    case ENOSYS: return {Errc::Unsupported, "the kernel has no loadable modules"};
    default: return Error::sys(err, fmt::format("unload the module {}", module));
  }
  if (known == nullptr) return {Errc::Busy, fmt::format("the module {} is in use", module)};
  if (!known->users.empty())
    return Error(Errc::Busy,
                 fmt::format("the module {} is used by the module{} {}", module,
                             known->users.size() == 1 ? "" : "s", fmt::join(known->users, ", ")))
        .advise(fmt::format("unload {} first", fmt::join(known->users, ", then ")));
  if (known->permanent || known->references < 0)
    return {Errc::Busy,
            fmt::format("the module {} cannot be unloaded: it or the kernel was built so", module)};
  if (known->state != "Live")
    return {Errc::Busy, fmt::format("the module {} is being loaded or unloaded (state {})", module,
                                    known->state)};
  return Error(Errc::Busy,
               fmt::format("the module {} is held {} time{} by open device files or the console",
                           module, known->references, known->references == 1 ? "" : "s"))
      .advise("see which processes hold it with: gantry driver preflight");
}

}  // namespace gantry::kernel_module
