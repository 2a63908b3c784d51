// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/live_effects.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "base/sys/deadline_write.hpp"
#include "base/sys/kernel.hpp"
#include "base/sys/shell_command.hpp"
#include "install/driver_setup/host_files.hpp"
#include "install/kernel_module/module_loader.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <thread>
#include <utility>

namespace gantry::driver_setup {
namespace {

constexpr std::chrono::seconds kValueDeadline{30};
constexpr std::size_t kShownOutput = 4000;
constexpr std::array<std::string_view, 6> kProgramDirectories{
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"};

bool has_program(const sys::Host& host, std::string_view name) {
  return std::any_of(kProgramDirectories.begin(), kProgramDirectories.end(), [&](auto directory) {
    return host.exists(fmt::format("{}/{}", directory, name));
  });
}

// Whether the image shows the machine's file under the machine's path.
bool shows_same_file(const sys::Host& host, const std::string& path) {
  const sys::UniqueFd here(::open(path.c_str(), O_PATH | O_CLOEXEC));
  const auto there = host.open(path, O_PATH);
  return here.valid() && there.ok() && sys::same_file(here.get(), there->get());
}

constexpr std::array<std::string_view, 14> kPassedVariables{
    "TERM",        "TZ",          "KBUILD_SIGN_PIN", "http_proxy",       "HTTP_PROXY",
    "https_proxy", "HTTPS_PROXY", "ftp_proxy",       "FTP_PROXY",        "no_proxy",
    "NO_PROXY",    "all_proxy",   "ALL_PROXY",       "SOURCE_DATE_EPOCH"};

bool is_passed(std::string_view variable) {
  const auto name = variable.substr(0, variable.find('='));
  return std::find(kPassedVariables.begin(), kPassedVariables.end(), name) !=
         kPassedVariables.end();
}

// Only absolute directories: an empty one is the current one.
void append_path(std::string& path, std::string_view ours) {
  for (const auto directory : split(ours, ':'))
    if (directory.starts_with('/')) path += fmt::format(":{}", directory);
}

// execvp would look in our own PATH, not in the one that the program gets.
std::string find_program(const std::string& name, const std::vector<std::string>& environment) {
  constexpr std::string_view kPath = "PATH=";
  for (const std::string_view variable : environment) {
    if (contains(name, "/") || !variable.starts_with(kPath)) continue;
    for (const auto directory : split(variable.substr(kPath.size()), ':')) {
      auto path = fmt::format("{}/{}", directory, name);
      if (::access(path.c_str(), X_OK) == 0) return path;
    }
  }
  return name;
}

// A build or an archive that goes on when we were killed would write into the directories of the
// next run. A package tool is not interrupted: it has a lock of its own.
bool end_with_parent() {
  return ::prctl(PR_SET_PDEATHSIG, SIGTERM) == 0;
}

std::string_view end_of(std::string_view output) {
  output = trim(output);
  if (output.size() <= kShownOutput) return output;
  output.remove_prefix(output.size() - kShownOutput);
  return output.substr(std::min(output.find('\n') + 1, output.size()));
}

// When it began, in the kernel's own count: two processes never have the same pid and time.
std::string start_of(const sys::Host& host, std::uint32_t pid) {
  const auto stat = host.read(fmt::format("/proc/{}/stat", pid)).value_or("");
  const auto end = stat.rfind(") ");
  if (end == std::string::npos) return "";
  const auto fields = split(std::string_view(stat).substr(end + 2), ' ');
  constexpr std::size_t kStartTime = 19;  // the 22nd field of the line
  return fields.size() > kStartTime ? std::string(fields[kStartTime]) : "";
}

class LiveEffects final : public HostFiles {
 public:
  LiveEffects(const sys::Host& host, LiveOptions options)
      : HostFiles(host),
        options_(std::move(options)),
        kernel_(sys::real_kernel()),
        loader_(kernel_module::live_module_loader(host)) {}

  Status load_module(const std::string& path, const std::string& options) override {
    return loader_->load(host(), path, options);
  }
  Status unload_module(const std::string& name) override { return loader_->unload(name); }

  // One NUL byte clears a parameter: the kernel ignores a write of nothing and keeps a newline.
  Status write_value(const std::string& path, const std::string& value) override {
    const std::string text = value.empty() ? std::string(1, '\0') : value;
    return sys::write_with_deadline(host(), path, text, kValueDeadline);
  }
  Status make_node(const std::string& path, const sys::FileInfo& node) override {
    GANTRY_CHECK(make_directory(std::string(parent_directory(path))));
    return kernel_->make_char_device(host(), path, node);
  }

  Result<std::string> run(const ProgramCall& call) override {
    const auto place =
        call.place == ProgramPlace::Machine ? ToolPlace::Machine : place_of_tools(host(), call);
    auto argv = words_for(host(), call, place);
    if (place == ToolPlace::Machine && !host().is_live())
      argv.insert(argv.begin(), {"chroot", host().root()});
    sys::CommandOptions options{.deadline = call.deadline,
                                .environment = environment_for_programs(environ),
                                .long_output = sys::LongOutput::KeepsEnd};
    if (call.place != ProgramPlace::Machine) {
      GANTRY_TRY(options.before, prepare_tool(call, place));
    }
    argv.front() = find_program(argv.front(), options.environment);
    GANTRY_TRY(auto result, sys::run_command(argv, options));
    const auto& good = call.good;
    if (result.status == 0 || std::find(good.begin(), good.end(), result.status) != good.end())
      return std::move(result.output);
    return Error(Errc::Internal, fmt::format("`{}` ended with status {}: {}", to_text(call),
                                             result.status, end_of(result.output)));
  }

  Result<driver_package::Downloaded> download(
      const driver_package::DownloadRequest& request) override {
    GANTRY_CHECK(make_directory(request.directory));
    driver_package::DownloadProgress silent;
    return driver_package::download(host(), request,
                                    options_.progress == nullptr ? silent : *options_.progress);
  }

  // In a pod the number may be another process of ours.
  Status terminate(std::uint32_t pid) override {
    GANTRY_TRY(const auto here, sys::Host::at("/"));
    const auto started = start_of(host(), pid);
    if (started.empty()) return {};
    if (start_of(here, pid) != started)
      return Error(Errc::Unsupported,
                   fmt::format("process {} is not in our process namespace", pid))
          .advise("run the pod with hostPID: true");
    if (::kill(static_cast<pid_t>(pid), SIGTERM) == 0 || errno == ESRCH) return {};
    const int err = errno;
    return Error::sys(err, fmt::format("send SIGTERM to process {}", pid));
  }

  Status refresh_cdi() override { return options_.refresh_cdi ? options_.refresh_cdi() : Status(); }
  Status remove_cdi() override { return options_.remove_cdi ? options_.remove_cdi() : Status(); }
  Status tell_agent() override { return options_.tell_agent ? options_.tell_agent() : Status(); }
  void pause(std::chrono::milliseconds time) override { std::this_thread::sleep_for(time); }

 private:
  Result<std::function<bool()>> prepare_tool(const ProgramCall& call, ToolPlace place) const {
    std::function<bool()> show;
    if (place == ToolPlace::Here) {
      GANTRY_TRY(show, show_paths(paths_to_show(host(), call)));
    }
    return std::function<bool()>(
        [show = std::move(show)] { return end_with_parent() && (!show || show()); });
  }

  LiveOptions options_;
  std::unique_ptr<sys::Kernel> kernel_;
  std::unique_ptr<kernel_module::ModuleLoader> loader_;
};

}  // namespace

std::vector<std::string> environment_for_programs(const char* const* ours) {
  std::vector<std::string> environment{"LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", "HOME=/root"};
  auto path = fmt::format("PATH={}", fmt::join(kProgramDirectories, ":"));
  for (; ours != nullptr && *ours != nullptr; ++ours) {
    const std::string_view variable(*ours);
    if (is_passed(variable)) environment.emplace_back(variable);
    if (variable.starts_with("PATH=")) append_path(path, variable.substr(5));
  }
  environment.push_back(std::move(path));
  return environment;
}

std::string to_text(const ProgramCall& call) {
  std::string text;
  for (const auto& word : call.words) {
    if (!text.empty()) text += ' ';
    text += sys::shell_word(word.text + word.path);
  }
  return text;
}

ToolPlace place_of_tools(const sys::Host& host, const ProgramCall& call) {
  const bool all = std::all_of(call.needs.begin(), call.needs.end(),
                               [&](const std::string& name) { return has_program(host, name); });
  const bool here = call.place == ProgramPlace::Image || !all;
  return host.is_live() || !here ? ToolPlace::Machine : ToolPlace::Here;
}

std::vector<std::string> words_for(const sys::Host& host, const ProgramCall& call,
                                   ToolPlace place) {
  std::vector<std::string> words;
  for (const auto& word : call.words) {
    const bool translate =
        place == ToolPlace::Here && !word.path.empty() && !shows_same_file(host, word.path);
    words.push_back(word.text + (translate ? host.outside(word.path) : word.path));
  }
  return words;
}

std::vector<ShownPath> paths_to_show(const sys::Host& host, const ProgramCall& call) {
  std::vector<ShownPath> paths;
  if (host.is_live()) return paths;
  for (const auto& path : call.shows) {
    if (host.exists(path) && !shows_same_file(host, path))
      paths.push_back({.from = host.outside(path), .path = path});
  }
  return paths;
}

Result<std::function<bool()>> show_paths(const std::vector<ShownPath>& paths) {
  if (paths.empty()) return std::function<bool()>();
  for (const auto& shown : paths) {
    std::error_code problem;
    std::filesystem::create_directories(shown.path, problem);
    if (problem)
      return Error::sys(problem.value(), fmt::format("making {} in the image", shown.path))
          .advise(fmt::format("the headers of the machine's kernel name files below {0}: make this "
                              "directory in the installer's image, or install gcc and make on the "
                              "machine",
                              shown.path));
  }
  return std::function<bool()>([paths] {
    if (::unshare(CLONE_NEWNS) != 0) return false;
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
    return std::all_of(paths.begin(), paths.end(), [](const ShownPath& shown) {
      return ::mount(shown.from.c_str(), shown.path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) ==
             0;
    });
  });
}

Result<std::unique_ptr<InstallEffects>> live_effects(const sys::Host& host, LiveOptions options) {
  if (!sys::real_kernel()->is_this_machine(host)) {
    return Error(Errc::Denied,
                 fmt::format("{} is a tree of files, not the running machine: a driver cannot be "
                             "loaded there",
                             host.root()))
        .advise("`gantry driver preflight`, `gantry driver status` and --dry-run work on it");
  }
  return std::unique_ptr<InstallEffects>(std::make_unique<LiveEffects>(host, std::move(options)));
}

}  // namespace gantry::driver_setup
