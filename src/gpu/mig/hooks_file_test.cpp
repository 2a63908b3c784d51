// SPDX-License-Identifier: Apache-2.0
#include "gpu/mig/hooks_file.hpp"

#include <gmock/gmock.h>

namespace gantry::mig {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr std::string_view kHooks = R"(version: v1
hooks:
  apply-start:
  - workdir: "/etc/mig"
    command: "/bin/bash"
    args: ["-c", "source hooks.sh; start ${MIG_PARTED_SELECTED_CONFIG}"]
    envs: {LEVEL: 2, EMPTY: }
  apply-exit:
  - command: /bin/true
  - command: /bin/false
)";

std::string hooks_refusal(std::string_view hooks) {
  const auto parsed = parse_hooks("version: v1\nhooks: " + std::string(hooks), "hooks.yaml");
  return parsed.ok() ? "accepted" : parsed.error().text();
}

TEST(MigHooksFile, ReadsCommands) {
  const auto hooks = parse_hooks(kHooks, "hooks.yaml");
  ASSERT_TRUE(hooks.ok()) << hooks.error().text();
  ASSERT_THAT(hooks->apply_start, SizeIs(1));
  EXPECT_EQ(hooks->apply_start[0].workdir, "/etc/mig");
  EXPECT_EQ(hooks->apply_start[0].command, "/bin/bash");
  EXPECT_THAT(hooks->apply_start[0].args, ElementsAre("-c", HasSubstr("source hooks.sh")));
  EXPECT_THAT(hooks->apply_start[0].envs, ElementsAre(Pair("EMPTY", ""), Pair("LEVEL", "2")));
  EXPECT_THAT(hooks->pre_apply_mode, IsEmpty());
  EXPECT_THAT(hooks->apply_exit, SizeIs(2));
}

TEST(MigHooksFile, AcceptsAFileWithoutHooks) {
  EXPECT_EQ(*parse_hooks("version: v1", "hooks.yaml"), MigHooks{});
  EXPECT_EQ(hooks_refusal("{}"), "accepted");
  EXPECT_EQ(hooks_refusal("{apply-exit: }"), "accepted");
}

TEST(MigHooksFile, RefusesOtherFiles) {
  EXPECT_FALSE(parse_hooks("hooks: {}", "hooks.yaml").ok());
  EXPECT_THAT(hooks_refusal("[]"), HasSubstr("hooks must be a map"));
  EXPECT_THAT(hooks_refusal("{aply-start: []}"), HasSubstr("did you mean `apply-start`?"));
  EXPECT_THAT(hooks_refusal("{apply-start: 1}"), HasSubstr("apply-start must be a list"));
  EXPECT_THAT(hooks_refusal("{apply-start: [1]}"), HasSubstr("a hook must be a map"));
  EXPECT_THAT(hooks_refusal("{apply-start: [{args: [a]}]}"), HasSubstr("a hook needs a `command`"));
  EXPECT_THAT(hooks_refusal("{apply-start: [{command: a, arg: 1}]}"),
              HasSubstr("did you mean `args`?"));
  EXPECT_THAT(hooks_refusal("{apply-start: [{command: a, args: b}]}"),
              HasSubstr("args must be a list"));
  EXPECT_THAT(hooks_refusal("{apply-start: [{command: a, args: [[]]}]}"),
              HasSubstr("an argument must be text"));
  EXPECT_THAT(hooks_refusal("{apply-start: [{command: a, envs: [b]}]}"),
              HasSubstr("envs must be a map"));
  EXPECT_THAT(hooks_refusal("{apply-start: [{command: a, envs: {\"b=c\": d}}]}"),
              HasSubstr("is not the name of an environment variable"));
  EXPECT_THAT(hooks_refusal("{apply-start: [{command: [a]}]}"), HasSubstr("command must be text"));
}

}  // namespace
}  // namespace gantry::mig
