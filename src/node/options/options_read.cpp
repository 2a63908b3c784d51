// SPDX-License-Identifier: Apache-2.0
// Reads the options: flags and environment override the file, which overrides the defaults.
#include "base/core/text.hpp"
#include "node/options/options_internal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace gantry::options {
namespace {

// One flag of the command line, in order.
struct GivenFlag {
  const Option* option = nullptr;
  std::string shown;  // "--mig-strategy"
  std::string value;
};

struct Flags {
  std::vector<GivenFlag> given;
  bool help = false;
  bool version = false;
};

// klog's flags are written with - or _.
std::string normal(std::string_view name) {
  std::string result(name);
  std::replace(result.begin(), result.end(), '_', '-');
  return result;
}

const Option* find_flag(std::string_view name, Program program) {
  for (const auto& option : option_table()) {
    if (!has_option(program, option)) continue;
    for (const auto known : names_in(option.flags)) {
      if (normal(known) == normal(name)) return &option;
    }
  }
  return nullptr;
}

Error unknown_flag(std::string_view shown, std::string_view name, Program program) {
  std::vector<std::string> known;
  for (const auto& option : option_table()) {
    if (!has_option(program, option)) continue;
    for (const auto flag : names_in(option.flags)) known.emplace_back(flag);
  }
  return {Errc::Invalid,
          fmt::format("unknown option `{}`{}", shown, did_you_mean(name, known, "--"))};
}

class FlagReader {
 public:
  FlagReader(std::span<const std::string> arguments, Program program)
      : arguments_(arguments), program_(program) {}

  Result<Flags> read() {
    while (at_ < arguments_.size()) GANTRY_CHECK(next());
    return std::move(flags_);
  }

 private:
  Status next() {
    const std::string& argument = arguments_[at_++];
    if (argument.size() < 2 || argument[0] != '-') {
      return Error(Errc::Invalid,
                   fmt::format("`{}` is not an option; options begin with --", argument));
    }
    const std::string_view text = argument;
    const auto name_at = text.starts_with("--") ? 2U : 1U;
    const auto equals = text.find('=');
    const auto name = text.substr(name_at, equals == text.npos ? text.npos : equals - name_at);
    const auto shown = std::string(text.substr(0, equals));
    if (name == "help" || name == "h") {
      flags_.help = true;
      return {};
    }
    if (name == "version") {
      flags_.version = true;
      return {};
    }
    const auto* option = find_flag(name, program_);
    if (option == nullptr) return unknown_flag(shown, name, program_);
    if (equals != text.npos) {
      flags_.given.push_back({option, shown, std::string(text.substr(equals + 1))});
      return {};
    }
    if (is_switch(*option)) {
      flags_.given.push_back({option, shown, "true"});
      return {};
    }
    if (at_ == arguments_.size()) {
      return Error(Errc::Invalid, fmt::format("{} needs a value", shown));
    }
    flags_.given.push_back({option, shown, arguments_[at_++]});
    return {};
  }

  std::span<const std::string> arguments_;
  Program program_;
  std::size_t at_ = 0;
  Flags flags_;
};

// Repeated list flags add up: --x a --x b is a,b. For other flags, the last one counts.
Status apply_flags(const Flags& flags, Options& options) {
  std::map<const Option*, std::string> lists;
  for (const auto& flag : flags.given) {
    if (is_list(*flag.option)) {
      auto& list = lists[flag.option];
      list += (list.empty() ? "" : ",") + flag.value;
      GANTRY_CHECK(set_value(*flag.option, list, options).in(flag.shown));
    } else {
      GANTRY_CHECK(set_value(*flag.option, flag.value, options).in(flag.shown));
    }
  }
  return {};
}

// GFD_... variables count only for the program that writes these labels.
bool counts_for(std::string_view variable, Program program) {
  if (!variable.starts_with("GFD_")) return true;
  return program == Program::FeatureDiscovery || program == Program::Agent;
}

Status apply_environment(Program program, const EnvironmentLookup& environment, Options& options) {
  for (const auto& option : option_table()) {
    if (!has_option(program, option)) continue;
    for (const auto name : names_in(option.environment)) {
      if (!counts_for(name, program)) continue;
      const auto value = environment(name);
      if (!value || (value->empty() && !is_text(option))) continue;
      GANTRY_CHECK(set_value(option, *value, options).in(name));
      break;
    }
  }
  return {};
}

Result<GkeConfig> read_gke_file(const std::string& path, const FileReader& read_file) {
  const auto text = read_file(path);
  if (!text.ok()) {
    const bool absent = text.error().code() == Errc::NotFound;
    return Error(text.error().code(),
                 fmt::format("unable to read gpu config file {0}: open {0}: {1}", path,
                             absent ? "no such file or directory" : text.error().text()));
  }
  return parse_gke_config(*text);
}

std::string shown(const GkeConfig& config) {
  std::string text = config.partition_size;
  const auto add = [&](const std::string& more) { text += (text.empty() ? "" : " ") + more; };
  if (config.sharing != SharingKind::None) {
    add(fmt::format("{{{} {}}}", config.sharing == SharingKind::Mps ? "mps" : "time-sharing",
                    config.clients_per_gpu));
  }
  if (!config.critical_xids.empty()) add(fmt::format("[{}]", fmt::join(config.critical_xids, " ")));
  return fmt::format("{{{}}}", text);
}

// GKE's plugin continues if it cannot read the file. The texts are its own log lines, which people
// search for.
void apply_gke_file(const FileReader& read_file, ParsedOptions& read) {
  const auto& path = read.options.gke.gpu_config;
  auto& notes = read.notes;
  if (!path.empty()) {
    notes.push_back(fmt::format("Reading GPU config file: {}", path));
    auto config = read_gke_file(path, read_file);
    if (config.ok()) {
      read.options.gke_config = *std::move(config);
    } else {
      notes.push_back(
          fmt::format("Failed to parse GPU config file {}: {}", path, config.error().text()));
      notes.emplace_back("Falling back to default GPU config.");
    }
  }
  notes.push_back(fmt::format("Using gpu config: {}", shown(read.options.gke_config)));
}

}  // namespace

// gpushare's plugin shares every GPU. NVIDIA's programs exit if the driver does not start; ours
// waits for it.
Options default_options(Program program) {
  Options options{.program = program};
  options.fail_on_init_error = program == Program::Plugin || program == Program::FeatureDiscovery;
  options.shares.all = program == Program::Gpushare;
  return options;
}

Result<ParsedOptions> read_options(Program program, std::span<const std::string> arguments,
                                   const EnvironmentLookup& environment,
                                   const FileReader& read_file) {
  GANTRY_TRY(const auto flags, FlagReader(arguments, program).read());
  ParsedOptions read;
  read.help = flags.help;
  read.version = flags.version;
  auto& options = read.options;
  options = default_options(program);
  if (read.help || read.version) return read;
  // Twice: the first pass finds the file.
  auto first = default_options(program);
  GANTRY_CHECK(apply_environment(program, environment, first));
  GANTRY_CHECK(apply_flags(flags, first));
  if (!first.config_file.empty()) {
    GANTRY_TRY(const auto text, read_file(first.config_file).in("--config-file"));
    GANTRY_CHECK(apply_file(text, first.config_file, options));
  }
  GANTRY_CHECK(apply_environment(program, environment, options));
  GANTRY_CHECK(apply_flags(flags, options));
  if (program == Program::Gke) apply_gke_file(read_file, read);
  GANTRY_CHECK(check(options));
  return read;
}

}  // namespace gantry::options
