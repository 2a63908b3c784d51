// SPDX-License-Identifier: Apache-2.0
#include "container/engines/journal_for_test.hpp"

#include <sys/stat.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::engines {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kDocker = "/etc/docker/daemon.json";
constexpr const char* kBefore = "{\n  \"bip\": \"10.0.0.1/8\"  ,\n\t\"odd\":   1.50\n}\n\n";

// The power goes after so many steps: the others do not happen, and nobody tidies up.
class FailingFileWriter : public FileWriter {
 public:
  explicit FailingFileWriter(int steps) : left_(steps) {}
  bool happened() const { return left_ < 0; }

  Status replace(const std::string& path, std::string_view content, unsigned mode) override {
    GANTRY_CHECK(step());
    return disk_->replace(path, content, mode);
  }
  Status remove(const std::string& path) override {
    GANTRY_CHECK(step());
    return disk_->remove(path);
  }
  Status make_directories(const std::string& path) override {
    GANTRY_CHECK(step());
    return disk_->make_directories(path);
  }

 private:
  Status step() {
    if (--left_ < 0) return Error(Errc::Internal, "power cut");
    return {};
  }
  std::unique_ptr<FileWriter> disk_ = disk_file_writer();
  int left_;
};

TEST(Journal, UndoRestoresTheVeryBytes) {
  test::Tree tree;
  tree.file(kDocker, kBefore);
  ::chmod(tree.path(kDocker).c_str(), 0600);
  EXPECT_THAT(configure(tree, {.set_as_default = true}).files,
              ElementsAre("/etc/docker/daemon.json: changed"));
  EXPECT_THAT(read_text(tree, kDocker), HasSubstr("\"default-runtime\""));
  EXPECT_EQ(tree.host().info(kDocker)->mode, 0600U);
  EXPECT_THAT(undo_changes(tree, Engine::Docker).files, Contains(HasSubstr("byte for byte")));
  EXPECT_EQ(read_text(tree, kDocker), kBefore);
  EXPECT_EQ(tree.host().info(kDocker)->mode, 0600U);
  EXPECT_FALSE(tree.host().exists("/var/lib/gantry/engines/docker"));
}

TEST(Journal, UndoOfSeveralRunsGoesBackToTheFirst) {
  test::Tree tree;
  tree.file(kDocker, kBefore);
  configure(tree, {});
  configure(tree, {.set_as_default = true});
  configure(tree, {.runtime_path = "/opt/n"});
  configure(tree, {.runtime_path = "/opt/n"});
  undo_changes(tree, Engine::Docker);
  EXPECT_EQ(read_text(tree, kDocker), kBefore);
}

TEST(Journal, ManyRunsInARowCanBeUndone) {
  test::Tree tree;
  tree.file("etc/docker/daemon.json", "{}\n");
  for (int i = 0; i < 70; ++i) {
    const auto plan = make_plan(tree.host(), {.runtime_path = "/opt/n" + std::to_string(i)});
    ASSERT_TRUE(plan.ok());
    const auto done = apply(tree.host(), *plan, *disk_file_writer());
    ASSERT_TRUE(done.ok()) << i << ": " << done.error().text();
  }
  ASSERT_TRUE(undo(tree.host(), Engine::Docker, *disk_file_writer()).ok());
  EXPECT_EQ(*tree.host().read("/etc/docker/daemon.json"), "{}\n");
}

TEST(Journal, ManyDropInsCanBeUndone) {
  test::Tree tree;
  const std::string before = "version = 2\n";
  tree.file("etc/containerd/config.toml", before);
  const RunProgram run = [](const auto&) { return Result<std::string>("containerd x v2.1.4 y"); };
  const auto drop_in = [](int i) {
    return fmt::format("/etc/containerd/conf.d/{}-nvidia.toml", i);
  };
  constexpr int kDropIns = 70;
  for (int i = 0; i < kDropIns; ++i) {
    const auto plan =
        make_plan(tree.host(), {.engine = Engine::Containerd, .drop_in = drop_in(i), .run = run});
    ASSERT_TRUE(plan.ok()) << i << ": " << plan.error().text();
    const auto done = apply(tree.host(), *plan, *disk_file_writer());
    ASSERT_TRUE(done.ok()) << i << ": " << done.error().text();
    ASSERT_TRUE(tree.host().exists(drop_in(i))) << i;
  }
  undo_changes(tree, Engine::Containerd);
  EXPECT_FALSE(tree.host().exists("/etc/containerd/conf.d"));
  EXPECT_EQ(read_text(tree, "/etc/containerd/config.toml"), before);
}

