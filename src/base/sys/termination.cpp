// SPDX-License-Identifier: Apache-2.0
#include "base/sys/termination.hpp"

#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <string_view>

namespace gantry::sys {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
constexpr int kSignalStatus = 128;
constexpr std::string_view kStopping =
    "\ngantry: ends after this step; a second signal ends it at once\n";

// A signal handler gets nothing but the number, so what it sets is global.
struct Receiver {
  std::atomic<Termination*> termination = nullptr;
  std::atomic<pid_t> process = 0;
};
constinit Receiver receiver;

// A child that was forked and did not exec has the handler, too, but not the request.
void on_signal(int number) {
  const int before = errno;
  auto* termination = receiver.termination.load();
  const bool first = termination != nullptr && !termination->requested();
  if (!first || ::getpid() != receiver.process.load()) ::_exit(kSignalStatus + number);
  termination->request(number);
  [[maybe_unused]] const auto told = ::write(STDERR_FILENO, kStopping.data(), kStopping.size());
  errno = before;
}

void set_handler(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

bool is_ignored(int number) {
  struct sigaction now {};
  return ::sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

}  // namespace

void Termination::request(int signal) {
  int none = 0;
  if (!signal_.compare_exchange_strong(none, signal)) return;
  stop_.raise();
}

std::string Termination::name() const {
  switch (signal()) {
    case 0: return "";
    case SIGINT: return "SIGINT";
    case SIGTERM: return "SIGTERM";
    case SIGHUP: return "SIGHUP";
    default: return fmt::format("signal {}", signal());
  }
}

Error Termination::error() const {
  return Error(Errc::Timeout, fmt::format("stopped by {}", name()));
}

Status Termination::check() const {
  return requested() ? Status(error()) : Status();
}

CaughtTermination::CaughtTermination() {
  GANTRY_ASSERT(receiver.termination.load() == nullptr);
  receiver.process = ::getpid();
  receiver.termination = &termination_;
  for (const int number : kSignals)
    if (!is_ignored(number)) set_handler(number, on_signal);
}

CaughtTermination::~CaughtTermination() {
  for (const int number : kSignals)
    if (!is_ignored(number)) set_handler(number, SIG_DFL);
  receiver.termination = nullptr;
}

}  // namespace gantry::sys
