// SPDX-License-Identifier: Apache-2.0
// Against a scripted Jupyter; tests/e2e/jupyter_lane has a real one.
#include "node/why/jupyter.hpp"

#include "net/http/websocket_for_test.hpp"
#include "node/why/notebook.hpp"
#include "support/parsed_json.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

namespace gantry::why {
namespace {

using http::ScriptedPeer;
using http::ScriptedSocket;
using testing::HasSubstr;
using Stage = JupyterStage;

constexpr std::chrono::seconds kTimeout{20};

JupyterUrl url_of(std::string_view text) {
  const auto url = parse_jupyter_url(text);
  EXPECT_TRUE(url.ok()) << text;
  return url.ok() ? *url : JupyterUrl{};
}

TEST(JupyterUrl, TheAddressBarHasMoreThanTheServer) {
  const auto hub = url_of("https://hub:8443/user/a/lab/tree/x.ipynb?reset&token=t0k#cell");
  EXPECT_EQ(hub.server.prefix, "/user/a");
  EXPECT_EQ(hub.server.endpoint.port, 8443);
  EXPECT_EQ(hub.token, "t0k");
  EXPECT_EQ(url_of("http://n:30001/notebooks/x.ipynb").server.prefix, "");
  EXPECT_EQ(url_of("http://n/?token=a").server.endpoint.host, "n");
  EXPECT_EQ(url_of("http://n?token=a").token, "a");
  EXPECT_EQ(parse_jupyter_url("n:30001").error().code(), Errc::Invalid);
}

std::string response(int status, std::string_view body) {
  return fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                     body.size(), body);
}

// A Jupyter with one kernel, which answers so many requests. Refuses the upgrade with a status
// other than 101.
class FakeJupyter {
 public:
  FakeJupyter(int answers, int upgrade_status = 101)
      : answers_(answers), upgrade_status_(upgrade_status) {}

  std::string kernels = R"([{"id":"../x","name":"p","execution_state":"idle"},
      {"id":"k-1","name":"python3","execution_state":"busy"}])";
  JupyterAnswer ask(const std::string& kernel = "") {
    auto url = url_of("http://x/base?token=secret");
    url.server.endpoint = peer_.endpoint();
    return ask_jupyter(url, kernel, kTimeout);
  }
  std::vector<std::string> heads() {
    const std::lock_guard lock(mutex_);
    return heads_;
  }

 private:
  void serve(const ScriptedSocket& socket) {
    const auto head = socket.read_head();
    {
      const std::lock_guard lock(mutex_);
      heads_.push_back(head);
    }
    if (head.starts_with("GET /base/api HTTP")) {
      socket.write(response(200, R"({"version":"6.4.12"})"));
    } else if (head.starts_with("GET /base/api/kernels HTTP")) {
      socket.write(response(200, kernels));
    } else if (upgrade_status_ != 101) {
      socket.write(response(upgrade_status_, "no"));
    } else {
      socket.write(http::switching_protocols(head));
      talk(socket, head);
    }
  }
  // Answers without reading: the ids of the requests follow from the session.
  void talk(const ScriptedSocket& socket, std::string_view head) const {
    const auto at = head.find("session_id=") + 11;
    const auto session = head.substr(at, head.find(' ', at) - at);
    socket.write_frame(0x81, R"({"header":{"msg_type":"status"},"content":{}})");
    socket.write_frame(0x81, "not JSON");
    for (int i = 0; i < answers_; ++i)
      socket.write_frame(0x81, fmt::format(R"({{"header":{{"msg_type":"kernel_info_reply"}},)"
                                           R"("parent_header":{{"msg_id":"{}-control-{}"}}}})",
                                           session, i));
    if (answers_ < 5) socket.write_frame(0x88, "");
    while (!socket.read().empty()) {
    }
  }

  int answers_;
  int upgrade_status_;
  std::mutex mutex_;
  std::vector<std::string> heads_;
  ScriptedPeer peer_{[this](const ScriptedSocket& socket) { serve(socket); }};
};