TEST(Journal, WhatWasNotThereIsGoneAgainWithItsDirectories) {
  const test::Tree tree;
  configure(tree, {});
  EXPECT_TRUE(tree.host().exists(kDocker));
  undo_changes(tree, Engine::Docker);
  EXPECT_FALSE(tree.host().exists("/etc/docker"));
}

TEST(Journal, AUsersLaterChangesStayAndOursGo) {
  test::Tree tree;
  tree.file(kDocker, "{\n    \"default-runtime\": \"runc\",\n    \"bip\": \"x\"\n}\n");
  configure(tree, {.set_as_default = true});
  auto text = read_text(tree, kDocker);
  text.replace(text.find("\"x\""), 3, "\"y\"");
  tree.file(kDocker, text);
  const auto outcome = undo_changes(tree, Engine::Docker);
  EXPECT_THAT(outcome.files, Contains(HasSubstr("only our keys")));
  EXPECT_EQ(read_text(tree, kDocker),
            "{\n    \"default-runtime\": \"runc\",\n    \"bip\": \"y\"\n}\n");
}

TEST(Journal, AKeyOfOursThatAUserChangedIsTheUsers) {
  test::Tree tree;
  tree.file(kDocker, "{\n    \"bip\": \"x\"\n}\n");
  configure(tree, {.set_as_default = true});
  auto text = read_text(tree, kDocker);
  const std::string ours = "\"default-runtime\": \"nvidia\"";
  text.replace(text.find(ours), ours.size(), "\"default-runtime\": \"kata\"");
  tree.file(kDocker, text);
  const auto outcome = undo_changes(tree, Engine::Docker);
  EXPECT_THAT(outcome.notes, ElementsAre(HasSubstr("default-runtime now has another value")));
  EXPECT_EQ(read_text(tree, kDocker),
            "{\n    \"bip\": \"x\",\n    \"default-runtime\": \"kata\"\n}\n");
}

TEST(Journal, AnotherRunAfterAUsersChangeGoesBackToTheUsersText) {
  test::Tree tree;
  tree.file(kDocker, "{\n    \"bip\": \"x\"\n}\n");
  configure(tree, {});
  auto text = read_text(tree, kDocker);
  text.replace(text.find("\"x\""), 3, "\"y\"");
  tree.file(kDocker, text);
  configure(tree, {.set_as_default = true});
  undo_changes(tree, Engine::Docker);
  EXPECT_EQ(read_text(tree, kDocker), "{\n    \"bip\": \"y\"\n}\n");
}

TEST(Journal, TomlFilesAreTakenBackKeyByKeyToo) {
  test::Tree tree;
  const std::string before =
      "version = 2 # two\nimports = [\"/a/*.toml\"]\n\n[debug]\nlevel = \"info\"\n";
  tree.file("etc/containerd/config.toml", before);
  const RunProgram run = [](const auto&) { return Result<std::string>("containerd x v2.1.4 y"); };
  configure(tree, {.engine = Engine::Containerd, .set_as_default = true, .run = run});
  EXPECT_TRUE(tree.host().exists("/etc/containerd/conf.d/99-nvidia.toml"));
  tree.file("etc/containerd/config.toml",
            read_text(tree, "/etc/containerd/config.toml") + "x = 1\n");
  undo_changes(tree, Engine::Containerd);
  EXPECT_EQ(read_text(tree, "/etc/containerd/config.toml"), before + "x = 1\n");
  EXPECT_FALSE(tree.host().exists("/etc/containerd/conf.d"));

  tree.file("etc/containerd/config.toml", before);
  configure(tree,
            {.engine = Engine::Containerd, .drop_in = "", .set_as_default = true, .run = run});
  tree.file("etc/containerd/config.toml",
            "# new\n" + read_text(tree, "/etc/containerd/config.toml"));
  undo_changes(tree, Engine::Containerd);
  EXPECT_EQ(read_text(tree, "/etc/containerd/config.toml"), "# new\n" + before);
}

TEST(Journal, ATemplatesBlockIsFoundAgain) {
  test::Tree tree;
  const std::string path = "var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl";
  tree.file(path, "{{ template \"base\" . }}\n[mine]\n");
  configure(tree, {.engine = Engine::Containerd, .runtime_path = "/opt/ncr"});
  tree.file(path, read_text(tree, "/" + path) + "# more\n");
  undo_changes(tree, Engine::Containerd);
  EXPECT_EQ(read_text(tree, "/" + path), "{{ template \"base\" . }}\n[mine]\n# more\n");
}

