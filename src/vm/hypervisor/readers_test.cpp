// SPDX-License-Identifier: Apache-2.0
// The readers: XML, shell words, QEMU options, .vmx files and vGPU profiles.
#include "vm/hypervisor/qemu_command.hpp"
#include "vm/hypervisor/shell_words.hpp"
#include "vm/hypervisor/vgpu_profile.hpp"
#include "vm/hypervisor/vmx.hpp"
#include "vm/hypervisor/xml.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace gantry::hypervisor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  const auto found = shell_words(text);
  EXPECT_TRUE(found.ok());
  for (const auto& word : *found) words.push_back(word.text);
  return words;
}

TEST(Xml, ReadsElementsAttributesTextAndLines) {
  const auto root = parse_xml("<domain type='kvm'>\n  <a:b x='1&amp;2'> text </a:b>\n</domain>");
  ASSERT_TRUE(root.ok()) << root.error().text();
  EXPECT_EQ(root->name, "domain");
  EXPECT_EQ(root->attribute("type"), "kvm");
  const auto* child = root->child("b");
  ASSERT_NE(child, nullptr);
  EXPECT_EQ(child->attribute("x"), "1&2");
  EXPECT_EQ(child->text, "text");
  EXPECT_EQ(child->line, 2);
  EXPECT_EQ(root->at({"b", "c"}), nullptr);
}

TEST(Xml, RefusesTextThatIsNotWellFormed) {
  for (const std::string_view text :
       {"", "<a>", "<a></b>", "<a x='1' x='2'/>", "<a/><b/>", "<a>&nbsp;</a>", "x"}) {
    const auto root = parse_xml(text);
    ASSERT_FALSE(root.ok()) << text;
    EXPECT_EQ(root.error().code(), Errc::Corrupt);
    EXPECT_THAT(root.error().text(), HasSubstr("line 1"));
  }
}

TEST(Xml, RefusesADocumentTypeDeclaration) {
  const auto root =
      parse_xml("<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>");
  ASSERT_FALSE(root.ok());
  EXPECT_THAT(root.error().text(), HasSubstr("document type declaration"));
}

TEST(Xml, HasBounds) {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "<a>";
  EXPECT_THAT(parse_xml(deep).error().text(), HasSubstr("nested too deep"));
  std::string deep_empty;
  for (std::size_t i = 0; i < kXmlDepthLimit; ++i) deep_empty += "<a>";
  EXPECT_THAT(parse_xml(deep_empty + "<a/><a/>").error().text(), HasSubstr("nested too deep"));
  std::string wide = "<r>";
  for (std::size_t i = 0; i <= kXmlElementLimit; ++i) wide += "<a/>";
  EXPECT_THAT(parse_xml(wide + "</r>").error().text(), HasSubstr("too many elements"));
  std::string many = "<a";
  for (int i = 0; i < 70; ++i) many += fmt::format(" x{}=''", i);
  EXPECT_THAT(parse_xml(many + "/>").error().text(), HasSubstr("too many attributes"));
  EXPECT_EQ(parse_xml(std::string(kXmlSizeLimit + 1, ' ')).error().code(), Errc::TooLarge);
}

TEST(ShellWords, KnowsQuotesEscapesAndComments) {
  EXPECT_THAT(words_of("a 'b c' \"d \\\" e\" f\\ g # h\ni"),
              ElementsAre("a", "b c", "d \" e", "f g", "i"));
  EXPECT_THAT(words_of("a \\\n  b"), ElementsAre("a", "b"));
  EXPECT_THAT(words_of("x''y '' z#w"), ElementsAre("xy", "", "z#w"));
  EXPECT_THAT(words_of(std::string_view("qemu\0-m\0001 G\0", 12)),
              ElementsAre("qemu", "-m", "1 G"));
}

TEST(ShellWords, NamesTheLineOfAnOpenQuote) {
  const auto words = shell_words("a\nb 'c\nd");
  ASSERT_FALSE(words.ok());
  EXPECT_EQ(words.error().code(), Errc::Corrupt);
  EXPECT_THAT(words.error().text(), HasSubstr("line 2"));
}

TEST(ShellWords, HasBounds) {
  EXPECT_EQ(shell_words(std::string(kCommandSizeLimit + 1, 'a')).error().code(), Errc::TooLarge);
  std::string many;
  for (std::size_t i = 0; i < kWordLimit + 10; ++i) many += "a ";
  EXPECT_EQ(shell_words(many).error().code(), Errc::TooLarge);
}

