// SPDX-License-Identifier: Apache-2.0
#include "gpu/nvml_child/nvml_child.hpp"

#include "base/core/clock.hpp"
#include "base/sys/spawn.hpp"
#include "gpu/nvml_child/driver_state_internal.hpp"
#include "gpu/nvml_child/wire.hpp"
#include "gpu/probe/nvml_program.hpp"
#include "gpu/procfs/mig.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

namespace gantry::nvml_child {
namespace {

using namespace std::chrono_literals;

constexpr int kDatagramsAtOnce = 64;
constexpr std::size_t kStuckLimit = 3;  // processes that SIGKILL does not end
constexpr auto kReapTimeout = 200ms;    // to learn its exit status
constexpr auto kHealthyAfter = 30s;     // a child that ran for this time started well
constexpr auto kRenewLostAfter = 60s;   // only a new NVML session sees a GPU that came back
constexpr unsigned kStuckWaits = 12;    // event waits that did not return
constexpr unsigned kLooksForInstances = 6;

struct ChildProcess {
  pid_t pid = -1;
  sys::UniqueFd socket;  // non-blocking, SOCK_SEQPACKET
};

Result<ChildProcess> start_process(const sys::Host& host, const NvmlChildOptions& options) {
  probe::NvmlCommand command{.argv = options.program, .program = {}};
  if (command.argv.empty()) {
    GANTRY_TRY(command, probe::nvml_command(probe::kWatchCommand));
  }
  auto& argv = command.argv;
  const auto more = probe::nvml_arguments(
      host, options.ld_cache, fmt::to_string(options.event_wait.count()), options.driver);
  argv.insert(argv.end(), more.begin(), more.end());
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return Error::sys(errno, "socketpair");
  ChildProcess started{.pid = -1, .socket = sys::UniqueFd(ends[0])};
  const sys::UniqueFd theirs(ends[1]);
  ::fcntl(started.socket.get(), F_SETFL, O_NONBLOCK);
  auto pid = sys::spawn(argv, theirs.get(), command.program.get());
  if (!pid.ok()) return probe::nvml_not_started(pid.error(), argv[0]);
  started.pid = *pid;
  return started;
}

// As far as we are permitted.
void set_oom_score_adj(pid_t pid, int value) {
  const sys::UniqueFd file(
      ::open(fmt::format("/proc/{}/oom_score_adj", pid).c_str(), O_WRONLY | O_CLOEXEC));
  const auto text = fmt::to_string(value);
  if (file.valid()) (void)!::write(file.get(), text.data(), text.size());
}

struct TerminatingChild {
  pid_t pid;
  std::string why;  // "": the exit status is the reason
  bool failure;
  Clock::time_point since;
  bool told;
};

}  // namespace

struct NvmlChild::Impl {
  Impl(const sys::Host& machine, NvmlChildOptions chosen)
      : host(machine), options(std::move(chosen)) {}
  ~Impl();

  // The parts of on_readable().
  void reap_all(Clock::time_point now);
  void hear(Clock::time_point now);
  void take(const Packet& packet, Clock::time_point now);
  void take_view(Clock::time_point now);
  void take_readings(Clock::time_point now);
  void check_deadlines(Clock::time_point now);
  void look(Clock::time_point now);
  void start(Clock::time_point now);
  void ask(Clock::time_point now);
  void arm(Clock::time_point now) const;

  void become(ChildState next, std::string why);
  void fail(std::string why, Clock::time_point now);  // counted, with back-off
  void end_child(std::string why, bool failure, Clock::time_point now);
  void back_off(const std::string& why, Clock::time_point now);
  bool send(PacketKind kind, std::string_view payload) const;

