// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/hook/cdi_hook.hpp"

#include "base/log/log.hpp"
#include "base/sys/descriptor.hpp"
#include "container/oci/container.hpp"
#include "container/oci/state.hpp"
#include "container/runtime/persona/entry_points.hpp"
#include "container/runtime/persona/harden.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <optional>

namespace gantry::runtime {
namespace {

constexpr std::string_view kSpec = "container-spec";
constexpr std::string_view kHelp =
    "Usage: nvidia-cdi-hook [--debug] [--quiet] [--root DIR] HOOK [FLAG VALUE]...\n"
    "\n"
    "Called by a container runtime with the container's state on stdin (or --container-spec "
    "FILE).\n"
    "  update-ldcache --folder DIR...            make the loader find the libraries of these "
    "directories\n"
    "  create-symlinks --link TARGET::LINK...    create links in the container\n"
    "  enable-cuda-compat --host-driver-version V | --host-cuda-version V\n"
    "                                            use the image's newer libcuda if it is "
    "compatible\n"
    "  disable-device-node-modification          keep programs from creating device nodes\n"
    "  update-application-profile                show EGL and Vulkan only the container's GPUs\n"
    "  chmod --mode MODE --path PATH...          change permissions in the container\n"
    "  fence --cuda FILE --nvml FILE [--share NAME]\n"
    "                                            mount these over every libcuda and libnvidia-ml "
    "of "
    "the container\n";

// The arguments before and after the hook's name.
struct Call {
  std::string_view hook;
  HookArguments arguments;
  std::string root = "/";
  bool quiet = false;
  bool help = false;
  bool version = false;
  std::string unknown;  // a flag that the hook does not have
};

Status noop(const HookArguments&, HookContext&) {
  return {};
}

const CdiHook* find_hook(std::string_view name) {
  for (const auto& hook : cdi_hooks()) {
    if (hook.name == name) return &hook;
  }
  return nullptr;
}

// "--name", "-name", "--name=value": the name and the optional value.
struct Flag {
  std::string_view name;
  std::optional<std::string_view> value;
};
std::optional<Flag> flag_of(std::string_view word) {
  if (!word.starts_with('-') || word == "-") return std::nullopt;
  word.remove_prefix(word.starts_with("--") ? 2 : 1);
  const auto equals = word.find('=');
  if (equals == std::string_view::npos) return Flag{word, std::nullopt};
  return Flag{word.substr(0, equals), word.substr(equals + 1)};
}

class ArgumentReader {
 public:
  explicit ArgumentReader(const std::vector<std::string_view>& words) : words_(words) {}
  bool done() const { return at_ >= words_.size(); }
  std::string_view next() { return words_[at_++]; }
  // The flag's value: after "=", or the next word.
  std::string value_of(const Flag& flag) {
    if (flag.value) return std::string(*flag.value);
    return done() ? std::string() : std::string(next());
  }

