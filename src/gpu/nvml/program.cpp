// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml/program.hpp"

#include "base/core/text.hpp"
#include "base/sys/child.hpp"
#include "base/sys/spawn.hpp"
#include "gpu/nvml/find_library.hpp"
#include "gpu/nvml/mig_machine.hpp"
#include "gpu/nvml/read_view.hpp"
#include "gpu/nvml/watch.hpp"
#include "gpu/probe/kernel_view.hpp"
#include "gpu/probe/nvml_program.hpp"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

#include <optional>

namespace gantry::nvml {
namespace {

constexpr int kUsage = 2;
constexpr std::uint64_t kLongestWaitMs = 3'600'000;
constexpr int kLeastArguments = 7;

// PROGRAM COMMAND PROTOCOL ROOT LD_CACHE PARTS|EVENT_WAIT_MS|"" DRIVER_ROOT LIBRARIES...
struct Request {
  std::string_view command;
  std::string root;
  std::string ld_cache;
  std::string_view fourth;  // PARTS or EVENT_WAIT_MS; "" for mig
  driver::DriverLocation driver;
};

int refuse(std::string_view why) {
  const auto text = fmt::format("{}: {}\n", probe::kNvmlProgram, why);
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return kUsage;
  return kUsage;
}

std::optional<Request> parse(int argc, char** argv) {
  if (argc < kLeastArguments) return std::nullopt;
  return Request{.command = argv[1],
                 .root = argv[3],
                 .ld_cache = argv[4],
                 .fourth = argv[5],
                 .driver = {.root = argv[6], .libraries = {argv + kLeastArguments, argv + argc}}};
}

Result<Nvml> load(const sys::Host& host, const Request& request) {
  return load_nvml(host, probe::read_driver_module(host).version, request.ld_cache, request.driver);
}

int run_view(const Request& request) {
  probe::NvmlView seen;
  const auto host = sys::Host::at(request.root);
  auto loaded = host.ok() ? load(*host, request) : Result<Nvml>(host.error());
  if (loaded.ok()) {
    // Never destroyed: unloading runs the library's own destructors, which can hang.
    const auto* nvml = new Nvml(*std::move(loaded));
    seen = read_view(*nvml, probe::parts_from_argument(request.fourth));
  } else {
    seen = not_loaded(loaded.error());
  }
  sys::send_answer(sys::kSpawnedDescriptor, probe::to_bytes(seen));
  return 0;
}

int run_watch(const Request& request) {
  const auto wait = parse_u64(request.fourth);
  if (!wait || *wait > kLongestWaitMs) return refuse("EVENT_WAIT_MS is not valid");
  const auto host = sys::Host::at(request.root);
  if (!host.ok()) return send_not_loaded(host.error());
  auto loaded = load(*host, request);
  if (!loaded.ok()) return send_not_loaded(loaded.error());
  return watch(*host, *std::move(loaded), std::chrono::milliseconds(*wait));
}

int run_mig(const Request& request) {
  const auto host = sys::Host::at(request.root);
  if (!host.ok()) return serve_no_mig(host.error(), sys::kSpawnedDescriptor);
  auto loaded = load(*host, request);
  if (!loaded.ok()) return serve_no_mig(loaded.error(), sys::kSpawnedDescriptor);
  const auto* nvml = new Nvml(*std::move(loaded));  // never destroyed, as above
  const auto started = nvml->nvmlInit_v2();
  if (started != NVML_SUCCESS && started != NVML_ERROR_ALREADY_INITIALIZED)
    return serve_no_mig(nvml_error(started, "nvmlInit_v2"), sys::kSpawnedDescriptor);
  return serve_mig(*nvml, sys::kSpawnedDescriptor);
}

}  // namespace

int program(int argc, char** argv) {
  const auto request = parse(argc, argv);
  if (!request) return refuse("gantry starts this program; run `gantry info` instead");
  if (argv[2] != probe::kNvmlProtocol) {
    return refuse(
        fmt::format("gantry speaks version {} of the protocol, this program version {}: "
                    "install one version of Gantry, then restart its agent",
                    argv[2], probe::kNvmlProtocol));
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It was started by a descriptor, whose number the kernel took for its name.
  ::prctl(PR_SET_NAME, std::string(probe::kNvmlProgram).c_str());
  // NVML starts nvidia-modprobe, which must not keep it open.
  ::fcntl(sys::kSpawnedDescriptor, F_SETFD, FD_CLOEXEC);
  ::signal(SIGPIPE, SIG_IGN);
#ifdef SYS_close_range
  // Without effect on old kernels; there close-on-exec is enough.
  ::syscall(SYS_close_range, sys::kSpawnedDescriptor + 1, ~0U, 0U);
#endif
  ::mallopt(M_ARENA_MAX, 1);
  // No destructors, no atexit: the vendor's libraries have both, and they can hang.
  if (request->command == probe::kViewCommand) ::_exit(run_view(*request));
  if (request->command == probe::kWatchCommand) ::_exit(run_watch(*request));
  if (request->command == probe::kMigCommand) ::_exit(run_mig(*request));
  return refuse("the command must be view, watch or mig");
}

}  // namespace gantry::nvml
