// SPDX-License-Identifier: Apache-2.0
// Files whose directory other programs read, too.
#include "base/sys/unique_fd.hpp"
#include "container/engines/journal_for_test.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <array>

namespace gantry::engines {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Names that appear in a directory, in order, even for a moment.
class CreatedNames {
 public:
  explicit CreatedNames(const std::string& directory)
      : fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(fd_.get(), directory.c_str(), IN_CREATE | IN_MOVED_TO), 0);
  }
  std::vector<std::string> take() {
    alignas(inotify_event) std::array<char, 4096> buffer{};
    const auto size = ::read(fd_.get(), buffer.data(), buffer.size());
    std::vector<std::string> names;
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      names.emplace_back(event->name);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return names;
  }

 private:
  sys::UniqueFd fd_;
};

TEST(Journal, NoTemporaryFileIsEverAmongTheDropInsThatCrioReads) {
  test::Tree tree;
  tree.file("etc/crio/crio.conf.d/99-nvidia.toml", "# mine\n");
  CreatedNames created(tree.path("etc/crio/crio.conf.d"));
  configure(tree, {.engine = Engine::Crio});
  EXPECT_THAT(created.take(), ElementsAre("99-nvidia.toml"));
  undo_changes(tree, Engine::Crio);
  EXPECT_THAT(created.take(), ElementsAre("99-nvidia.toml"));
  EXPECT_EQ(read_text(tree, "/etc/crio/crio.conf.d/99-nvidia.toml"), "# mine\n");
}

// podman and CRI-O read the same hooks.d.
class SharedHook : public ::testing::Test {
 protected:
  static constexpr const char* kHook = "/usr/share/containers/oci/hooks.d/oci-nvidia-hook.json";
  JournalResult add(Engine engine, const std::string& program = "/opt/hook") {
    return configure(tree_,
                     {.engine = engine, .mode = IntegrationMode::Hook, .hook_path = program});
  }
  bool nothing_is_left() const {
    return !tree_.host().exists("/usr") && !tree_.host().exists("/var/lib/gantry/engines/crio") &&
           !tree_.host().exists("/var/lib/gantry/engines/podman");
  }
  test::Tree tree_;
};

TEST_F(SharedHook, StaysUntilBothEnginesAreUndone) {
  for (const auto& [first, second] :
       {std::pair{Engine::Podman, Engine::Crio}, std::pair{Engine::Crio, Engine::Podman}}) {
    for (const bool in_order : {true, false}) {
      add(first);
      EXPECT_THAT(add(second).files, ElementsAre(HasSubstr("it stays until both are undone")));
      EXPECT_THAT(add(second).files, IsEmpty());
      const auto outcome = undo_changes(tree_, in_order ? first : second);
      EXPECT_THAT(outcome.files, IsEmpty());
      EXPECT_THAT(outcome.notes, ElementsAre(HasSubstr("--undo` removes it")));
      EXPECT_TRUE(tree_.host().exists(kHook));
      undo_changes(tree_, in_order ? second : first);
      EXPECT_TRUE(nothing_is_left()) << to_string(first) << in_order;
    }
  }
}

TEST_F(SharedHook, GetsThePartnersTextBack) {
  add(Engine::Podman, "/opt/one");
  add(Engine::Crio, "/opt/two");
  add(Engine::Podman, "/opt/three");
  add(Engine::Crio, "/opt/four");
  EXPECT_THAT(undo_changes(tree_, Engine::Crio).files,
              ElementsAre(HasSubstr("has the text for podman again")));
  EXPECT_THAT(read_text(tree_, kHook), HasSubstr("/opt/three"));
  undo_changes(tree_, Engine::Podman);
  EXPECT_TRUE(nothing_is_left());
}

TEST_F(SharedHook, IsTheOriginalAgainAfterBoth) {
  tree_.file(kHook, "{\"original\": 1}\n");
  add(Engine::Podman, "/opt/one");
  add(Engine::Crio, "/opt/two");
  undo_changes(tree_, Engine::Podman);
  EXPECT_THAT(read_text(tree_, kHook), HasSubstr("/opt/two"));
  undo_changes(tree_, Engine::Crio);
  EXPECT_EQ(read_text(tree_, kHook), "{\"original\": 1}\n");
}

}  // namespace
}  // namespace gantry::engines
