// SPDX-License-Identifier: Apache-2.0
#include "container/runtime/persona/command_line.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace gantry::runtime {
namespace {

// Flags of runc, crun and youki that take a value, without dashes. Other flags have no value.
constexpr std::array<std::string_view, 8> kGlobalWithValue{
    "root", "r", "log", "log-format", "log-level", "criu", "rootless", "cgroup-manager"};
constexpr std::array<std::string_view, 7> kCreateWithValue{
    "bundle", "b", "config", "f", "console-socket", "pid-file", "preserve-fds"};
constexpr std::array<std::string_view, 4> kHelp{"help", "h", "usage", "?"};

struct Flag {
  std::string_view name;
  std::optional<std::string_view> value;
};

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Reader {
 public:
  explicit Reader(const std::vector<std::string_view>& arguments) : arguments_(arguments) {}

  CommandLine run() {
    while (at_ < arguments_.size() && line_.command.empty()) {
      const auto argument = arguments_[at_++];
      if (argument.size() < 2 || argument[0] != '-') {
        line_.command = argument;
      } else if (argument == "--") {
        if (at_ < arguments_.size()) line_.command = arguments_[at_++];
      } else {
        global(flag_of(argument, kGlobalWithValue));
      }
    }
    bool flags_end = false;
    while (at_ < arguments_.size()) {
      const auto argument = arguments_[at_++];
      if (!flags_end && argument == "--") {
        flags_end = true;
      } else if (flags_end || argument.size() < 2 || argument[0] != '-') {
        if (line_.id.empty()) line_.id = argument;
      } else if (line_.command == "create" || line_.command == "run") {
        create(flag_of(argument, kCreateWithValue));
      }
    }
    return std::move(line_);
  }

 private:
  template <std::size_t N>
  Flag flag_of(std::string_view argument, const std::array<std::string_view, N>& with_value) {
    const bool one_dash = argument[1] != '-';
    Flag flag{.name = argument.substr(one_dash ? 1 : 2), .value = std::nullopt};
    if (const auto equals = flag.name.find('='); equals != std::string_view::npos) {
      flag.value = flag.name.substr(equals + 1);
      flag.name = flag.name.substr(0, equals);
    } else if (among(with_value, flag.name)) {
      if (at_ < arguments_.size()) flag.value = arguments_[at_++];
    } else if (one_dash && flag.name.size() > 1 && among(with_value, flag.name.substr(0, 1))) {
      flag.value = flag.name.substr(1);  // crun's -bDIR
      flag.name = flag.name.substr(0, 1);
    }
    return flag;
  }

  void global(const Flag& flag) {
    if (flag.name == "version" || flag.name == "v" || flag.name == "V") line_.version = true;
    if (!flag.value) return;
    if (flag.name == "root" || flag.name == "r") line_.root = *flag.value;
    if (flag.name == "log-format") line_.log_format = *flag.value;
    if (flag.name != "log") return;
    line_.log = *flag.value;
    if (line_.log.starts_with("file:")) line_.log.erase(0, 5);  // crun's long form
  }

  void create(const Flag& flag) {
    if (!flag.value) {
      line_.help = line_.help || among(kHelp, flag.name);
      return;
    }
    if (flag.name == "bundle" || flag.name == "b") line_.bundle = *flag.value;
    if (flag.name == "config" || flag.name == "f") line_.config = *flag.value;
  }

  const std::vector<std::string_view>& arguments_;
  std::size_t at_ = 0;
  CommandLine line_;
};

}  // namespace

CommandLine parse_command_line(const std::vector<std::string_view>& arguments) {
  return Reader(arguments).run();
}

}  // namespace gantry::runtime
