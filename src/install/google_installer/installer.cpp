// SPDX-License-Identifier: Apache-2.0
#include "install/google_installer/installer.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "install/driver_setup/layout.hpp"
#include "install/driver_setup/verify.hpp"
#include "install/kernel_module/running_kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace gantry::google_installer {
namespace {

using driver_setup::InstallEffects;
using driver_setup::SetupPhase;
using driver_setup::SetupReport;
using driver_setup::VerifyDepth;
using driver_setup::VerifyReport;
using preflight::DriverRequest;

constexpr std::string_view kHeaders = "Downloading kernel sources...";
constexpr std::string_view kDirectories = "Configuring installation directories...";
constexpr std::string_view kDownload = "Downloading Nvidia installer...";
constexpr std::string_view kRun = "Running Nvidia installer...";
constexpr std::string_view kCached = "Configuring cached driver installation...";
constexpr std::string_view kVerify = "Verifying Nvidia installation...";
constexpr std::string_view kLoaderCache = "Updating host's ld cache...";
constexpr std::string_view kDone = " DONE.";
constexpr std::size_t kCacheLimit = 4096;
constexpr std::chrono::seconds kLdconfigDeadline{120};
constexpr std::chrono::seconds kAptDeadline{600};

std::string running_kernel(const sys::Host& host) {
  const auto kernel = kernel_module::read_running_kernel(host);
  return kernel.ok() ? kernel->release : "";
}

// "NAME=VALUE" of the cache file; "" if it does not say.
std::string cached(std::string_view text, std::string_view name) {
  for (const auto line : lines(text)) {
    if (line.starts_with(name) && line.substr(name.size()).starts_with('='))
      return std::string(trim(line.substr(name.size() + 1)));
  }
  return "";
}

bool is_recorded(const sys::Host& host, const DriverRequest& request, const std::string& version) {
  const auto record = driver_setup::read_record(host);
  return record.ok() && *record && (*record)->version == version &&
         (*record)->directory == request.directory;
}

// Prints the phases of an installation in Google's words.
class PhaseLog {
 public:
  PhaseLog(const sys::Host& host, const DriverRequest& request, const PrintLines& print)
      : host_(host), request_(request), print_(print) {}

  void line(std::string_view text) { print_(fmt::format("{}\n", text)); }
  void begin(std::string_view phase) {
    line(phase);
    open_ = phase;
  }
  void end(std::string_view done = kDone) {
    if (!open_.empty()) line(std::string(open_) + std::string(done));
    open_ = {};
  }

  void drop() { open_ = {}; }  // it failed: no line says that it is done

  void enter(SetupPhase phase) {
    if (phase == SetupPhase::Verify) return verify();
    const auto words = phase == SetupPhase::Download ? kDownload : kRun;
    if (open_ == words) return;
    end();
    begin(words);
  }

  void verify() {
    if (open_ == kVerify) return;
    if (open_ == kRun) {
      end();
      show_cache();
    }
    begin(kVerify);
  }

 private:
  void show_cache() {
    const auto text =
        host_.read(driver_setup::Layout(request_.directory).google_cache(), kCacheLimit);
    if (text.ok()) print_(fmt::format("Updated cached version as:\n{}", *text));
  }

  const sys::Host& host_;
  const DriverRequest& request_;
  const PrintLines& print_;
  std::string_view open_;
};

// Google's script does not say that this has ended.
void show_existing_archive(const DriverRequest& request, PhaseLog& log) {
  log.line(kDownload);
  log.line(fmt::format("Using the existing \"{}\"", base_name(request.run_file)));
  log.line("set NVIDIA_INSTALLER_OVERWRITE=1 to replace it with a fresh copy");
}

bool needs_headers(const sys::Host& host, const DriverRequest& request) {
  return request.builds_modules() &&
         !kernel_module::find_kernel_headers(host, running_kernel(host)).ok();
}

// The preflight judges what is there afterwards.
void fetch_missing_headers(const sys::Host& host, const DriverRequest& request,
                           const FetchHeaders& fetch, const driver_setup::SetupOptions& options,
                           PhaseLog& log) {
  if (!fetch || !needs_headers(host, request)) return;
  log.begin(kHeaders);
  const auto fetched = fetch(running_kernel(host));
  if (fetched.ok()) return log.end();
  log.drop();
  if (options.progress) options.progress(fetched.error().text());
}

Status run_apt(const std::vector<std::string>& words, int stop) {
  std::vector<std::string> argv{"apt-get"};
  argv.insert(argv.end(), words.begin(), words.end());
  GANTRY_TRY(const auto result, sys::run_command(argv, {.deadline = kAptDeadline, .stop = stop}));
  if (result.status == 0) return {};
  return Error(Errc::NotFound, fmt::format("`{}` ended with status {}: {}", fmt::join(argv, " "),
                                           result.status, trim(result.output)));
}

Result<SetupReport> install_new(const sys::Host& host, const DriverRequest& request,
                                driver_setup::SetupOptions& options, InstallEffects& effects,
                                const FetchHeaders& fetch_headers, PhaseLog& log) {
  fetch_missing_headers(host, request, fetch_headers, options, log);
  log.begin(kDirectories);
  GANTRY_CHECK(driver_setup::check_directory(request.directory));
  log.end();
  if (!request.run_file.empty()) show_existing_archive(request, log);
  options.enter = [&log](SetupPhase phase) { log.enter(phase); };
  return driver_setup::install(host, request, options, effects);
}

Result<SetupReport> install_cached(const sys::Host& host, const DriverRequest& request,
                                   const driver_setup::SetupOptions& options,
                                   InstallEffects& effects, PhaseLog& log) {
  log.begin(kCached);
  auto report = driver_setup::install(host, request, options, effects);
  if (report.ok()) log.end(" DONE");  // without a full stop, as in Google's script
  return report;
}

const driver_setup::VerifyItem* find_item(const VerifyReport& report, std::string_view code) {
  const auto found =
      std::find_if(report.items.begin(), report.items.end(),
                   [&](const driver_setup::VerifyItem& item) { return item.code == code; });
  return found == report.items.end() ? nullptr : &*found;
}

bool has_loader_cache(const VerifyReport& report) {
  const auto* item = find_item(report, "loader-cache");
  return item == nullptr || item->state == driver_setup::VerifyState::Good;
}

// The installation has updated it; after a start that changed nothing it is only looked at.
void update_loader_cache(const sys::Host& host, SetupReport& report, InstallEffects& effects,
                         PhaseLog& log) {
  log.begin(kLoaderCache);
  if (!has_loader_cache(report.verified)) {
    const driver_setup::ProgramCall call{
        .words = {{.text = "ldconfig"}}, .needs = {}, .deadline = kLdconfigDeadline};
    static_cast<void>(effects.run(call).ok());  // what counts is the cache
    report.verified =
        driver_setup::verify(host, report.record, VerifyDepth::Installation, &effects);
  }
  if (has_loader_cache(report.verified)) return log.end();
  report.notes.push_back(find_item(report.verified, "loader-cache")->sentence);
}

}  // namespace

