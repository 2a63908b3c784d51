// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig_nvml/session.hpp"

#include "base/core/clock.hpp"
#include "base/sys/socket_wait.hpp"
#include "base/sys/spawn.hpp"
#include "gpu/probe/nvml_program.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <utility>

namespace gantry::mig_nvml {
namespace {

using namespace std::chrono_literals;

constexpr auto kSendWithin = 2s;
constexpr auto kEndsWithin = 200ms;  // after SIGKILL; a process in a driver that hangs takes longer

// How it ended; "" while it still runs.
std::string wait_for_end(pid_t pid) {
  for (const auto until = Clock::now() + kEndsWithin; Clock::now() < until; ::usleep(500)) {
    if (const auto status = sys::reap(pid)) return sys::describe_exit(*status);
  }
  return "";
}

Error failed(const MigRequest& request, const MigAnswer& answer) {
  return Error(answer.code, answer.text).in(fmt::format("NVML, {}", to_string(request.kind)));
}

}  // namespace

Session::Session(pid_t pid, sys::UniqueFd socket, SessionOptions options)
    : pid_(pid), socket_(std::move(socket)), options_(std::move(options)) {}

Session::Session(Session&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::move(other.socket_)),
      options_(std::move(other.options_)),
      answered_(other.answered_) {}

Session::~Session() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  (void)wait_for_end(pid_);
}

Result<Session> Session::start(const sys::Host& host, SessionOptions options) {
  probe::NvmlCommand command{.argv = options.program, .program = {}};
  if (command.argv.empty()) {
    GANTRY_TRY(command, probe::nvml_command(probe::kMigCommand));
  }
  auto& argv = command.argv;
  const auto more = probe::nvml_arguments(host, options.ld_cache, "", options.driver);
  argv.insert(argv.end(), more.begin(), more.end());
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return Error::sys(errno, "socketpair");
  sys::UniqueFd ours(ends[0]);
  const sys::UniqueFd theirs(ends[1]);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  const auto pid = sys::spawn(argv, theirs.get(), command.program.get());
  if (!pid.ok()) return probe::nvml_not_started(pid.error(), argv[0]);
  return Session(*pid, std::move(ours), std::move(options));
}

Error Session::give_up(Error why) {
  socket_.reset();
  ::kill(pid_, SIGKILL);
  const auto end = wait_for_end(std::exchange(pid_, -1));
  if (why.code() == Errc::Timeout || end.empty()) return why;
  return {why.code(), fmt::format("{}; it {}", why.text(), end)};
}

Result<std::string> Session::receive_line(std::chrono::milliseconds deadline) {
  const sys::WaitLimit limit{.deadline = Clock::now() + deadline};
  std::string line;
  std::array<char, 16384> buffer{};
  for (;;) {
    GANTRY_TRY(const auto got, sys::receive(socket_.get(), buffer, limit));
    if (got == 0) return Error(Errc::Internal, "gantry-nvml closed its socket");
    line.append(buffer.data(), got);
    if (line.size() > kMaxAnswer) return Error(Errc::Corrupt, "gantry-nvml sends too much");
    if (line.back() != '\n') continue;
    line.pop_back();
    return line;
  }
}

Result<MigAnswer> Session::ask(const MigRequest& request) {
  if (!socket_.valid())
    return Error(Errc::Timeout, "gantry-nvml was ended after a request without an answer");
  auto sent = sys::send_all(socket_.get(), to_line(request) + "\n",
                            {.deadline = Clock::now() + kSendWithin});
  if (!sent.ok()) return give_up(Error(Errc::Internal, sent.error().text()).in("gantry-nvml"));
  auto deadline =
      request.kind == MigRequest::Kind::Read ? options_.read_deadline : options_.change_deadline;
  if (!answered_) deadline = std::max(deadline, options_.start_deadline);
  const auto line = receive_line(deadline);
  if (!line.ok() && line.error().code() == Errc::Timeout) {
    return give_up(
        Error(Errc::Timeout, fmt::format("NVML did not answer `{}` within {} s: the driver hangs",
                                         to_string(request.kind), deadline.count() / 1000))
            .advise("see why with: sudo dmesg | grep -e NVRM -e Xid"));
  }
  if (!line.ok()) return give_up(Error(Errc::Internal, line.error().text()));
  auto answer = parse_answer(*line);
  if (!answer.ok()) return give_up(Error(Errc::Internal, answer.error().text()));
  answered_ = true;
  if (!answer->done) return failed(request, *answer);
  return answer;
}

Result<MigMachine> Session::read() {
  GANTRY_TRY(auto answer, ask({.kind = MigRequest::Kind::Read}));
  return std::move(answer.machine);
}

Result<std::string> Session::set_mode(const model::PciAddress& gpu, bool enable) {
  GANTRY_TRY(auto answer, ask({.kind = MigRequest::Kind::SetMode, .gpu = gpu, .enable = enable}));
  return std::move(answer.text);
}

Result<unsigned> Session::create_gpu_instance(const model::PciAddress& gpu, unsigned profile,
                                              const mig::Placement& place) {
  GANTRY_TRY(const auto answer, ask({.kind = MigRequest::Kind::CreateGpuInstance,
                                     .gpu = gpu,
                                     .profile = profile,
                                     .place = place}));
  return answer.created;
}

Result<unsigned> Session::create_compute_instance(const model::PciAddress& gpu,
                                                  unsigned gpu_instance, unsigned profile,
                                                  const mig::Placement& place) {
  GANTRY_TRY(const auto answer, ask({.kind = MigRequest::Kind::CreateComputeInstance,
                                     .gpu = gpu,
                                     .profile = profile,
                                     .place = place,
                                     .gpu_instance = gpu_instance}));
  return answer.created;
}

Status Session::destroy_compute_instance(const model::PciAddress& gpu, unsigned gpu_instance,
                                         unsigned compute_instance) {
  GANTRY_CHECK(ask({.kind = MigRequest::Kind::DestroyComputeInstance,
                    .gpu = gpu,
                    .gpu_instance = gpu_instance,
                    .compute_instance = compute_instance}));
  return {};
}

Status Session::destroy_gpu_instance(const model::PciAddress& gpu, unsigned gpu_instance) {
  GANTRY_CHECK(ask(
      {.kind = MigRequest::Kind::DestroyGpuInstance, .gpu = gpu, .gpu_instance = gpu_instance}));
  return {};
}

}  // namespace gantry::mig_nvml
