// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/classic/configure_options.hpp"

#include "base/core/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace gantry::runtime {
namespace {

using model::Capability;

constexpr std::size_t kMaxArguments = 4096;

enum class ValueKind : std::uint8_t { Nothing, Value, PerhapsValue };

Error input_error(std::string text) {
  return {Errc::Invalid, "input error: " + std::move(text)};
}

struct Flag {
  std::string_view name;
  char letter;
  ValueKind takes;
  Status (*set)(ConfigureOptions& options, std::string_view value);
  std::string_view value;    // its name in the help
  std::string_view meaning;  // in the help
};

template <auto Member>
Status keep(ConfigureOptions& options, std::string_view value) {
  options.*Member = std::string(value);
  return {};
}

template <auto Member>
Status turn_on(ConfigureOptions& options, std::string_view /*value*/) {
  options.*Member = true;
  return {};
}

template <Capability What>
Status want(ConfigureOptions& options, std::string_view /*value*/) {
  auto& wanted = options.request.capabilities;
  if (std::find(wanted.begin(), wanted.end(), What) == wanted.end()) wanted.push_back(What);
  return {};
}

Status accept(ConfigureOptions& /*options*/, std::string_view /*value*/) {
  return {};
}

Status set_pid(ConfigureOptions& options, std::string_view value) {
  const auto pid = parse_u64(value);
  if (!pid || *pid == 0 || *pid > std::numeric_limits<pid_t>::max()) {
    return input_error(fmt::format("--pid={}: not a process", value));
  }
  options.pid = static_cast<pid_t>(*pid);
  return {};
}

Status add_devices(ConfigureOptions& options, std::string_view value) {
  auto& devices = options.request.devices;
  for (auto each : split(value, ',')) {
    const std::string id(trim(each));
    const bool known = std::find(devices.begin(), devices.end(), id) != devices.end();
    if (!id.empty() && !known) devices.push_back(id);
  }
  return {};
}

Status add_requirement(ConfigureOptions& options, std::string_view value) {
  if (!trim(value).empty()) options.request.requirements.emplace_back(value);
  return {};
}

Status add_imex_channel(ConfigureOptions& options, std::string_view value) {
  for (auto each : split(value, ',')) {
    const auto channel = parse_u64(trim(each));
    if (!channel || *channel > model::kMaxImexChannel) {
      return input_error(
          fmt::format("--imex-channel={}: channels are 0 to {}", value, model::kMaxImexChannel));
    }
    options.request.imex_channels.push_back(static_cast<std::uint32_t>(*channel));
  }
  return {};
}

template <bool model::ContainerRequest::*Member>
Status all_instances(ConfigureOptions& options, std::string_view value) {
  if (value != "all") return input_error(fmt::format("{}: only \"all\" can be given here", value));
  options.request.*Member = true;
  return {};
}

Status set_compat(ConfigureOptions& options, std::string_view value) {
  constexpr std::array<std::string_view, 3> kOn{"ldconfig", "mount", "hook"};
  if (value == "disabled") {
    options.cuda_compat = CudaCompat::Disabled;
  } else if (std::find(kOn.begin(), kOn.end(), value) != kOn.end()) {
    options.cuda_compat = CudaCompat::Ldconfig;
  } else {
    return input_error(
        fmt::format("--cuda-compat-mode={}: one of ldconfig, mount, disabled and hook", value));
  }
  return {};
}

Status no_compat(ConfigureOptions& options, std::string_view /*value*/) {
  options.cuda_compat = CudaCompat::Disabled;
  return {};
}

constexpr std::array kGlobal{
    Flag{"debug", 'd', ValueKind::Value, keep<&ConfigureOptions::debug_file>, "FILE",
         "Append a log to this file"},
    Flag{"load-kmods", 'k', ValueKind::Nothing, turn_on<&ConfigureOptions::load_kernel_modules>, "",
         "Load the kernel modules first"},
    Flag{"no-pivot", 'n', ValueKind::Nothing, accept, "", "Accepted; pivot_root is not used"},
    Flag{"user", 'u', ValueKind::PerhapsValue, keep<&ConfigureOptions::user>, "UID[:GID]",
         "Accepted; no driver process is started"},
    Flag{"root", 'r', ValueKind::Value, keep<&ConfigureOptions::root>, "DIR",
         "The root directory of the machine"},
    Flag{"ldcache", 'l', ValueKind::Value, keep<&ConfigureOptions::ldcache>, "FILE",
         "Accepted; the inventory has the libraries"},
    Flag{"no-create-imex-channels", 0, ValueKind::Nothing,
         turn_on<&ConfigureOptions::no_create_imex_channels>, "",
         "Do not create IMEX channels on the machine"},
};

constexpr std::array kConfigure{
    Flag{"pid", 'p', ValueKind::Value, set_pid, "PID", "A process of the container (required)"},
    Flag{"device", 'd', ValueKind::Value, add_devices, "ID",
         "GPUs by index, UUID or PCI address; all"},
    Flag{"require", 'r', ValueKind::Value, add_requirement, "EXPR",
         "A requirement like in NVIDIA_REQUIRE_*"},
    Flag{"ldconfig", 'l', ValueKind::Value, keep<&ConfigureOptions::ldconfig>, "@FILE",
         "Accepted with @; ldconfig is not run"},
    Flag{"compute", 'c', ValueKind::Nothing, want<Capability::Compute>, "",
         "The driver's files for CUDA and OpenCL"},
    Flag{"utility", 'u', ValueKind::Nothing, want<Capability::Utility>, "", "nvidia-smi and NVML"},
    Flag{"video", 'v', ValueKind::Nothing, want<Capability::Video>, "", "The video codecs"},
    Flag{"graphics", 'g', ValueKind::Nothing, want<Capability::Graphics>, "", "OpenGL and Vulkan"},
    Flag{"display", 'D', ValueKind::Nothing, want<Capability::Display>, "", "X11 and Wayland"},
    Flag{"ngx", 'n', ValueKind::Nothing, want<Capability::Ngx>, "", "NGX"},
    Flag{"compat32", 0, ValueKind::Nothing, want<Capability::Compat32>, "",
         "32-bit libraries, too"},
    Flag{"mig-config", 0, ValueKind::Value, all_instances<&model::ContainerRequest::mig_config>,
         "all", "May configure MIG"},
    Flag{"mig-monitor", 0, ValueKind::Value, all_instances<&model::ContainerRequest::mig_monitor>,
         "all", "May watch all MIG instances"},
    Flag{"imex-channel", 0, ValueKind::Value, add_imex_channel, "N", "IMEX channels by number"},
    Flag{"no-cgroups", 0, ValueKind::Nothing, turn_on<&ConfigureOptions::no_cgroups>, "",
         "Do not change the container's device rules"},
    Flag{"no-devbind", 0, ValueKind::Nothing, turn_on<&ConfigureOptions::no_device_binds>, "",
         "Do not mount device nodes"},
    Flag{"no-persistenced", 0, ValueKind::Nothing, turn_on<&ConfigureOptions::no_persistenced>, "",
         "Do not mount the persistence daemon's socket"},
    Flag{"no-fabricmanager", 0, ValueKind::Nothing, turn_on<&ConfigureOptions::no_fabricmanager>,
         "", "Do not mount the fabric manager's socket"},
    Flag{"no-gsp-firmware", 0, ValueKind::Nothing, accept, "",
         "Accepted; containers do not need it"},
    Flag{"cuda-compat-mode", 0, ValueKind::Value, set_compat, "MODE",
         "ldconfig, mount, hook, or disabled"},
    Flag{"no-cntlibs", 0, ValueKind::Nothing, no_compat, "",
         "The same as --cuda-compat-mode=disabled"},
};

class Reader {
 public:
  Reader(std::span<const std::string> arguments, ConfigureOptions& options)
      : rest_(arguments), options_(options) {}

