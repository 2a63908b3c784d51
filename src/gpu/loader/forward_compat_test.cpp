// SPDX-License-Identifier: Apache-2.0
#include "gpu/loader/forward_compat.hpp"

#include "support/elf_image.hpp"

#include <gmock/gmock.h>

namespace gantry::loader {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSection = ".note.cuda.fwd_compatibility";
constexpr const char* kOwner = "NVIDIA Corporation";

std::string library(std::string note, std::string section = kSection, std::string owner = kOwner) {
  return test::elf_image({.soname = "libcuda.so.1",
                          .note_owner = std::move(owner),
                          .note = std::move(note),
                          .note_section = std::move(section)});
}

Result<std::optional<CompatNote>> note_of(const std::string& image) {
  return read_compat_note(*Elf::open(image));
}

const CompatNote note_of_575{"12.9", {535, 550, 560, 565, 570, 575}};

TEST(CompatNote, IsReadFromItsSection) {
  const auto note = note_of(library(
      std::string("{\"format\":1,\"CUDA version\":\"12.9\",\"driver\":[535,550,560,565,570,575],"
                  "\"device\":[1,2,7]}") +
      '\0'));
  ASSERT_TRUE(note.ok()) << note.error().text();
  EXPECT_EQ(*note, note_of_575);
}

TEST(CompatNote, KeysMayBeWrittenInAnyCase) {
  const auto note = *note_of(library("{\"Format\":1,\"CUDA Version\":\"13.1\",\"Driver\":[580]}"));
  ASSERT_TRUE(note);
  EXPECT_EQ(note->cuda_version, "13.1");
  EXPECT_THAT(note->drivers, ElementsAre(580U));
}

TEST(CompatNote, IsReadFromItsSegmentWhereThereAreNoSections) {
  EXPECT_TRUE(note_of(library("{\"CUDA version\":\"12.9\"}", ""))->has_value());
}

TEST(CompatNote, OtherNotesAreNone) {
  EXPECT_FALSE(note_of(library("{}", ".note.other"))->has_value());
  EXPECT_FALSE(note_of(library("{}", kSection, "GNU"))->has_value());
  EXPECT_FALSE(note_of(test::elf_image({.soname = "libcuda.so.1"}))->has_value());
}

TEST(CompatNote, DamageIsAnError) {
  for (const auto* text : {"{\"format\":1,\"CUDA version\":\"13.2\",}", "[]", "x",
                           "{\"driver\":[1,\"2\"]}", "{\"driver\":[-1]}"}) {
    const auto note = note_of(library(text));
    ASSERT_FALSE(note.ok()) << text;
    EXPECT_EQ(note.error().code(), Errc::Corrupt);
    EXPECT_THAT(note.error().text(), HasSubstr("forward-compatibility note"));
  }
}

TEST(CompatDecision, FollowsTheNote) {
  EXPECT_TRUE(decide_compat("575.57.08", note_of_575, {.driver = "570.86.15"}).use);
  EXPECT_TRUE(decide_compat("575.57.08", note_of_575, {.driver = "575.57.07"}).use);
  EXPECT_FALSE(decide_compat("575.57.08", note_of_575, {.driver = "575.57.08"}).use);
  EXPECT_FALSE(
      decide_compat("575.57.08", note_of_575, {.driver = "580.65.06"}).use);  // host is newer
  EXPECT_FALSE(
      decide_compat("575.57.08", note_of_575, {.driver = "555.42.02"}).use);  // not a named branch
  EXPECT_THAT(decide_compat("575.57.08", note_of_575, {.driver = "555.42.02"}).why,
              HasSubstr("branch 555"));
}

TEST(CompatDecision, WithoutADriverVersionComparesCuda) {
  const CompatNote orin{"13.2", {}};
  EXPECT_TRUE(decide_compat("1.1", orin, {.cuda = "13.1"}).use);
  EXPECT_FALSE(decide_compat("1.1", orin, {.cuda = "13.2"}).use);
  EXPECT_FALSE(decide_compat("1.1", orin, {.cuda = "14.0"}).use);
  EXPECT_FALSE(decide_compat("1.1", orin, {.driver = "540.4.0", .cuda = "13.1"}).use);
  EXPECT_FALSE(decide_compat("1.1", orin, {}).use);
}

TEST(CompatDecision, WithoutANoteComparesBranches) {
  EXPECT_TRUE(decide_compat("575.57.08", std::nullopt, {.driver = "570.86.15"}).use);
  EXPECT_FALSE(decide_compat("570.99.99", std::nullopt, {.driver = "570.86.15"}).use);
  EXPECT_FALSE(decide_compat("what", std::nullopt, {.driver = "570.86.15"}).use);
  EXPECT_FALSE(decide_compat("575.57.08", std::nullopt, {.cuda = "12.0"}).use);
}

TEST(CompareVersions, ComparesNumbersAndNotText) {
  EXPECT_GT(*compare_versions("575.57.08", "575.9"), 0);
  EXPECT_EQ(*compare_versions("12.9", "12.9.0"), 0);
  EXPECT_FALSE(compare_versions("12.x", "12.0"));
  EXPECT_FALSE(compare_versions("", "12.0"));
  EXPECT_FALSE(compare_versions("1.2.3.4.5.6.7.8.9", "1"));
}

}  // namespace
}  // namespace gantry::loader
