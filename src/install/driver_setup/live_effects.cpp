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
#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cerrno>
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

// Ours, but with messages in English: some are recognised.
std::vector<std::string> program_environment() {
  std::vector<std::string> environment;
  bool has_path = false;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (text.starts_with("LC_") || text.starts_with("LANG") || text.starts_with("MAKE")) continue;
    has_path = has_path || text.starts_with("PATH=");
    environment.emplace_back(text);
  }
  environment.emplace_back("LC_ALL=C");
  environment.emplace_back("DEBIAN_FRONTEND=noninteractive");
  if (!has_path) environment.push_back(fmt::format("PATH={}", fmt::join(kProgramDirectories, ":")));
  return environment;
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
    GANTRY_TRY(auto result, sys::run_command(argv, {.deadline = call.deadline,
                                                    .environment = program_environment()}));
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
  LiveOptions options_;
  std::unique_ptr<sys::Kernel> kernel_;
  std::unique_ptr<kernel_module::ModuleLoader> loader_;
};

}  // namespace

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
