// SPDX-License-Identifier: Apache-2.0
#include "node/agent/gke_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::agent {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = kubelet::RegistrarEvent::Kind;

class GkeLogTest : public testing::Test {
 protected:
  std::vector<std::string> reported_;
  GkeLog gke_log_{Log(LogForm::Klog, 0,
                      [this](std::string_view line) {
                        reported_.emplace_back(line.substr(line.find("] ") + 2));
                        reported_.back().pop_back();
                      }),
                  "/device-plugin"};
};

TEST(GoText, IsHowGoPrintsTheListOfDevices) {
  EXPECT_EQ(go_text({{.id = "nvidia0"}}),
            "&ListAndWatchResponse{Devices:[]*Device{&Device{ID:nvidia0,Health:Healthy,"
            "Topology:nil,},},}");
  EXPECT_EQ(go_text({{.id = "nvidia0", .healthy = false, .numa_node = 1}, {.id = "nvidia1"}}),
            "&ListAndWatchResponse{Devices:[]*Device{&Device{ID:nvidia0,Health:Unhealthy,"
            "Topology:&TopologyInfo{Nodes:[]*NUMANode{&NUMANode{ID:1,},},},},"
            "&Device{ID:nvidia1,Health:Healthy,Topology:nil,},},}");
}

TEST_F(GkeLogTest, SaysHowItWasRegistered) {
  gke_log_.serving();
  gke_log_.registrar({.what = Kind::Serving, .endpoint = "nvidiaGPU-1615441867.sock"}, {});
  gke_log_.registrar({.what = Kind::Registered}, {});
  gke_log_.registrar({.what = Kind::Watched}, {{.id = "nvidia0"}});
  EXPECT_THAT(
      reported_,
      ElementsAre("will use alpha API",
                  "starting device-plugin server at: "
                  "/device-plugin/nvidiaGPU-1615441867.sock",
                  "device-plugin server started serving", "falling back to v1beta1 API",
                  "device-plugin registered with the kubelet", "device-plugin: ListAndWatch start",
                  HasSubstr("send devices &ListAndWatchResponse")));
}

TEST_F(GkeLogTest, SaysWhichDeviceIsMarked) {
  gke_log_.devices({{.id = "a"}, {.id = "b"}}, {{.id = "a"}, {.id = "b", .healthy = false}});
  EXPECT_THAT(reported_, ElementsAre("device-plugin: b device marked as Unhealthy",
                                     EndsWith("&Device{ID:b,Health:Unhealthy,Topology:nil,},},}")));
}

TEST_F(GkeLogTest, IsSilentAboutAListThatStaysTheSame) {
  gke_log_.devices({{.id = "a"}}, {{.id = "a"}});
  EXPECT_THAT(reported_, IsEmpty());
}

TEST_F(GkeLogTest, SaysWhatAnXidDoes) {
  health::HealthNotice notice{.gpu = {"GPU-1"}, .xid = 48, .critical = true};
  gke_log_.xid(notice, "nvidia0");
  gke_log_.xid(notice, "");
  notice.critical = false;
  gke_log_.xid(notice, "nvidia0");
  EXPECT_THAT(reported_, ElementsAre("XidCriticalError: Xid=48 on Device=nvidia0, uuid=GPU-1, the "
                                     "device will go unhealthy.",
                                     "XidCriticalError: Xid=48, All devices will go unhealthy.",
                                     "Health checker is skipping Xid 48 error"));
}

}  // namespace
}  // namespace gantry::agent