  const sys::Host& host;
  NvmlChildOptions options;
  sys::UniqueFd epoll, timer, socket;
  pid_t child = -1;
  ChildState state = ChildState::NoDriver;
  bool released = false;
  bool begun = false;
  unsigned looks_without_instances = 0;
  unsigned failures = 0;
  Clock::time_point child_started;
  std::optional<Clock::time_point> start_at, must_show, must_answer, look_at, lost_since;
  std::optional<ReadingDepth> wanted, asked;
  bool view_wanted = false;
  DriverState driver;
  std::string partial;  // of a message in several packets
  std::vector<TerminatingChild> dying;
  std::vector<Message> out;
};

NvmlChild::Impl::~Impl() {
  if (child > 0) end_child("", false, Clock::now());
  for (int tries = 0; tries < 200 && !dying.empty(); ++tries) {
    std::erase_if(dying, [](const TerminatingChild& d) { return sys::reap(d.pid).has_value(); });
    if (!dying.empty()) ::usleep(500);
  }
}

void NvmlChild::Impl::become(ChildState next, std::string why) {
  state = next;
  out.push_back(StateMessage{next, std::move(why), failures});
}

bool NvmlChild::Impl::send(PacketKind kind, std::string_view payload) const {
  const auto bytes = to_datagram({kind, true, payload});
  return ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(bytes.size());
}

void NvmlChild::Impl::end_child(std::string why, bool failure, Clock::time_point now) {
  ::kill(child, SIGKILL);
  dying.push_back({std::exchange(child, -1), std::move(why), failure, now, !failure});
  socket.reset();  // closing also removes it from the epoll set
  partial.clear();
  must_show.reset();
  must_answer.reset();
  lost_since.reset();
  if (asked && !wanted) wanted = asked;
  asked.reset();
}

void NvmlChild::Impl::back_off(const std::string& why, Clock::time_point now) {
  ++failures;
  auto pause = options.initial_backoff;
  for (unsigned i = 1; i < failures && pause < options.max_backoff; ++i) pause *= 2;
  pause = std::min(pause, options.max_backoff);
  start_at = now + pause;
  become(ChildState::BackingOff, fmt::format("{}; next try in {} ms", why, pause.count()));
}

void NvmlChild::Impl::fail(std::string why, Clock::time_point now) {
  if (now - child_started > kHealthyAfter) failures = 0;
  start_at.reset();  // set when the reason is reported
  state = ChildState::BackingOff;
  end_child(std::move(why), true, now);
  reap_all(now);
}

void NvmlChild::Impl::reap_all(Clock::time_point now) {
  for (auto& one : dying) {
    const auto status = sys::reap(one.pid);
    if (status) one.pid = -1;
    if (one.told || (!status && now - one.since < kReapTimeout)) continue;
    one.told = true;
    if (one.why.empty()) one.why = status ? sys::describe_exit(*status) : "closed its socket";
    if (!released && child < 0 && !driver.version.empty()) back_off("NVML: " + one.why, now);
  }
  std::erase_if(dying, [](const TerminatingChild& one) { return one.pid < 0; });
}

void NvmlChild::Impl::take_view(Clock::time_point now) {
  auto view = probe::nvml_view_from(partial);
  partial.clear();
  if (!view.ok()) return fail(fmt::format("sent an invalid answer: {}", view.error().text()), now);
  must_show.reset();
  auto error = view->inventory.driver.nvml_error;
  out.push_back(ViewMessage{*std::move(view)});
  if (!error.empty()) return fail(std::move(error), now);
  if (state != ChildState::Running) become(ChildState::Running, "");
}

void NvmlChild::Impl::take_readings(Clock::time_point now) {
  auto payload = readings_from(partial);
  partial.clear();
  if (!payload.ok())
    return fail(fmt::format("sent an invalid answer: {}", payload.error().text()), now);
  must_answer.reset();
  const auto depth = std::exchange(asked, std::nullopt).value_or(ReadingDepth::Vital);
  const auto is_lost = [](const auto& gpu) { return !gpu.lost.empty(); };
  const auto& gpus = payload->readings.gpus;
  const bool lost = std::any_of(gpus.begin(), gpus.end(), is_lost);
  const auto age = std::chrono::milliseconds(payload->event_wait_age_ms);
  out.push_back(ReadingsMessage{std::move(payload->readings), depth});
  if (age > options.event_wait * kStuckWaits + 10s)
    return fail("its wait for events does not return", now);
  if (!lost) return lost_since.reset();
  if (!lost_since) lost_since = now;
  if (now - *lost_since > kRenewLostAfter) {
    end_child("a new NVML session may find the lost GPU again", false, now);
    start_at = now;
  }
}

void NvmlChild::Impl::take(const Packet& packet, Clock::time_point now) {
  if (packet.kind == PacketKind::Event) {
    auto event = event_from(packet.payload);
    if (!event.ok())
      return fail(fmt::format("sent an invalid answer: {}", event.error().text()), now);
    // A layout change is followed by a view; all other events change readings.
    if (event->kind != model::GpuEventKind::MigChanged && !wanted) wanted = ReadingDepth::Vital;
    out.push_back(EventMessage{*std::move(event)});
    return;
  }
  const auto limit = packet.kind == PacketKind::View ? probe::kNvmlViewLimit : kReadingsLimit;
  if (packet.kind > PacketKind::Readings || partial.size() + packet.payload.size() > limit)
    return fail("sent an answer without a request", now);
  partial.append(packet.payload);
  if (!packet.last) return;
  if (packet.kind == PacketKind::View) return take_view(now);
  take_readings(now);
}

void NvmlChild::Impl::hear(Clock::time_point now) {
  std::array<char, kHeaderSize + kPayloadLimit + 1> bytes{};
  for (int i = 0; i < kDatagramsAtOnce && socket.valid(); ++i) {
    const auto got = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return fail("", now);
    const auto packet = from_datagram({bytes.data(), static_cast<std::size_t>(got)});
    if (!packet.ok())
      return fail(fmt::format("sent an invalid answer: {}", packet.error().text()), now);
    take(*packet, now);
  }
}

void NvmlChild::Impl::check_deadlines(Clock::time_point now) {
  if (must_show && now >= *must_show) {
    return fail(fmt::format("did not answer within {} ms: a GPU or the driver hangs; "
                            "`dmesg | grep -e NVRM -e Xid` may say why",
                            options.start_deadline.count()),
                now);
  }
  if (must_answer && now >= *must_answer) {
    fail(fmt::format("did not answer within {} ms: a GPU or the driver hangs; "
                     "`dmesg | grep -e NVRM -e Xid` may say why",
                     options.answer_deadline.count()),
         now);
  }
}

void NvmlChild::Impl::look(Clock::time_point now) {
  look_at = now + options.poll_interval;
  auto seen = read_driver_state(host);
  const bool first = !std::exchange(begun, true);
  const bool same = seen.version == driver.version && seen.gpus == driver.gpus;
  // Listing instances is most of the work, and NVML reports their changes, so it is done rarely.
  if (same && ++looks_without_instances < kLooksForInstances) {
    seen.instances = driver.instances;
  } else {
    looks_without_instances = 0;
    if (!seen.version.empty()) seen.instances = procfs::list_mig_instances(host);
  }
  if (seen == driver && !first) return;
  const auto before = std::exchange(driver, std::move(seen));
  if (released) return out.push_back(KernelChangedMessage{});
  if (driver.version.empty()) {
    if (child > 0) end_child("the driver was unloaded", false, now);
    start_at.reset();
    failures = 0;
    become(ChildState::NoDriver, driver.why_not);
    if (!first) out.push_back(KernelChangedMessage{});
    return;
  }
  if (first || before.version != driver.version || before.gpus != driver.gpus) {
    if (child > 0) end_child("GPUs or driver have changed", false, now);
    failures = 0;
    start_at = now;
    if (!first) out.push_back(KernelChangedMessage{});
    return;
  }
  view_wanted = true;  // instances came or went
}

void NvmlChild::Impl::start(Clock::time_point now) {
  start_at.reset();
  if (dying.size() >= kStuckLimit) {
    child_started = now;
    return back_off(fmt::format("{} earlier processes hang in the driver and do not exit; "
                                "`gantry doctor` says more, a reboot may be needed",
                                dying.size()),
                    now);
  }
  auto started = start_process(host, options);
  child_started = now;
  if (!started.ok()) return back_off(started.error().text(), now);
  child = started->pid;
  if (options.oom_score_adj) set_oom_score_adj(child, *options.oom_score_adj);
  socket = std::move(started->socket);
  epoll_event event{.events = EPOLLIN, .data = {.fd = socket.get()}};
  ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, socket.get(), &event);
  must_show = now + options.start_deadline;
  become(ChildState::Starting, "");
}

