// SPDX-License-Identifier: Apache-2.0
#include "node/kubelet/runtime_version.hpp"

#include "net/grpc/server.hpp"
#include "support/tree.hpp"

#include <gmock/gmock.h>

#include <optional>

namespace gantry::kubelet {
namespace {

TEST(RuntimeVersion, CdiNamesAreForEnginesThatTakeThemUnasked) {
  EXPECT_TRUE(supports_cdi_names({"containerd", "v2.0.1"}));
  EXPECT_TRUE(supports_cdi_names({"containerd", "2.1.0-rc.1"}));
  EXPECT_FALSE(supports_cdi_names({"containerd", "v1.7.24"}));
  EXPECT_FALSE(supports_cdi_names({"containerd", "1.6.20~ds1"}));
  EXPECT_TRUE(supports_cdi_names({"cri-o", "1.28.0"}));
  EXPECT_FALSE(supports_cdi_names({"cri-o", "1.27.8"}));
  EXPECT_FALSE(supports_cdi_names({"cri-o", "one"}));
  EXPECT_FALSE(supports_cdi_names({"", ""}));
  EXPECT_FALSE(supports_cdi_names({"docker", "27.0"}));
}

TEST(RuntimeVersion, IsAskedOfTheEngine) {
  const test::Tree tree;
  const auto loop = *sys::Loop::make();
  grpc::Server engine(*loop);
  engine.on(std::string(kRuntimeVersion), [](const std::string&, const grpc::Responder& reply) {
    reply.answer(encode(RuntimeVersion{"containerd", "v2.1.4"}));
  });
  ASSERT_TRUE(engine.listen(tree.path("c.sock")).ok());
  grpc::Client client(*loop, tree.path("c.sock"));
  std::optional<RuntimeVersion> version;
  query_runtime_version(client, std::chrono::seconds{20},
                        [&](const Result<RuntimeVersion>& answer) {
                          version = *answer;
                          loop->stop();
                        });
  ASSERT_TRUE(loop->run().ok());
  EXPECT_EQ(version, (RuntimeVersion{"containerd", "v2.1.4"}));
}

TEST(RuntimeVersion, NoEngineIsAnErrorThatNamesTheSocket) {
  const test::Tree tree;
  const auto answer = query_runtime_version(tree.path("none.sock"), std::chrono::seconds{1});
  ASSERT_FALSE(answer.ok());
  EXPECT_THAT(answer.error().text(), testing::HasSubstr("none.sock"));
}

}  // namespace
}  // namespace gantry::kubelet
