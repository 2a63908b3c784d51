// SPDX-License-Identifier: Apache-2.0
#include "gpu/loader/elf.hpp"

#include "base/sys/unique_fd.hpp"
#include "support/elf_image.hpp"
#include "support/tree.hpp"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <gmock/gmock.h>

#include <cstring>

namespace gantry::loader {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

const std::string whole_library =
    test::elf_image({.soname = "libcuda.so.1", .needed = {"libc.so.6", "libm.so.6"}});

template <class T>
void put(std::string& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

TEST(Elf, TellsClassMachineAndSoname) {
  const auto elf = *Elf::open(whole_library);
  EXPECT_TRUE(elf.is_64bit());
  EXPECT_EQ(elf.machine(), kMachineAmd64);
  EXPECT_EQ(*elf.soname(), "libcuda.so.1");
  EXPECT_THAT(elf.dynamic()->needed, ElementsAre("libc.so.6", "libm.so.6"));
}

TEST(Elf, Reads32BitLibraries) {
  const auto image = test::elf_image({.soname = "libcuda.so.1", .is_32bit = true});
  const auto elf = *Elf::open(image);
  EXPECT_FALSE(elf.is_64bit());
  EXPECT_EQ(elf.machine(), kMachineI386);
  EXPECT_EQ(*elf.soname(), "libcuda.so.1");
}

TEST(Elf, ALibraryWithoutSonameHasNone) {
  EXPECT_EQ(*Elf::open(test::elf_image({}))->soname(), "");
}

TEST(Elf, ReadsItsOwnTestProgramThroughADescriptor) {
  const sys::UniqueFd fd(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto elf = Elf::open(fd.get());
  ASSERT_TRUE(elf.ok()) << elf.error().text();
  EXPECT_THAT(elf->dynamic()->needed, Contains("libc.so.6"));
  EXPECT_THAT(*elf->notes(), Contains(Field(&ElfNote::section, ".note.ABI-tag")));
  const auto needs = *elf->version_needs();
  EXPECT_THAT(needs, Contains(Field(&ElfVersionNeed::versions, Contains(HasSubstr("GLIBC_2.")))));
}

TEST(Elf, FindsNotesThroughSegmentsWhenSectionsAreStripped) {
  const auto image = test::elf_image({.note_owner = "NVIDIA", .note = "abc"});
  const auto notes = *Elf::open(image)->notes();
  EXPECT_THAT(notes, ElementsAre(ElfNote{
                         .section = "", .owner = "NVIDIA", .type = 1, .description = "abc"}));
}

TEST(Elf, WhatIsNoElfFileIsCorrupt) {
  for (const auto* text : {"", "\x7f", "#!/bin/sh\nexit 0\n", "INPUT(libfoo.so.1)"}) {
    EXPECT_EQ(Elf::open(std::string_view(text)).error().code(), Errc::Corrupt);
  }
  auto big_endian = whole_library;
  big_endian[EI_DATA] = ELFDATA2MSB;
  EXPECT_THAT(Elf::open(big_endian).error().text(), HasSubstr("little endian"));
}

TEST(Elf, EveryTruncationIsAnErrorAndNeverACrash) {
  const auto image = test::elf_image(
      {.soname = "libx.so.1", .needed = {"liby.so"}, .note_owner = "A", .note = "b"});
  for (std::size_t size = 0; size < image.size(); ++size) {
    const std::string cut(image.data(),
                          size);  // a separate allocation, so that reads past its end are detected
    const auto elf = Elf::open(cut);
    if (!elf.ok()) continue;
    EXPECT_TRUE(!elf->dynamic().ok() || !elf->notes().ok()) << size;
  }
}

TEST(Elf, EveryByteMayBeWrong) {
  const auto image = test::elf_image(
      {.soname = "libx.so.1", .needed = {"liby.so"}, .note_owner = "A", .note = "b"});
  for (std::size_t at = 0; at < image.size(); ++at) {
    for (const char value : {'\0', '\x01', '\x7f', '\xff'}) {
      auto damaged = image;
      damaged[at] = value;
      const auto elf = Elf::open(damaged);
      if (!elf.ok()) continue;
      (void)elf->dynamic().ok();
      (void)elf->notes().ok();
      (void)elf->version_needs().ok();
      (void)elf->section(".note.A", 4096).ok();
    }
  }
}

TEST(Elf, RefusesTablesItWouldBeAbsurdToRead) {
  auto image = whole_library;
  put<std::uint16_t>(image, offsetof(Elf64_Ehdr, e_phnum), 0xfff0);
  EXPECT_THAT(Elf::open(image).error().text(), HasSubstr("program headers"));
  image = whole_library;
  const auto dynamic = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr);  // second program header
  put<std::uint64_t>(image, dynamic + offsetof(Elf64_Phdr, p_filesz), std::uint64_t{1} << 40U);
  EXPECT_THAT(Elf::open(image)->soname().error().text(), HasSubstr("too large"));
}

TEST(Elf, ReadsASectionByItsName) {
  const auto image = test::elf_image(
      {.soname = "libx.so.1", .note_owner = "GNU", .note = "text", .note_section = ".note.x"});
  const auto elf = *Elf::open(image);
  const auto found = elf.section(".note.x", 4096);
  ASSERT_TRUE(found.ok()) << found.error().text();
  ASSERT_TRUE(found->has_value());
  EXPECT_THAT(**found, HasSubstr("GNU"));
  EXPECT_EQ(*elf.section(".note", 4096), std::nullopt);
  EXPECT_EQ(elf.section(".note.x", 3).error().code(), Errc::Corrupt);
  EXPECT_EQ(*Elf::open(whole_library)->section(".note.x", 4096), std::nullopt);
}

TEST(Elf, AFileCutShortWhileOpenIsAnErrorNotASignal) {
  test::Tree tree;
  tree.file("lib", whole_library);
  const sys::UniqueFd fd(::open(tree.path("lib").c_str(), O_RDONLY | O_CLOEXEC));
  const auto elf = *Elf::open(fd.get());
  ASSERT_EQ(::truncate(tree.path("lib").c_str(), 100), 0);
  EXPECT_EQ(elf.soname().error().code(), Errc::Corrupt);
}

}  // namespace
}  // namespace gantry::loader