TEST(QemuCommand, FindsOptionsAndTheLimitBeforeThem) {
  const auto command = parse_qemu_command(
      "#!/bin/sh\nulimit -l 1024\nexec /usr/bin/qemu-system-x86_64 -m 4G \\\n  -nodefaults "
      "-device vfio-pci,host=3b:00.0; echo -m 9\n");
  ASSERT_TRUE(command.ok()) << command.error().text();
  EXPECT_EQ(command->lock_limit_bytes, 1024U * 1024);
  ASSERT_EQ(command->options.size(), 3U);
  EXPECT_EQ(command->options[0].value, "4G");
  EXPECT_EQ(command->options[1].name, "nodefaults");
  EXPECT_EQ(command->options[2].line, 4);
  EXPECT_EQ(parse_qemu_command("ls -l").error().code(), Errc::NotFound);
}

TEST(QemuCommand, ReadsPropertiesInBothForms) {
  const auto plain = parse_properties("vfio-pci,host=3b:00.0,id=a,,b,multifunction", "driver");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ(plain->at("driver"), "vfio-pci");
  EXPECT_EQ(plain->at("id"), "a,b");
  EXPECT_EQ(plain->at("multifunction"), "on");
  const auto json = parse_properties(
      R"({"driver":"vfio-pci","host":"0000:3b:00.0","rombar":0,"multifunction":true})", "driver");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->at("host"), "0000:3b:00.0");
  EXPECT_EQ(json->at("rombar"), "0");
  EXPECT_EQ(json->at("multifunction"), "on");
  EXPECT_EQ(parse_properties("{", "driver").error().code(), Errc::Corrupt);
}

TEST(QemuCommand, ReadsSizes) {
  EXPECT_EQ(parse_qemu_size("16G", 1), 16ULL << 30U);
  EXPECT_EQ(parse_qemu_size("512", 1024), 512U * 1024);
  EXPECT_EQ(parse_qemu_size("1t", 1), 1ULL << 40U);
  EXPECT_EQ(parse_qemu_size("0", 1), 0U);
  EXPECT_EQ(parse_qemu_size("99999999999999999T", 1), std::nullopt);
  EXPECT_EQ(parse_qemu_size("G", 1), std::nullopt);
  EXPECT_EQ(parse_qemu_size("", 1), std::nullopt);
}

TEST(Vmx, ReadsSettingsWithoutCase) {
  const auto file = VmxFile::parse(
      ".encoding = \"UTF-8\"\n# comment\n\nmemSize = \"16384\"\r\nFirmware=\"efi\"\nfirmware = "
      "\"bios\"\n");
  ASSERT_TRUE(file.ok()) << file.error().text();
  EXPECT_EQ(file->value("MEMSIZE"), "16384");
  EXPECT_EQ(file->value("firmware"), "bios");
  EXPECT_EQ(file->line("firmware"), 6);
  EXPECT_EQ(file->line("absent"), 0);
  EXPECT_FALSE(file->is_true("firmware"));
}

TEST(Vmx, NamesTheLineThatIsNotASetting) {
  for (const std::string_view text : {"a = \"1\"\nnonsense\n", "a = \"1\"\nb c = \"2\"\n",
                                      "a = \"1\"\nb = \"2\" \"3\"\n", "a = \"1\"\n= \"2\"\n"}) {
    const auto file = VmxFile::parse(text);
    ASSERT_FALSE(file.ok()) << text;
    EXPECT_EQ(file.error().code(), Errc::Corrupt);
    EXPECT_THAT(file.error().text(), HasSubstr("line 2"));
  }
}

TEST(VgpuProfile, KnowsTimeSlicedAndMigBackedTypes) {
  const auto sliced = parse_vgpu_profile("grid_t4-8q");
  ASSERT_TRUE(sliced.ok());
  EXPECT_EQ(sliced->card, "t4");
  EXPECT_EQ(sliced->gb, 8U);
  EXPECT_EQ(sliced->series, 'Q');
  EXPECT_EQ(sliced->slices, 0);
  const auto mig = parse_vgpu_profile("H200X-1-18C");
  ASSERT_TRUE(mig.ok());
  EXPECT_EQ(mig->slices, 1);
  EXPECT_EQ(licence_of(mig->series), "NVIDIA AI Enterprise");
  const auto extra = parse_vgpu_profile("grid_a100-1-5cme");
  ASSERT_TRUE(extra.ok());
  EXPECT_EQ(extra->gb, 5U);
  EXPECT_EQ(extra->series, 'C');
  ASSERT_TRUE(parse_vgpu_profile("nvidia_rtx6000-ada-8q").ok());
  EXPECT_EQ(parse_vgpu_profile("nvidia_rtx6000-ada-8q")->card, "rtx6000-ada");
  EXPECT_EQ(parse_vgpu_profile("grid_t4-2b4")->series, 'B');
  for (const std::string_view wrong : {"", "t4", "t4-", "t4-8", "t4-8x", "t4-q", "-8q", "t4-9-18c",
                                       "t4-0q", "t4-99999q", "t4-8qme", "t4-8q4x", "a100-1-5c4"}) {
    EXPECT_EQ(parse_vgpu_profile(wrong).ok(), false) << wrong;
  }
}

}  // namespace
}  // namespace gantry::hypervisor
