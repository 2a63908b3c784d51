// SPDX-License-Identifier: Apache-2.0
// A real gRPC (python3-grpcio, the C core) on the other side, as caller and as server.
#include "base/sys/child.hpp"
#include "net/grpc/client.hpp"
#include "net/grpc/server.hpp"
#include "support/paths.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

namespace gantry::grpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kPython = "/usr/bin/python3";  // the one that Debian's packages are for

class RpcPeer : public testing::Test {
 protected:
  void SetUp() override {
    const auto found = sys::run_command({kPython, "-c", "import grpc"}, seconds{30});
    if (!found.ok() || found->status != 0) GTEST_SKIP() << "python3-grpcio is not installed";
  }
  static std::string script() { return test::source_dir() + "/tests/support/grpc_peer.py"; }

  test::Tree tree_;
  std::string path_ = tree_.path("p.sock");
};

TEST_F(RpcPeer, ARealClientGetsWhatItWantsOfOurServer) {
  const auto loop = *sys::Loop::make();
  Server server(*loop);
  std::optional<Responder> kept;
  server.on("/t.Echo/Say", [](const std::string& request, const Responder& reply) {
    reply.answer("you said " + request);
  });
  server.on("/t.Echo/Fail", [](const std::string& request, const Responder& reply) {
    reply.fail({StatusCode::FailedPrecondition, request});
  });
  server.on("/t.Echo/Keep", [&](const std::string&, const Responder& reply) { kept = reply; });
  server.on("/t.Echo/Count", [](const std::string&, const Responder& reply) {
    reply.send("one");
    reply.send("two");
    reply.send(std::string(300'000, 'x'));
    reply.send("");
    reply.finish({});
  });
  ASSERT_TRUE(server.listen(path_).ok());
  Result<sys::CommandResult> ran = Error(Errc::Internal, "not run");
  std::thread client([&] {
    ran = sys::run_command({kPython, script(), "client", path_}, seconds{60});
    loop->stop();
  });
  EXPECT_TRUE(loop->run().ok());
  client.join();
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->output, "all as wanted\n");
  EXPECT_EQ(ran->status, 0);
}

// Its standard input is a pipe of ours: it ends when we do.
class PeerServer {
 public:
  PeerServer(const std::string& script, const std::string& path, const std::string& ready)
      : pipe_(::popen(fmt::format("{} {} server {} > {}", kPython, script, path, ready).c_str(),
                      "we"),
              ::pclose) {}

 private:
  std::unique_ptr<FILE, int (*)(FILE*)> pipe_;
};

TEST_F(RpcPeer, OurClientGetsWhatItWantsOfARealServer) {
  const PeerServer server(script(), path_, tree_.path("ready"));
  for (int i = 0; i < 300 && tree_.host().read("/ready").value_or("") != "ready\n"; ++i) {
    std::this_thread::sleep_for(milliseconds{50});
  }
  const auto say = [&](std::string_view method, const std::string& request, seconds deadline) {
    return call_once(path_, method, request, deadline, {.message_limit = std::size_t{8} << 20});
  };
  EXPECT_EQ(*say("/t.Echo/Say", "hello", seconds{10}), "you said hello");
  EXPECT_EQ(say("/t.Echo/Say", std::string(4 << 20, 'x'), seconds{30})->size(), (4U << 20) + 9);
  const auto failed = say("/t.Echo/Fail", "50% lost\nä", seconds{10});
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().text(), HasSubstr("ABORTED: 50% lost\nä"));
  EXPECT_EQ(say("/t.Echo/Sing", "", seconds{10}).error().code(), Errc::Unsupported);
  EXPECT_EQ(call_once(path_, "/t.Echo/Slow", "", milliseconds{100}).error().code(), Errc::Timeout);

  const auto loop = *sys::Loop::make();
  Client client(*loop, path_);
  std::vector<std::size_t> sizes;
  std::optional<CallStatus> end;
  const auto stream = client.stream(
      "/t.Echo/Count", "", [&](const std::string& m) { sizes.push_back(m.size()); },
      [&](const CallStatus& outcome) { end = outcome; });
  for (int i = 0; i < 100 && !end; ++i) ASSERT_TRUE(loop->turn(milliseconds{100}).ok());
  EXPECT_THAT(sizes, ElementsAre(3U, 3U, 300'000U, 0U));
  EXPECT_EQ(end, CallStatus{});
}

}  // namespace
}  // namespace gantry::grpc