TEST(Journal, ALinkStaysALinkAndItsTargetIsChanged) {
  test::Tree tree;
  tree.file("srv/docker.json", "{}\n").link(kDocker, "/srv/docker.json");
  configure(tree, {});
  EXPECT_EQ(*tree.host().link(kDocker), "/srv/docker.json");
  EXPECT_THAT(read_text(tree, "/srv/docker.json"), HasSubstr("nvidia"));
  undo_changes(tree, Engine::Docker);
  EXPECT_EQ(read_text(tree, "/srv/docker.json"), "{}\n");
}

TEST(Journal, NothingToUndoIsSaid) {
  const test::Tree tree;
  const auto outcome = undo(tree.host(), Engine::Crio, *disk_file_writer());
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::NotFound);
  EXPECT_THAT(outcome.error().text(), HasSubstr("nothing to undo"));
}

TEST(Journal, NothingToChangeWritesNothing) {
  test::Tree tree;
  tree.file(kDocker, "{\"runtimes\": {\"nvidia\": {\"path\": \"n\"}}}");
  EXPECT_THAT(configure(tree, {}).files, IsEmpty());
  EXPECT_FALSE(tree.host().exists("/var/lib/gantry"));
}

TEST(Journal, AFileThatChangedBetweenPlanAndApplyIsNotOverwritten) {
  test::Tree tree;
  tree.file(kDocker, kBefore);
  const auto plan = make_plan(tree.host(), {});
  tree.file(kDocker, "{}");
  const auto outcome = apply(tree.host(), *plan, *disk_file_writer());
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), Errc::Busy);
  EXPECT_EQ(read_text(tree, kDocker), "{}");
}

// Two files and two runs, cut after every single step: each file is whole, and undo gives the
// bytes.
TEST(Journal, ACrashAtAnyStepLeavesWholeFilesThatUndoRestores) {
  const std::string before = "version = 3 # mine\n";
  const RunProgram run = [](const auto&) { return Result<std::string>("containerd x v2.1.4 y"); };
  const EngineOptions first{.engine = Engine::Containerd, .run = run};
  const EngineOptions second{.engine = Engine::Containerd, .set_as_default = true, .run = run};
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    test::Tree tree;
    tree.file("etc/containerd/config.toml", before);
    FailingFileWriter cut(steps);
    for (const auto& options : {first, second}) {
      const auto plan = make_plan(tree.host(), options);
      ASSERT_TRUE(plan.ok());
      if (!apply(tree.host(), *plan, cut).ok()) break;
    }
    done = !cut.happened();
    ASSERT_TRUE(make_plan(tree.host(), first).ok()) << "a file is broken after step " << steps;
    const auto outcome = undo(tree.host(), Engine::Containerd, *disk_file_writer());
    EXPECT_TRUE(outcome.ok() || outcome.error().code() == Errc::NotFound);
    EXPECT_EQ(read_text(tree, "/etc/containerd/config.toml"), before) << steps;
    EXPECT_FALSE(tree.host().exists("/etc/containerd/conf.d/99-nvidia.toml")) << steps;
  }
  EXPECT_GT(steps, 10);
}

TEST(Journal, AnUndoThatIsCutCanBeRepeated) {
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    test::Tree tree;
    tree.file(kDocker, kBefore);
    configure(tree, {.set_as_default = true});
    FailingFileWriter cut(steps);
    (void)undo(tree.host(), Engine::Docker, cut).ok();
    done = !cut.happened();
    (void)undo(tree.host(), Engine::Docker, *disk_file_writer()).ok();
    EXPECT_EQ(read_text(tree, kDocker), kBefore) << steps;
  }
  EXPECT_GT(steps, 3);
}

TEST(Journal, ADamagedJournalIsAnErrorAndChangesNothing) {
  test::Tree tree;
  tree.file(kDocker, kBefore);
  configure(tree, {});
  const auto after = read_text(tree, kDocker);
  for (const auto* text :
       {"", "{", "{\"version\": 7}", "{\"version\": 1, \"files\": [{}]}",
        "{\"version\": 1, \"files\": [{\"path\": \"/x\", \"written\": 99999}]}"}) {
    tree.file("var/lib/gantry/engines/docker/journal.json", text);
    EXPECT_FALSE(undo(tree.host(), Engine::Docker, *disk_file_writer()).ok()) << text;
    EXPECT_EQ(read_text(tree, kDocker), after);
  }
}

}  // namespace
}  // namespace gantry::engines
