// SPDX-License-Identifier: Apache-2.0
#include "container/rootfs/compat.hpp"

#include "support/elf_image.hpp"
#include "support/tree.hpp"

#include <sys/stat.h>

#include <gmock/gmock.h>

namespace gantry::rootfs {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const std::string library_with_note =
    test::elf_image({.soname = "libcuda.so.1",
                     .note_owner = "NVIDIA Corporation",
                     .note = "{\"CUDA version\":\"12.9\",\"driver\":[570,575]}",
                     .note_section = ".note.cuda.fwd_compatibility"});
const loader::HostVersions host_570{.driver = "570.86.15"};

class CompatTest : public ::testing::Test {
 protected:
  CompatTest() {
    tree_.file("usr/local/cuda-12.9/compat/libcuda.so.575.57.08", library_with_note)
        .link("usr/local/cuda-12.9/compat/libcuda.so.1", "libcuda.so.575.57.08")
        .link("usr/local/cuda-12.9/compat/libcuda.so", "libcuda.so.1")
        .link("usr/local/cuda", "/etc/alternatives/cuda")
        .link("etc/alternatives/cuda", "/usr/local/cuda-12.9");
  }
  CompatChoice choice() const { return choose_compat(*Root::at(tree_.root()), host_570); }
  test::Tree tree_;
};

TEST_F(CompatTest, UsesTheImagesLibraryWhenItsNoteAllows) {
  const auto found = choice();
  EXPECT_TRUE(found.use) << found.why;
  EXPECT_THAT(found.libraries,
              UnorderedElementsAre(
                  model::LibraryEdit{"libcuda.so.1", "/usr/local/cuda/compat/libcuda.so.1", false},
                  model::LibraryEdit{"libcuda.so", "/usr/local/cuda/compat/libcuda.so", false}));
}

TEST_F(CompatTest, NoDirectoryMeansNo) {
  tree_.remove("usr/local/cuda-12.9/compat");
  EXPECT_FALSE(choice().use);
  EXPECT_THAT(choice().why, HasSubstr("has no /usr/local/cuda/compat"));
}

TEST_F(CompatTest, TwoVersionsMeanNo) {
  tree_.file("usr/local/cuda-12.9/compat/libcuda.so.580.1", library_with_note);
  EXPECT_FALSE(choice().use);
  EXPECT_THAT(choice().why, HasSubstr("has 2 files"));
}

TEST_F(CompatTest, ALinkOrADirectoryIsNoLibrary) {
  // CVE-2024-0132: entries that are something else than they look.
  tree_.remove("usr/local/cuda-12.9/compat/libcuda.so.575.57.08")
      .link("usr/local/cuda-12.9/compat/libcuda.so.575.57.08", "/etc/passwd")
      .directory("usr/local/cuda-12.9/compat/libcuda.so.575.57.09");
  EXPECT_FALSE(choice().use);
  EXPECT_THAT(choice().why, HasSubstr("has 0 files"));
}

TEST_F(CompatTest, ADamagedLibraryMeansNo) {
  for (const auto& bytes : {std::string("text"), library_with_note.substr(0, 100), std::string()}) {
    tree_.file("usr/local/cuda-12.9/compat/libcuda.so.575.57.08", bytes);
    EXPECT_FALSE(choice().use);
    EXPECT_THAT(choice().why, HasSubstr("cannot be used"));
  }
}

TEST(LibrariesIn, ListsBySonameAsLdconfigDoes) {
  test::Tree tree;
  tree.file("d/liba.so.1.2", test::elf_image({.soname = "liba.so.1"}))
      .link("d/liba.so.1", "liba.so.1.2")
      .file("d/libb.so.2.0", test::elf_image({.soname = "libb.so.2"}))
      .file("d/libplain.so", test::elf_image({}))
      .file("d/libsmall.so.1", test::elf_image({.soname = "libsmall.so.1", .is_32bit = true}))
      .file("d/libtext.so", "INPUT(libc.so.6)")
      .link("d/libgone.so.1", "/nowhere")
      .file("d/README", "x");
  ASSERT_EQ(::mkfifo(tree.path("d/libfifo.so.1").c_str(), 0644), 0);
  const auto found = list_libraries(*Root::at(tree.root()), "/d/");
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found,
              UnorderedElementsAre(model::LibraryEdit{"liba.so.1", "/d/liba.so.1", false},
                                   model::LibraryEdit{"libb.so.2", "/d/libb.so.2.0", false},
                                   model::LibraryEdit{"libplain.so", "/d/libplain.so", false},
                                   model::LibraryEdit{"libsmall.so.1", "/d/libsmall.so.1", true}));
}

}  // namespace
}  // namespace gantry::rootfs