void NvmlChild::Impl::ask(Clock::time_point now) {
  if (state != ChildState::Running) return;
  if (view_wanted && send(PacketKind::RequestView, "")) {
    view_wanted = false;
    must_show = now + options.start_deadline;
  }
  if (!wanted || asked) return;
  const char depth = static_cast<char>(*wanted);
  if (!send(PacketKind::RequestReadings, {&depth, 1})) return;
  asked = std::exchange(wanted, std::nullopt);
  must_answer = now + options.answer_deadline;
}

// Sets the timer to the earliest deadline.
void NvmlChild::Impl::arm(Clock::time_point now) const {
  auto next = out.empty() ? look_at.value_or(now) : now;
  for (const auto& due : {start_at, must_show, must_answer}) {
    if (due) next = std::min(next, *due);
  }
  for (const auto& one : dying) {
    if (!one.told) next = std::min(next, now + 5ms);
  }
  const auto left = std::max<std::chrono::nanoseconds>(next - now, 1us);
  itimerspec when{};
  when.it_value.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(left).count();
  when.it_value.tv_nsec = (left % 1s).count();
  ::timerfd_settime(timer.get(), 0, &when, nullptr);
}

std::string_view to_string(ChildState state) {
  switch (state) {
    case ChildState::NoDriver: return "no driver";
    case ChildState::Starting: return "starting";
    case ChildState::Running: return "running";
    case ChildState::BackingOff: return "backing off";
    case ChildState::Released: return "released";
  }
  return "?";
}

