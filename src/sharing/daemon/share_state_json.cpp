// SPDX-License-Identifier: Apache-2.0
#include "sharing/daemon/share_state.hpp"
#include "sharing/policy/share_json.hpp"

#include <algorithm>

namespace gantry::daemon {
namespace {

constexpr double kParts = 10'000;  // the unit of time parts in the JSON

std::int64_t parts_of(double value) {
  return static_cast<std::int64_t>(std::clamp(value, -1.0, 1'000.0) * kParts);
}

void write_part(json::Writer& out, const UnmanagedProcess& stranger) {
  out.object([&] {
    out.member("pid", stranger.pid);
    out.member("memoryUsed", stranger.memory_used);
    out.member("command", stranger.command);
  });
}

// Clients of the last version read numbers only.
enum class Form : std::uint8_t { Socket, Document };

void write_gpu(json::Writer& out, const GpuState& gpu, Form form) {
  const bool for_people = form == Form::Document;
  out.object([&] {
    out.member("uuid", gpu.uuid.text);
    out.member("memoryTotal", gpu.memory_total);
    out.member("memoryLimit", for_people && gpu.memory_limit == UINT64_MAX
                                  ? std::nullopt
                                  : std::optional(gpu.memory_limit));
    out.member("memoryHeld", gpu.memory_held);
    out.member("memoryUsed", gpu.memory_used);
    out.member("part", parts_of(gpu.part));
    out.member("used", parts_of(gpu.used));
    out.member("measured", for_people && gpu.measured < 0 ? std::nullopt
                                                          : std::optional(parts_of(gpu.measured)));
    out.member("gate", gpu.gate);
    out.member("busy", gpu.busy);
    out.array("strangers", gpu.unmanaged, [&](const auto& stranger) { write_part(out, stranger); });
  });
}

void write_part(json::Writer& out, const ProcessGpuState& gpu) {
  out.object([&] {
    out.member("memoryHeld", gpu.memory_held);
    out.member("memoryUsed", gpu.memory_used);
    out.member("launches", gpu.launches);
    out.member("contexts", gpu.contexts);
    out.member("waiting", gpu.waiting);
    out.member("busy", gpu.busy);
  });
}

void write_part(json::Writer& out, const ProcessState& process) {
  out.object([&] {
    out.member("pid", process.pid);
    out.member("innerPid", process.inner_pid);
    out.member("command", process.command);
    out.array("gpus", process.gpus, [&](const auto& gpu) { write_part(out, gpu); });
  });
}

void write_part(json::Writer& out, const FindingState& finding) {
  out.object([&] {
    out.member("atUnixMs", finding.at_unix_ms);
    out.member("kind", finding.kind);
    out.member("pid", finding.pid);
    out.member("text", finding.text);
    out.member("stopped", finding.stopped);
  });
}

// Reads values from an object, and remembers whether all were present.
class Taker {
 public:
  explicit Taker(json::Value from) : from_(from), good_(from.is(json::Kind::Object)) {}

  bool good() const { return good_; }
  std::string text(std::string_view key) { return take(from_[key].string()); }
  bool flag(std::string_view key) { return take(from_[key].boolean()); }
  std::uint64_t u64(std::string_view key) { return take(from_[key].u64()); }
  std::int64_t i64(std::string_view key) { return take(from_[key].i64()); }
  double part(std::string_view key) { return static_cast<double>(i64(key)) / kParts; }
  std::uint32_t u32(std::string_view key) {
    const auto value = u64(key);
    if (value > UINT32_MAX) good_ = false;
    return static_cast<std::uint32_t>(value);
  }
  bool has(std::string_view key) const { return static_cast<bool>(from_[key]); }
  bool is_null(std::string_view key) const { return from_[key].is(json::Kind::Null); }
  template <class Read>
  auto list(std::string_view key, Read read) {
    std::vector<decltype(read(std::declval<Taker&>()))> all;
    if (!from_[key].is(json::Kind::Array)) {
      good_ = false;
      return all;
    }
    for (const auto value : from_[key]) {
      Taker taker(value);
      all.push_back(read(taker));
      good_ = good_ && taker.good();
    }
    return all;
  }

 private:
  template <class T>
  T take(std::optional<T> value) {
    if (!value) good_ = false;
    return value.value_or(T{});
  }
  json::Value from_;
  bool good_;
};

UnmanagedProcess stranger_from(Taker& taker) {
  return {.pid = taker.u32("pid"),
          .memory_used = taker.u64("memoryUsed"),
          .command = taker.text("command")};
}

// A daemon keeps running while its clients are upgraded, so keys that an older daemon does not send
// are optional.
std::vector<UnmanagedProcess> strangers_from(Taker& taker) {
  if (!taker.has("strangers")) return {};
  return taker.list("strangers", stranger_from);
}

GpuState gpu_from(Taker& taker) {
  return {.uuid = {taker.text("uuid")},
          .memory_total = taker.u64("memoryTotal"),
          .memory_limit = taker.is_null("memoryLimit") ? UINT64_MAX : taker.u64("memoryLimit"),
          .memory_held = taker.u64("memoryHeld"),
          .memory_used = taker.u64("memoryUsed"),
          .part = taker.part("part"),
          .used = taker.part("used"),
          .measured = taker.is_null("measured") ? -1 : taker.part("measured"),
          .gate = taker.text("gate"),
          .busy = taker.flag("busy"),
          .unmanaged = strangers_from(taker)};
}

ProcessGpuState process_gpu_from(Taker& taker) {
  return {.memory_held = taker.u64("memoryHeld"),
          .memory_used = taker.u64("memoryUsed"),
          .launches = taker.u64("launches"),
          .contexts = taker.u32("contexts"),
          .waiting = taker.u32("waiting"),
          .busy = taker.flag("busy")};
}

ProcessState process_state_from(Taker& taker) {
  return {.pid = taker.u32("pid"),
          .inner_pid = taker.u32("innerPid"),
          .command = taker.text("command"),
          .gpus = taker.list("gpus", process_gpu_from)};
}

FindingState finding_from(Taker& taker) {
  return {.at_unix_ms = taker.i64("atUnixMs"),
          .kind = taker.text("kind"),
          .pid = taker.u32("pid"),
          .text = taker.text("text"),
          .stopped = taker.flag("stopped")};
}

}  // namespace

namespace {

void write_rest(json::Writer& out, const ShareState& state, Form form) {
  const auto write_each = [&](const auto& value) { write_part(out, value); };
  out.member("directory", state.directory);
  out.member("held", state.held);
  out.member("refused", state.refused);
  out.array("gpus", state.gpus, [&](const GpuState& gpu) { write_gpu(out, gpu, form); });
  out.array("processes", state.processes, write_each);
  out.member("moreProcesses", state.more_processes);
  out.array("findings", state.findings, write_each);
}

}  // namespace

void write(json::Writer& out, const ShareState& state) {
  out.object([&] {
    out.key("share");
    policy::write(out, state.share);
    write_rest(out, state, Form::Socket);
  });
}

std::string to_document(const ShareState& state) {
  json::Writer out;
  out.object([&] {
    out.member("version", policy::kDocumentVersion);
    out.key("share");
    out.object([&] { policy::write_document_members(out, state.share); });
    write_rest(out, state, Form::Document);
  });
  return std::move(out).text();
}

std::string to_json(const ShareState& state) {
  json::Writer out;
  write(out, state);
  return std::move(out).text();
}

Result<ShareState> state_from_json(json::Value value) {
  Taker taker(value);
  ShareState state;
  state.directory = taker.text("directory");
  state.held = taker.flag("held");
  state.refused = taker.u64("refused");
  state.gpus = taker.list("gpus", gpu_from);
  state.processes = taker.list("processes", process_state_from);
  if (taker.has("moreProcesses")) state.more_processes = taker.u64("moreProcesses");
  state.findings = taker.list("findings", finding_from);
  const auto share = value["share"];
  if (!taker.good() || !share) return Error(Errc::Corrupt, "this is not the state of a share");
  GANTRY_TRY(state.share, policy::share_from_json(share));
  return state;
}

}  // namespace gantry::daemon