TEST(Jupyter, AKernelThatComputesAnswersOnItsControlChannel) {
  FakeJupyter jupyter(5);
  const auto answer = jupyter.ask();
  EXPECT_EQ(answer.stage, Stage::Answered) << answer.error;
  EXPECT_EQ(answer.answers, 5);
  EXPECT_EQ(answer.kernel, "k-1") << "an id that is not one is never part of a path";
  EXPECT_EQ(answer.about, "python3, busy");
  EXPECT_EQ(answer.version, "6.4.12");
  EXPECT_THAT(answer.where, testing::EndsWith("/base"));
  const auto heads = jupyter.heads();
  ASSERT_EQ(heads.size(), 3U);
  EXPECT_THAT(heads[2], HasSubstr("GET /base/api/kernels/k-1/channels?session_id="));
  EXPECT_THAT(heads[2], HasSubstr("\r\nOrigin: http://127.0.0.1:"));
  EXPECT_THAT(heads[0], testing::Not(HasSubstr("secret"))) << "it may be another server";
  EXPECT_THAT(heads[1], HasSubstr("Authorization: token secret\r\n"));
  EXPECT_THAT(heads[2], HasSubstr("Authorization: token secret\r\n"));
}

TEST(Jupyter, LostAnswersAreCounted) {
  FakeJupyter jupyter(2);
  const auto answer = jupyter.ask();
  EXPECT_EQ(answer.stage, Stage::Lossy);
  EXPECT_EQ(answer.answers, 2);
  EXPECT_EQ(answer.error, "the connection was closed");
}

TEST(Jupyter, ARefusedUpgradeKeepsItsStatus) {
  FakeJupyter jupyter(5, 400);
  const auto answer = jupyter.ask();
  EXPECT_EQ(answer.stage, Stage::Refused);
  EXPECT_EQ(answer.status, 400);
}

TEST(Jupyter, ADeadKernelIsNone) {
  FakeJupyter jupyter(5);
  EXPECT_EQ(jupyter.ask("k-2").stage, Stage::NoKernel);
  jupyter.kernels = R"([{"id":"k-1","execution_state":"dead"}])";
  EXPECT_EQ(jupyter.ask().stage, Stage::NoKernel);
  jupyter.kernels = "nonsense";
  EXPECT_EQ(jupyter.ask().stage, Stage::NoKernel);
}

TEST(Jupyter, AnotherServerIsNotJupyter) {
  for (const auto* body : {"ok", "[]", R"({"version":6})"}) {
    ScriptedPeer peer([&](const ScriptedSocket& socket) {
      socket.read_head();
      socket.write(response(200, body));
    });
    const JupyterUrl url{.server = {.endpoint = peer.endpoint()}};
    EXPECT_EQ(ask_jupyter(url, "", kTimeout).stage, Stage::NotJupyter) << body;
  }
}

TEST(Notebook, IsAskedAtTheAddressAndThePortOfItsPod) {
  ScriptedPeer peer([](const ScriptedSocket& socket) {
    const auto head = socket.read_head();
    const bool stripped = head.starts_with("GET /api");  // the proxy removes its path
    socket.write(response(stripped ? 200 : 404,
                          head.starts_with("GET /api/kernels") ? "[]" : R"({"version":"7"})"));
  });
  const auto pod = test::parsed(fmt::format(
      R"({{"metadata":{{"namespace":"ml","name":"nb"}},"spec":{{"nodeName":"n1","containers":[
      {{"ports":[{{"containerPort":{},"protocol":"TCP"}},{{"containerPort":53,"protocol":"UDP"}}]}}]}},
      "status":{{"podIP":"127.0.0.1"}}}})",
      peer.endpoint().port));
  auto url = url_of("http://x/base");
  url.server.endpoint = peer.endpoint();
  const auto view = ask_notebook(pod.root(), url, -1);
  EXPECT_EQ(view.direct.stage, Stage::NoKernel);
  EXPECT_EQ(view.direct.port, peer.endpoint().port);
  EXPECT_EQ(view.by_url.stage, Stage::NotJupyter);
  EXPECT_EQ(view.by_url.status, 404);
  EXPECT_FALSE(view.on_node);
  EXPECT_EQ(view.name_space + "/" + view.pod + " on " + view.node, "ml/nb on n1");
}

}  // namespace
}  // namespace gantry::why
