// SPDX-License-Identifier: Apache-2.0
#include "net/kube/api.hpp"
#include "net/kube/kubeconfig_internal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::kube {
namespace {

using testing::HasSubstr;

constexpr std::string_view kKubeconfig = R"(
apiVersion: v1
kind: Config
current-context: lab
clusters:
- name: lab-cluster
  cluster: {server: "https://127.0.0.1:6443", certificate-authority: ca.pem}
users:
- name: admin
  user: {client-certificate-data: Y2VydA==, client-key-data: a2V5}
- name: cloud
  user: {exec: {command: aws}}
contexts:
- name: lab
  context: {cluster: lab-cluster, user: admin, namespace: team}
- name: cloud
  context: {cluster: lab-cluster, user: cloud}
)";

Result<ClientConfig> parse(std::string_view text, std::string_view context = "") {
  return parse_kubeconfig(text, "/etc/kube/config", context, [](const std::string& path) {
    return Result<std::string>("file " + path);
  });
}

TEST(Kubeconfig, CurrentContextNamesServerAndUser) {
  const auto access = parse(kKubeconfig);
  ASSERT_TRUE(access.ok()) << access.error().text();
  EXPECT_EQ(access->server.endpoint.port, 6443);
  EXPECT_EQ(access->server.endpoint.tls.certificate, "cert");
  EXPECT_EQ(access->server.endpoint.tls.key, "key");
  EXPECT_EQ(access->name_space, "team");
}

TEST(Kubeconfig, FilesAreBesideIt) {
  EXPECT_EQ(parse(kKubeconfig)->server.endpoint.tls.authorities, "file /etc/kube/ca.pem");
}

TEST(Kubeconfig, ProgramsInItAreNotRun) {
  const auto access = parse(kKubeconfig, "cloud");
  ASSERT_FALSE(access.ok());
  EXPECT_THAT(access.error().text(), HasSubstr("kubectl create token"));
}

TEST(Kubeconfig, MissingNamesAreSaid) {
  const auto access = parse(kKubeconfig, "nobody");
  ASSERT_FALSE(access.ok());
  EXPECT_THAT(access.error().text(), HasSubstr("no context named \"nobody\""));
}

TEST(ApiPaths, NamesCannotLeaveTheirPlace) {
  EXPECT_EQ(pod_path("a/b", "../x"), "/api/v1/namespaces/a%2Fb/pods/..%2Fx");
}

}  // namespace
}  // namespace gantry::kube