NvmlChild::NvmlChild(std::unique_ptr<Impl> body) : impl_(std::move(body)) {}
NvmlChild::NvmlChild(NvmlChild&&) noexcept = default;
NvmlChild::~NvmlChild() = default;

Result<NvmlChild> NvmlChild::start(const sys::Host& host, NvmlChildOptions options) {
  auto body = std::make_unique<Impl>(host, std::move(options));
  body->epoll = sys::UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
  if (!body->epoll.valid()) return Error::sys(errno, "epoll_create1");
  body->timer = sys::UniqueFd(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!body->timer.valid()) return Error::sys(errno, "timerfd_create");
  epoll_event event{.events = EPOLLIN, .data = {.fd = body->timer.get()}};
  if (::epoll_ctl(body->epoll.get(), EPOLL_CTL_ADD, body->timer.get(), &event) != 0)
    return Error::sys(errno, "epoll_ctl");
  // Starts at once, so that the caller can do other work while NVML starts.
  const auto now = Clock::now();
  body->released = !body->options.released.empty();
  if (body->released) body->become(ChildState::Released, body->options.released);
  body->look(now);
  if (body->start_at) body->start(now);
  body->arm(now);
  return NvmlChild(std::move(body));
}

int NvmlChild::fd() const {
  return impl_->epoll.get();
}
ChildState NvmlChild::state() const {
  return impl_->state;
}
int NvmlChild::child_pid() const {
  return impl_->child;
}

std::vector<Message> NvmlChild::on_readable() {
  auto& body = *impl_;
  std::uint64_t expirations = 0;
  while (::read(body.timer.get(), &expirations, sizeof expirations) > 0) {
  }
  const auto now = Clock::now();
  body.reap_all(now);
  body.hear(now);
  body.check_deadlines(now);
  // A bit early if something else woke us: each wake-up costs more than the look.
  if (!body.look_at || now + body.options.poll_interval / 10 >= *body.look_at) body.look(now);
  if (body.start_at && now >= *body.start_at && !body.released && body.child < 0) body.start(now);
  body.ask(now);
  auto told = std::exchange(body.out, {});
  body.arm(now);
  return told;
}

void NvmlChild::request_readings(ReadingDepth depth) {
  auto& body = *impl_;
  if (body.asked && (*body.asked == ReadingDepth::Full || *body.asked == depth)) return;
  body.wanted = !body.wanted || *body.wanted == depth ? depth : ReadingDepth::Full;
  body.ask(Clock::now());
  body.arm(Clock::now());
}

void NvmlChild::request_view() {
  impl_->view_wanted = true;
  impl_->ask(Clock::now());
  impl_->arm(Clock::now());
}

void NvmlChild::release(std::string why) {
  auto& body = *impl_;
  if (std::exchange(body.released, true)) return;
  if (body.child > 0) body.end_child(why, false, Clock::now());
  body.start_at.reset();
  body.become(ChildState::Released, std::move(why));
  body.look_at = Clock::now();  // so that the message is read soon
  body.arm(Clock::now());
}

void NvmlChild::resume() {
  auto& body = *impl_;
  if (!std::exchange(body.released, false)) return;
  body.begun = false;
  body.look_at.reset();
  body.arm(Clock::now());
}

}  // namespace gantry::nvml_child
