// SPDX-License-Identifier: Apache-2.0
// gantry-fake-kubelet: a fake kubelet for machines without Kubernetes. It reads commands from
// standard input, one per line, and answers each with one line of JSON.
#include "base/core/text.hpp"
#include "base/json/writer.hpp"
#include "base/sys/loop.hpp"
#include "support/fake_kubelet.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gantry::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view kUsage =
    R"(usage: gantry-fake-kubelet --dir DIR [--pod-resources SOCKET] [--version 1.36|1.37]

A kubelet as device plugins see it, without pods: DIR is what /var/lib/kubelet/device-plugins is to a real one.
Commands on standard input, one a line; each is answered by one line of JSON:
  wait RESOURCE [COUNT] [SECONDS]   until so many devices (1) are allocatable, at most so long (10)
  admit NAMESPACE/POD/UID/CONTAINER RESOURCE=N...   choose, Allocate, PreStartContainer; the answers together
  pod NAMESPACE/POD/UID CONTAINER[:init|:sidecar] RESOURCE=N... [/ CONTAINER...]   admit a pod of several containers, start none
  start UID CONTAINER               PreStartContainer again, as for a container that restarts
  time RESOURCE N [COUNT]           N calls each of GetPreferredAllocation and Allocate for COUNT devices (1): microseconds
  remove UID                        the pod has ended
  restart                           as when the kubelet is killed and started
  kill                              until the next restart
  dump                              everything that it knows
  quit
)";

void write_answer(json::Writer& out, const model::ContainerAllocateResponse& answer) {
  out.object("answer", [&] {
    out.object("envs", answer.env);
    out.array("mounts", answer.mounts, [&](const auto& mount) {
      out.object([&] {
        out.member("containerPath", mount.container_path);
        out.member("hostPath", mount.host_path);
        out.member("readOnly", !mount.options.empty());
      });
    });
    out.array("devices", answer.nodes, [&](const auto& node) {
      out.object([&] {
        out.member("containerPath", node.path);
        out.member("hostPath", node.host_path);
        out.member("permissions", node.permissions);
      });
    });
    out.object("annotations", answer.annotations);
    out.array("cdiDevices", answer.cdi_devices);
  });
}

std::string failed(std::string_view why) {
  json::Writer out;
  out.object([&] {
    out.member("ok", false);
    out.member("error", why);
  });
  return std::move(out).text();
}

void write_spread(json::Writer& out, std::string_view name,
                  std::vector<std::chrono::nanoseconds> times) {
  std::sort(times.begin(), times.end());
  const auto write = [&](std::string_view quantile, double part) {
    const auto place = static_cast<std::size_t>(part * static_cast<double>(times.size() - 1));
    const auto microseconds = static_cast<double>(times[place].count()) / 1000;
    out.raw_member(quantile, fmt::format("{:.1f}", microseconds));
  };
  out.object(name, [&] {
    write("p50", 0.5);
    write("p99", 0.99);
    write("max", 1);
  });
}

template <class Ids>
void write_resource(json::Writer& out, std::size_t capacity, const Ids& ids) {
  out.object([&] {
    out.member("capacity", capacity);
    out.array("allocatable", ids);
  });
}

class Program {
 public:
  Program(sys::Loop& loop, FakeKubelet::Options options)
      : loop_(loop), kubelet_(loop, std::move(options)) {}

  Status start() { return kubelet_.start(); }

  std::string obey(std::string_view line) {
    const auto words = split(trim(line), ' ');
    if (words.empty()) return failed("no command");
    if (words[0] == "wait" && words.size() >= 2) return wait(words);
    if (words[0] == "admit" && words.size() >= 3) return admit(words);
    if (words[0] == "pod" && words.size() >= 4) return admit_pod(words);
    if (words[0] == "start" && words.size() == 3)
      return started(std::string(words[1]), std::string(words[2]));
    if (words[0] == "time" && words.size() >= 3) return timed(words);
    if (words[0] == "remove" && words.size() == 2) {
      kubelet_.remove(std::string(words[1]));
      return R"({"ok":true})";
    }
    if (words[0] == "restart") {
      const auto status = kubelet_.start();
      return status.ok() ? R"({"ok":true})" : failed(status.error().text());
    }
    if (words[0] == "kill") {
      kubelet_.kill();
      return R"({"ok":true})";
    }
    if (words[0] == "dump") return dump();
    return failed(fmt::format("no such command: {}", line));
  }