 private:
  const std::vector<std::string_view>& words_;
  std::size_t at_ = 0;
};

void take_hook_flag(const CdiHook& hook, const Flag& flag, ArgumentReader& words, Call& call) {
  const bool known = flag.name == kSpec ||
                     std::find(hook.flags.begin(), hook.flags.end(), flag.name) != hook.flags.end();
  if (known) {
    call.arguments.flags.emplace_back(flag.name, words.value_of(flag));
  } else if (call.unknown.empty()) {
    call.unknown = flag.name;
  }
}

Call parse(const std::vector<std::string_view>& list) {
  Call call;
  ArgumentReader words(list);
  const CdiHook* hook = nullptr;
  while (!words.done()) {
    const auto word = words.next();
    const auto flag = flag_of(word);
    if (!flag) {
      if (call.hook.empty()) {
        call.hook = word;
        hook = find_hook(word);
      }
    } else if (flag->name == "root") {
      call.root = words.value_of(*flag);
    } else if (flag->name == "quiet") {
      call.quiet = true;
    } else if (flag->name == "help" || flag->name == "h") {
      call.help = true;
    } else if (flag->name == "version" || flag->name == "v") {
      call.version = true;
    } else if (flag->name != "debug" && flag->name != "d" && hook != nullptr) {
      take_hook_flag(*hook, *flag, words, call);
    }
  }
  return call;
}

Result<std::string> read_state(const std::string& file) {
  if (file.empty() || file == "-") {
    std::string text;
    std::array<char, 4096> buffer{};
    for (;;) {
      const auto got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return Error::sys(errno, "read the container's state from stdin");
      if (got == 0) return text;
      if (text.size() + static_cast<std::size_t>(got) > oci::kMaxStateBytes) {
        return Error(Errc::Corrupt, "the container's state is too large");
      }
      text.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }
  if (!file.starts_with('/')) {
    // A runtime may start hooks in the container's root, so a relative path would be untrusted.
    return Error(Errc::Invalid, fmt::format("--container-spec {}: must be an absolute path", file));
  }
  const sys::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", file));
  return sys::read_regular(fd.get(), oci::kMaxStateBytes, file);
}

Result<json::Document> read_config(const std::string& bundle) {
  const auto file = bundle + "/config.json";
  const sys::UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return Error::sys(errno, fmt::format("open {}", file));
  GANTRY_TRY(auto text, sys::read_regular(fd.get(), json::kSizeLimit, file));
  return json::Document::parse(std::move(text), json::Encoding::Any).in(file);
}

// The root's path from the engine: crun's state, else config.json.
Result<std::string> container_root(const oci::State& state) {
  if (!state.root.empty()) return oci::root_path(state.bundle, state.root);
  GANTRY_TRY(const auto document, read_config(state.bundle));
  return oci::root_path(state.bundle, document["root"]["path"].string().value_or(""));
}

// The format of NVIDIA's hooks. Runtimes show the lines to their users as they are.
Log hook_log() {
  return Log(LogForm::Logrus);
}

Status run_on(const CdiHook& hook, const Call& call) {
  GANTRY_TRY(const auto text, read_state(call.arguments.last(kSpec)));
  GANTRY_TRY(const auto state, oci::parse_state(text));
  GANTRY_TRY(const auto path, container_root(state));
  GANTRY_TRY(const auto container, rootfs::Root::at(path));
  GANTRY_TRY(const auto host, sys::Host::at(call.root));
  if (rootfs::is_host_root(container)) {
    return Error(Errc::Denied,
                 fmt::format("{} is the machine's own root, not a container's", path));
  }
  HookContext place{container, host, state.bundle, state.pid, {}};
  auto status = hook.run(call.arguments, place);
  if (!call.quiet) {
    for (const auto& warning : place.warnings)
      hook_log().write(LogLevel::Warning, "", fmt::format("{}: {}", hook.name, warning));
  }
  return status;
}

}  // namespace

Result<oci::Container> HookContext::config() const {
  GANTRY_TRY(const auto document, read_config(bundle));
  return oci::parse_container(document);
}

std::vector<std::string> HookArguments::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [flag, value] : flags) {
    if (flag == name) values.push_back(value);
  }
  return values;
}

std::string HookArguments::last(std::string_view name, std::string_view otherwise) const {
  const auto values = all(name);
  return values.empty() ? std::string(otherwise) : values.back();
}

const std::vector<CdiHook>& cdi_hooks() {
  static const std::vector<CdiHook> table = {
      {"update-ldcache",
       {"folder", "ldconfig-path", "host-driver-version", "host-cuda-version",
        "cuda-compat-container-root"},
       update_ldcache},
      {"create-symlinks", {"link"}, create_symlinks},
      {"enable-cuda-compat",
       {"host-driver-version", "host-cuda-version", "cuda-compat-container-root"},
       enable_cuda_compat},
      {"disable-device-node-modification", {}, disable_device_node_modification},
      {"update-application-profile", {}, update_application_profile},
      {"chmod", {"mode", "path"}, change_mode},
      {"fence", {"cuda", "nvml", "share"}, put_fence},
      {"noop", {}, noop},
  };
  return table;
}

int run_cdi_hook(const std::vector<std::string_view>& words) {
  const auto call = parse(words);
  if (call.version) {
    std::puts("NVIDIA CDI Hook version 1.20.0 (answered by gantry " GANTRY_VERSION ")");
    return 0;
  }
  if (call.help) {
    std::fwrite(kHelp.data(), 1, kHelp.size(), stdout);
    return 0;
  }
  const auto* hook = find_hook(call.hook);
  if (hook == nullptr) {
    if (!call.quiet) {
      hook_log().write(LogLevel::Warning, "",
                       call.hook.empty() ? std::string("No CDI hook specified")
                                         : fmt::format("Unsupported CDI hook: {}", call.hook));
    }
    return 0;
  }
  if (!call.unknown.empty()) {
    hook_log().write(
        LogLevel::Error, "",
        fmt::format("{}: no flag --{}; see nvidia-cdi-hook --help", hook->name, call.unknown));
    return 1;
  }
  if (hook->name == "noop") return 0;  // for tests of the command line: needs no container
  const auto status = run_on(*hook, call);
  if (status.ok()) return 0;
  hook_log().write(LogLevel::Error, "", fmt::format("{}: {}", hook->name, status.error().text()));
  return 1;
}

int cdi_hook_main(int argc, char** argv) {
  harden();
  return run_cdi_hook({argv + std::min(argc, 1), argv + argc});
}

}  // namespace gantry::runtime