bool check_cached_version(const sys::Host& host, const DriverRequest& request,
                          const Environment& environment, const PrintLines& print) {
  print("Checking cached version\n");
  const auto text = host.read(driver_setup::Layout(request.directory).google_cache(), kCacheLimit);
  if (!text.ok()) {
    print(fmt::format("Cache file {} not found.\n", environment.cache_file()));
    return false;
  }
  const auto kernel = running_kernel(host);
  const auto version = version_of(request);
  if (cached(*text, "CACHE_KERNEL_VERSION") == kernel &&
      cached(*text, "CACHE_NVIDIA_DRIVER_VERSION") == version &&
      is_recorded(host, request, version)) {
    print(
        fmt::format("Found existing driver installation for kernel version {} and driver version "
                    "{}.\n",
                    kernel, version));
    return true;
  }
  print(fmt::format("Cache file {} found but existing versions didn't match.\n",
                    environment.cache_file()));
  return false;
}

void use_existing_archive(const sys::Host& host, const Environment& environment,
                          DriverRequest& request) {
  const auto name = archive_name(environment);
  if (environment.overwrite || !request.run_file.empty() || name.empty() ||
      request.url != environment.url)
    return;
  const auto path = fmt::format("{}/{}", request.directory, name);
  const auto file = host.info(path);
  if (!file.ok() || file->kind != sys::FileKind::Regular) return;
  request.run_file = path;
  request.url.clear();
}

Status check_kernel(const sys::Host& host, const Environment& environment) {
  const auto running = running_kernel(host);
  if (environment.kernel.empty() || running.empty() || environment.kernel == running) return {};
  return Error(Errc::Invalid, fmt::format("KERNEL_VERSION is {}, and the kernel that runs is {}",
                                          environment.kernel, running))
      .advise(fmt::format("do not set it; for another kernel: sudo gantry driver build --kernel {}",
                          environment.kernel));
}

FetchHeaders headers_by_apt(const sys::Host& host, const sys::Host& image, int stop) {
  if (host.is_live() || !image.exists("/usr/bin/apt-get")) return {};
  return [&image, stop](const std::string& kernel) -> Status {
    if (kernel_module::find_kernel_headers(image, kernel).ok()) return {};
    GANTRY_CHECK(run_apt({"update"}, stop));
    return run_apt({"install", "-y", fmt::format("linux-headers-{}", kernel)}, stop);
  };
}

Result<SetupReport> install(const sys::Host& host, DriverRequest request,
                            const Environment& environment, driver_setup::SetupOptions options,
                            InstallEffects& effects, const PrintLines& print,
                            const FetchHeaders& fetch_headers) {
  GANTRY_CHECK(check_kernel(host, environment));
  PhaseLog log(host, request, print);
  const bool found = check_cached_version(host, request, environment, print);
  GANTRY_TRY(auto report, found ? install_cached(host, request, options, effects, log)
                                : install_new(host, request, options, effects, fetch_headers, log));
  log.verify();
  if (report.verified.smi_output.empty())
    report.verified =
        driver_setup::verify(host, report.record, VerifyDepth::Installation, &effects);
  GANTRY_CHECK(first_failure(report.verified));
  print(report.verified.smi_output);
  log.end();
  update_loader_cache(host, report, effects, log);
  return report;
}

}  // namespace gantry::google_installer