  // Parses options up to the next word that is not an option; nullopt at the end.
  Result<std::optional<std::string>> word(std::span<const Flag> flags) {
    while (!rest_.empty()) {
      const std::string& argument = rest_.front();
      rest_ = rest_.subspan(1);
      if (only_words_ || argument.size() < 2 || argument.front() != '-') {
        return std::optional(argument);
      }
      if (argument == "--") {
        only_words_ = true;
      } else if (argument.starts_with("--")) {
        GANTRY_CHECK(long_option(flags, argument));
      } else {
        GANTRY_CHECK(letters(flags, argument));
      }
    }
    return std::optional<std::string>();
  }

 private:
  Status long_option(std::span<const Flag> flags, std::string_view argument) {
    const auto equals = argument.find('=');
    const auto name = argument.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    const auto flag = std::find_if(flags.begin(), flags.end(),
                                   [&](const Flag& each) { return each.name == name; });
    if (flag == flags.end()) return input_error(fmt::format("unrecognized option '{}'", argument));
    const bool has_value = equals != std::string_view::npos;
    if (flag->takes == ValueKind::Nothing && has_value) {
      return input_error(fmt::format("option '--{}' takes no value", name));
    }
    if (has_value) return flag->set(options_, argument.substr(equals + 1));
    return with_next_value(*flag);
  }

