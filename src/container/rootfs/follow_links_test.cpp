// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/follow_links.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>

namespace gantry::rootfs {
namespace {

Result<std::string> follow(std::string_view path, const std::map<std::string, std::string>& links) {
  return follow_links(path, [&](const std::string& at) -> std::optional<std::string> {
    const auto found = links.find(at);
    return found == links.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(FollowLinks, DotsGoBackFromPartsThatDoNotExist) {
  EXPECT_EQ(*follow("/a/../data", {}), "/data");
  EXPECT_EQ(*follow("//a/./b//c/", {}), "/a/b/c");
  EXPECT_EQ(*follow("a/../../..", {}), "/");
}

TEST(FollowLinks, DotsGoBackFromWhereALinkLeads) {
  EXPECT_EQ(*follow("/a/../b", {{"/a", "/x/y"}}), "/x/b");
  EXPECT_EQ(*follow("/a/b", {{"/a", "../../x"}, {"/x/b", "c"}}), "/x/c");
}

TEST(FollowLinks, AHiddenLinkIsNotFollowed) {
  EXPECT_EQ(*follow("/a/b", {{"/a", "/x"}, {"/a/b", "/gone"}}), "/x/b");
}

TEST(FollowLinks, ALoopIsAnError) {
  EXPECT_EQ(follow("/a", {{"/a", "a"}}).error().sys_errno(), ELOOP);
  EXPECT_EQ(follow("/a", {{"/a", "a/a/a/a"}}).error().sys_errno(), ELOOP);
  std::string deep;
  for (int i = 0; i < 3000; ++i) deep += "b/";
  EXPECT_EQ(follow("/a", {{"/a", deep}}).error().sys_errno(), ENAMETOOLONG);
}

}  // namespace
}  // namespace gantry::rootfs