 private:
  std::string wait(const std::vector<std::string_view>& words) {
    const std::string resource(words[1]);
    const auto count = words.size() > 2 ? parse_u64(words[2]).value_or(1) : 1;
    const auto seconds = words.size() > 3 ? parse_u64(words[3]).value_or(10) : 10;
    const auto begin = steady_clock::now();
    while (kubelet_.healthy(resource).size() < count ||
           (count == 0 && !kubelet_.connected(resource))) {
      if (steady_clock::now() - begin > std::chrono::seconds(seconds)) {
        return failed(fmt::format("{} of {} are allocatable after {} s",
                                  kubelet_.healthy(resource).size(), resource, seconds));
      }
      if (!loop_.turn(milliseconds{20}).ok()) return failed("the loop broke");
    }
    const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin).count();
    json::Writer out;
    out.object([&] {
      out.member("ok", true);
      out.member("capacity", kubelet_.capacity(resource));
      out.member("allocatable", kubelet_.healthy(resource).size());
      out.member("milliseconds", took);
    });
    return std::move(out).text();
  }

  std::string admit(const std::vector<std::string_view>& words) {
    const auto names = split(words[1], '/');
    if (names.size() != 4) return failed("a pod is NAMESPACE/POD/UID/CONTAINER");
    FakeKubelet::Container container{.name = std::string(names[3])};
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (auto added = add_limit(words[i], container); !added.ok())
        return failed(added.error().text());
    }
    const std::string uid(names[2]);
    const auto admitted = kubelet_.admit({.pod_namespace = std::string(names[0]),
                                          .name = std::string(names[1]),
                                          .uid = uid,
                                          .containers = {container}});
    if (!admitted.ok()) return failed(admitted.error().text());
    return started(uid, container.name);
  }

  static Status add_limit(std::string_view word, FakeKubelet::Container& container) {
    const auto equals = word.rfind('=');
    const auto count =
        equals == std::string_view::npos ? std::nullopt : parse_u64(word.substr(equals + 1));
    if (!count || *count > 100'000) return Error(Errc::Invalid, "a limit is RESOURCE=N");
    container.limits[std::string(word.substr(0, equals))] = static_cast<int>(*count);
    return {};
  }

  static FakeKubelet::Container container_of(std::string_view word) {
    const auto colon = word.find(':');
    FakeKubelet::Container container{.name = std::string(word.substr(0, colon))};
    if (colon == std::string_view::npos) return container;
    container.kind =
        word.substr(colon + 1) == "init" ? FakeKubelet::Kind::Init : FakeKubelet::Kind::Sidecar;
    return container;
  }

  std::string admit_pod(const std::vector<std::string_view>& words) {
    const auto names = split(words[1], '/');
    if (names.size() != 3) return failed("a pod is NAMESPACE/POD/UID");
    FakeKubelet::Pod pod{.pod_namespace = std::string(names[0]),
                         .name = std::string(names[1]),
                         .uid = std::string(names[2])};
    bool new_one = true;
    for (std::size_t i = 2; i < words.size(); ++i) {
      if (words[i] == "/") {
        new_one = true;
      } else if (std::exchange(new_one, false)) {
        pod.containers.push_back(container_of(words[i]));
      } else if (auto added = add_limit(words[i], pod.containers.back()); !added.ok()) {
        return failed(added.error().text());
      }
    }
    const auto admitted = kubelet_.admit(pod);
    return admitted.ok() ? R"({"ok":true})" : failed(admitted.error().text());
  }

  std::string started(const std::string& uid, const std::string& container) {
    const auto begin = steady_clock::now();
    const auto answer = kubelet_.start_container(uid, container);
    const auto took =
        std::chrono::duration_cast<std::chrono::microseconds>(steady_clock::now() - begin).count();
    if (!answer.ok()) return failed(answer.error().text());
    json::Writer out;
    out.object([&] {
      out.member("ok", true);
      out.object("ids", [&] {
        for (const auto& [resource, devices] : kubelet_.allocatable()) {
          const auto ids = kubelet_.ids_of(uid, container, resource);
          if (!ids.empty()) out.array(resource, ids);
        }
      });
      out.member("preStartMicroseconds", took);
      write_answer(out, *answer);
    });
    return std::move(out).text();
  }

  std::string timed(const std::vector<std::string_view>& words) {
    const auto calls = parse_u64(words[2]).value_or(0);
    const auto devices = words.size() > 3 ? parse_u64(words[3]).value_or(1) : 1;
    if (calls == 0 || calls > 100'000) return failed("time takes 1 to 100000 calls");
    const auto took = kubelet_.time_calls(std::string(words[1]), static_cast<int>(devices), calls);
    if (!took.ok()) return failed(took.error().text());
    json::Writer out;
    out.object([&] {
      out.member("ok", true);
      write_spread(out, "preferred", took->prefer);
      write_spread(out, "allocate", took->allocate);
    });
    return std::move(out).text();
  }

  std::string dump() const {
    json::Writer out;
    out.object([&] {
      out.member("ok", true);
      out.object("resources", [&] {
        for (const auto& [resource, ids] : kubelet_.allocatable()) {
          out.key(resource);
          write_resource(out, kubelet_.capacity(resource), ids);
        }
      });
      out.array("holders", kubelet_.holders(), [&](const auto& holder) {
        out.object([&] {
          out.member("pod", to_string(holder.pod));
          out.member("container", holder.container);
          out.member("resource", holder.resource);
          out.array("ids", holder.ids);
        });
      });
      out.array("registrations", kubelet_.registrations(),
                [&](const auto& request) { out.value(request.endpoint); });
      out.array("calls", kubelet_.calls());
    });
    return std::move(out).text();
  }

  sys::Loop& loop_;
  FakeKubelet kubelet_;
};

// Lines of standard input, read while the loop runs.
class Lines {
 public:
  explicit Lines(sys::Loop& loop) {
    ::fcntl(STDIN_FILENO, F_SETFL, ::fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
    auto watch = loop.watch(STDIN_FILENO, EPOLLIN, [this](std::uint32_t) { read_some(); });
    if (watch.ok()) {
      watch_ = *std::move(watch);
    } else {
      read_some();  // a regular file, which epoll does not support: read all of it now
    }
  }
  bool ended() const { return ended_ && lines_.empty(); }
  std::optional<std::string> next() {
    if (lines_.empty()) return std::nullopt;
    auto line = std::move(lines_.front());
    lines_.pop_front();
    return line;
  }

 private:
  void read_some() {
    std::array<char, 4096> buffer{};
    for (;;) {
      const auto got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
      if (got < 0) return;
      if (got == 0) break;
      for (const char c : std::string_view(buffer.data(), static_cast<std::size_t>(got))) {
        if (c != '\n') {
          part_.push_back(c);
        } else {
          lines_.push_back(std::exchange(part_, {}));
        }
      }
    }
    ended_ = true;
    watch_.cancel();
  }
  sys::Loop::Watch watch_;
  std::deque<std::string> lines_;
  std::string part_;
  bool ended_ = false;
};

int run(const std::vector<std::string_view>& args) {
  FakeKubelet::Options options;
  for (std::size_t i = 0; i + 1 < args.size(); i += 2) {
    if (args[i] == "--dir") options.directory = args[i + 1];
    if (args[i] == "--pod-resources") options.pod_resources = args[i + 1];
    if (args[i] == "--version" && args[i + 1] == "1.37")
      options.streams = FakeKubelet::Streams::BySocket;
  }
  if (options.directory.empty() || args.size() % 2 != 0) {
    fmt::print(stderr, "{}", kUsage);
    return 2;
  }
  auto loop = sys::Loop::make();
  if (!loop.ok()) return 1;
  Program program(**loop, options);
  if (const auto started = program.start(); !started.ok()) {
    fmt::print(stderr, "gantry-fake-kubelet: {}\n", started.error().text());
    return 1;
  }
  Lines lines(**loop);
  while (!lines.ended()) {
    const auto line = lines.next();
    if (line && trim(*line) == "quit") break;
    if (line && !trim(*line).empty()) {
      fmt::print("{}\n", program.obey(*line));
      std::fflush(stdout);
    }
    if (!line && !(*loop)->turn(milliseconds{1'000}).ok()) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace gantry::test

int main(int argc, char** argv) {
  return gantry::test::run({argv + 1, argv + argc});
}
