// SPDX-License-Identifier: Apache-2.0
#include "notebook/serve.hpp"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#include <fmt/format.h>

#include <cerrno>

namespace gantry::workload {
namespace {

// A run that is under way at the end is not waited for.
constexpr std::chrono::milliseconds kDrainTime{200};

Result<sys::UniqueFd> end_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  if (::sigprocmask(SIG_BLOCK, &signals, nullptr) != 0) return Error::sys(errno, "sigprocmask");
  sys::UniqueFd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return Error::sys(errno, "signalfd");
  return fd;
}

}  // namespace

Status serve(const ServeOptions& options, std::FILE* out) {
  GANTRY_TRY(const http::Address address, http::parse_address(options.listen));
  GANTRY_TRY(const auto loop, sys::Loop::make());
  GANTRY_TRY(const sys::UniqueFd signals, end_signals());
  GANTRY_TRY(const auto watch,
             loop->watch(signals.get(), EPOLLIN, [&](std::uint32_t) { loop->stop(); }));
  Notebook notebook(*loop, options.notebook);
  GANTRY_TRY(const auto server, http::Server::start({.address = address,
                                                     .workers = 0,
                                                     .eviction = http::Eviction::Oldest,
                                                     .drain_time = kDrainTime},
                                                    notebook.routes()));
  fmt::print(out, "The notebook is on port {}\n", server->port());
  std::fflush(out);
  return loop->run();
}

}  // namespace gantry::workload
