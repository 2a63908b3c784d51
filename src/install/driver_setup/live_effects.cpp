// SPDX-License-Identifier: Apache-2.0
#include "install/driver_setup/live_effects.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "base/sys/deadline_write.hpp"
#include "base/sys/kernel.hpp"
#include "base/sys/machine_entry.hpp"
#include "base/sys/shell_command.hpp"
#include "install/driver_setup/host_files.hpp"
#include "install/kernel_module/module_loader.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
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

// execvp would look in our own PATH, not in the one that the program gets. `machine`: whose
// program it is, in a pod; else nullptr.
std::string find_program(const sys::Host* machine, const std::string& name,
                         const std::vector<std::string>& environment) {
  constexpr std::string_view kPath = "PATH=";
  for (const std::string_view variable : environment) {
    if (contains(name, "/") || !variable.starts_with(kPath)) continue;
    for (const auto directory : split(variable.substr(kPath.size()), ':')) {
      auto path = fmt::format("{}/{}", directory, name);
      const bool found =
          machine != nullptr ? machine->exists(path) : ::access(path.c_str(), X_OK) == 0;
      if (found) return path;
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
    sys::CommandOptions options{.deadline = call.deadline,
                                .environment = environment_for_programs(environ),
                                .long_output = sys::LongOutput::KeepsEnd};
    const bool is_tool = call.place != ProgramPlace::Machine;
    if (is_tool) options.stop = options_.stop;
    const bool enters = place == ToolPlace::Machine && !host().is_live();
    std::optional<sys::MachineEntry> entry;
    if (enters) {
      entry = sys::MachineEntry::of(host());
      options.environment.emplace_back(sys::MachineEntry::kIgnoreChroot);
    }
    options.before = [&] { return (!is_tool || end_with_parent()) && (!entry || entry->enter()); };
    argv.front() = find_program(enters ? &host() : nullptr, argv.front(), options.environment);
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
    auto stoppable = request;
    stoppable.cancel = options_.stop;
    return driver_package::download(host(), stoppable,
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