  // "-cu", "-p71", "-p 71"
  Status letters(std::span<const Flag> flags, std::string_view argument) {
    for (std::size_t i = 1; i < argument.size(); ++i) {
      const auto flag = std::find_if(flags.begin(), flags.end(),
                                     [&](const Flag& each) { return each.letter == argument[i]; });
      if (flag == flags.end()) {
        return input_error(fmt::format("unrecognized option '-{}'", argument[i]));
      }
      if (flag->takes == ValueKind::Nothing) {
        GANTRY_CHECK(flag->set(options_, {}));
        continue;
      }
      const auto value = argument.substr(i + 1);
      return value.empty() ? with_next_value(*flag) : flag->set(options_, value);
    }
    return {};
  }

  Status with_next_value(const Flag& flag) {
    if (flag.takes != ValueKind::Value) return flag.set(options_, {});
    if (rest_.empty()) {
      return input_error(fmt::format("option '--{}' needs a value", flag.name));
    }
    const std::string& value = rest_.front();
    rest_ = rest_.subspan(1);
    return flag.set(options_, value);
  }

  std::span<const std::string> rest_;
  ConfigureOptions& options_;
  bool only_words_ = false;
};

Status check(const ConfigureOptions& options) {
  if (!options.pid) return input_error("--pid=PID of the container is missing");
  if (!options.rootfs.starts_with('/')) {
    return input_error(
        fmt::format("{}: the container's root must be an absolute path", options.rootfs));
  }
  const auto parts = split(options.rootfs, '/');
  const bool names_something = std::any_of(parts.begin(), parts.end(), [](std::string_view part) {
    return !part.empty() && part != ".";
  });
  const bool climbs = std::find(parts.begin(), parts.end(), "..") != parts.end();
  if (!names_something || climbs) {
    return input_error(fmt::format("{}: not the root of a container", options.rootfs));
  }
  // Without "@" upstream runs the image's own program as root: CVE-2024-0136, CVE-2024-0137.
  if (!options.ldconfig.empty() && !options.ldconfig.starts_with('@')) {
    return Error(Errc::Denied,
                 fmt::format("ldcache error: {} is a program of the container, which is never "
                             "run; set ldconfig = \"@/sbin/ldconfig\" under "
                             "[nvidia-container-cli] in config.toml",
                             options.ldconfig));
  }
  return {};
}

void add_help(std::span<const Flag> flags, std::string& text) {
  for (const auto& flag : flags) {
    const auto letter = flag.letter != 0 ? fmt::format("-{}, ", flag.letter) : "    ";
    const auto value = flag.value.empty() ? "" : fmt::format("={}", flag.value);
    text += fmt::format("  {:<32}{}\n", fmt::format("{}--{}{}", letter, flag.name, value),
                        flag.meaning);
  }
}

}  // namespace

std::string configure_help() {
  std::string text =
      "Usage: nvidia-container-cli [OPTION...] configure [OPTION...] ROOTFS\n"
      "Adds GPUs and the driver's files to a container that is starting.\n"
      "\nOptions before the command:\n";
  add_help(kGlobal, text);
  text += "\nOptions after the command:\n";
  add_help(kConfigure, text);
  return text;
}

bool asks_for_help(std::span<const std::string> arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& word) {
    return word == "--help" || word == "-h" || word == "-?" || word == "--usage";
  });
}

bool is_configure(std::span<const std::string> arguments) {
  ConfigureOptions options;
  const auto command = Reader(arguments, options).word(kGlobal);
  return command.ok() && *command == "configure";
}

Result<ConfigureOptions> parse_configure(std::span<const std::string> arguments) {
  if (arguments.size() > kMaxArguments) return input_error("too many arguments");
  ConfigureOptions options;
  Reader reader(arguments, options);
  GANTRY_TRY(const std::optional<std::string> command, reader.word(kGlobal));
  if (command != "configure") return input_error("the command \"configure\" is missing");
  GANTRY_TRY(const std::optional<std::string> rootfs, reader.word(kConfigure));
  if (!rootfs) return input_error("the container's root directory is missing");
  options.rootfs = *rootfs;
  GANTRY_TRY(const std::optional<std::string> more, reader.word(kConfigure));
  if (more) return input_error(fmt::format("'{}': only one root directory is allowed", *more));
  GANTRY_CHECK(check(options));
  // Without --device: the driver's files without a GPU, like NVIDIA_VISIBLE_DEVICES=none.
  if (options.request.devices.empty()) options.request.devices = {"none"};
  return options;
}

}  // namespace gantry::runtime
