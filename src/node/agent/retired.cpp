// SPDX-License-Identifier: Apache-2.0
#include "node/agent/retired.hpp"

#include "base/core/text.hpp"
#include "base/log/log.hpp"
#include "base/sys/loop.hpp"
#include "base/sys/unique_fd.hpp"
#include "node/agent/metrics_server.hpp"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>

namespace gantry::agent {
namespace {

Status wait_for_the_end(std::int64_t port) {
  ::signal(SIGCHLD, SIG_IGN);  // for children of the earlier program of this process
  sigset_t mask;
  ::sigemptyset(&mask);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&mask, signal);
  ::sigprocmask(SIG_BLOCK, &mask, nullptr);
  const sys::UniqueFd signals(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return Error::sys(errno, "signalfd");
  GANTRY_TRY(const auto loop, sys::Loop::make());
  GANTRY_TRY(const auto watch, loop->watch(signals.get(), EPOLLIN, [&](std::uint32_t) {
    signalfd_siginfo info{};
    while (::read(signals.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGHUP) loop->stop();
    }
  }));
  const Log log(LogForm::Klog);
  metrics::AgentCounters counters;
  MetricsServer pages(*loop, log, counters, {});
  if (port > 0) pages.serve_probes(port);
  return loop->run();
}

}  // namespace

Status retire(std::int64_t port) {
  auto number = fmt::to_string(port);
  std::string command(kRetiredCommand);
  std::string name("gantry");
  std::array<char*, 4> argv{name.data(), command.data(), number.data(), nullptr};
  ::execv("/proc/self/exe", argv.data());
  return Error::sys(errno, "execv");
}

int retired_main(int argc, char** argv) {
  const auto port = argc > 2 ? parse_u64(argv[2]) : std::nullopt;
  return port && *port <= 65535 && wait_for_the_end(static_cast<std::int64_t>(*port)).ok() ? 0 : 1;
}

}  // namespace gantry::agent
