// SPDX-License-Identifier: Apache-2.0
#include "node/agent/pod_patcher.hpp"

#include "node/agent/kubelet_fixture_for_test.hpp"
#include "support/eventually.hpp"
#include "support/fake_api_server.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

namespace gantry::agent {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class PodPatcherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto* name : {"a", "b", "c"}) server_.put(path_of(name), R"({"metadata":{}})");
    begin(1ms);
  }
  void begin(std::chrono::milliseconds first_pause) {
    kube::ClientConfig access;
    access.server = *http::parse_url(server_.url());
    patcher_.emplace(access, lines_.log(), first_pause);
  }

  static std::string path_of(const std::string& name) {
    return "/api/v1/namespaces/d/pods/" + name;
  }
  void patch(const std::string& name) {
    patcher_->tell({.pod = {.name_space = "d", .name = name},
                    .body = R"({"metadata":{"annotations":{"k":"v"}}})",
                    .why = "it has its GPU"});
  }
  bool is_patched(const std::string& name) const {
    return server_.get(path_of(name)).find(R"("annotations":{"k":"v"})") != std::string::npos;
  }
  // Answers the patches of one pod with this status, as often as told. The rest is answered as
  // usual. Shared, because a thread of the server may still count after the test has ended.
  std::shared_ptr<std::atomic<int>> refuse(const std::string& name, int status, int times) {
    auto left = std::make_shared<std::atomic<int>>(times);
    server_.override_answers(
        [=, path = path_of(name)](const http::Request& request) -> std::unique_ptr<http::Response> {
          if (request.method != "PATCH" || request.target != path || left->fetch_sub(1) <= 0)
            return nullptr;
          return std::make_unique<http::Response>(http::Response{
              .status = status, .headers = {}, .body = R"({"message":"the server says no"})"});
        });
    return left;
  }

  test::FakeApiServer server_;
  LogLines lines_;
  std::optional<PodPatcher> patcher_;
};

TEST_F(PodPatcherTest, WritesToEachPodInTheOrderOfTheRequests) {
  for (const auto* name : {"b", "c", "a"}) patch(name);
  ASSERT_TRUE(eventually([&] { return is_patched("a"); }));
  std::vector<std::string> patched;
  for (const auto& request : server_.requests()) {
    if (request.starts_with("PATCH ")) patched.push_back(request.substr(request.rfind('/') + 1));
  }
  EXPECT_THAT(patched, ElementsAre("b", "c", "a"));
}

TEST_F(PodPatcherTest, APodThatIsGoneDoesNotKeepTheNextBack) {
  patch("deleted");
  patch("a");
  EXPECT_TRUE(eventually([&] { return is_patched("a"); }));
  EXPECT_THAT(lines_.text(), Not(HasSubstr("deleted"))) << "that is not a problem";
}

TEST_F(PodPatcherTest, AMissingPermissionIsLoggedOnce) {
  refuse("a", 403, 2);
  patch("a");
  patch("a");
  patch("b");
  ASSERT_TRUE(eventually([&] { return is_patched("b"); }));
  const auto text = lines_.text();
  const auto first = text.find("give the agent permission to patch pods");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("give the agent permission", first + 1), std::string::npos) << text;
}

TEST_F(PodPatcherTest, APatchThatTheServerRejectsIsLoggedAndDropped) {
  refuse("a", 422, 1);
  patch("a");
  patch("b");
  ASSERT_TRUE(eventually([&] { return is_patched("b"); }));
  EXPECT_FALSE(is_patched("a"));
  EXPECT_THAT(lines_.text(), HasSubstr("pod=\"d/a\" err="));
}

TEST_F(PodPatcherTest, APatchThatFailsForNowIsTriedAgainBeforeTheNext) {
  refuse("a", 503, 2);
  patch("a");
  patch("b");
  ASSERT_TRUE(eventually([&] { return is_patched("b"); }));
  EXPECT_TRUE(is_patched("a"));
}

TEST_F(PodPatcherTest, EndsWhileItWaitsToTryAgain) {
  begin(1h);
  const auto left = refuse("a", 503, 1'000'000);
  patch("a");
  ASSERT_TRUE(eventually([&] { return *left < 1'000'000; }));
  patcher_.reset();  // would take an hour
  EXPECT_EQ(*left, 999'999);
}

}  // namespace
}  // namespace gantry::agent
